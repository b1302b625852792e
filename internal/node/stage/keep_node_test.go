package stage

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apilabels "k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/mount"
	"github.com/albertofaria/pav/internal/node/pavdir"
)

// api has the objects that a keeper reads and writes. The tests of package integration have a real API server.
type api struct {
	client.WithWatch

	mu      sync.Mutex
	stages  map[string]*pavv1.PavStage
	pods    map[string]*corev1.Pod
	volumes map[string]*corev1.PersistentVolume
}

func (a *api) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch into := into.(type) {
	case *pavv1.PavStage:
		if found := a.stages[key.Name]; found != nil {
			found.DeepCopyInto(into)
			return nil
		}
	case *corev1.Pod:
		if found := a.pods[key.Name]; found != nil {
			found.DeepCopyInto(into)
			return nil
		}
	case *corev1.PersistentVolume:
		if found := a.volumes[key.Name]; found != nil {
			found.DeepCopyInto(into)
			return nil
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{Resource: "things"}, key.Name)
}

func (a *api) List(_ context.Context, into client.ObjectList, options ...client.ListOption) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch into := into.(type) {
	case *metav1.PartialObjectMetadataList:
		selector := (&client.ListOptions{}).ApplyOptions(options).LabelSelector
		for _, pod := range a.pods {
			if selector.Matches(apilabels.Set(pod.Labels)) {
				into.Items = append(into.Items, metav1.PartialObjectMetadata{ObjectMeta: *pod.ObjectMeta.DeepCopy()})
			}
		}
	case *pavv1.PavStageList:
		for _, stage := range a.stages {
			into.Items = append(into.Items, *stage.DeepCopy())
		}
	case *corev1.PodList:
		for _, pod := range a.pods {
			if pod.Spec.NodeName != "" {
				into.Items = append(into.Items, *pod.DeepCopy())
			}
		}
	}
	return nil
}

// Patch serves the release of a pod.
func (a *api) Patch(_ context.Context, object client.Object, _ client.Patch, _ ...client.PatchOption) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.pods[object.GetName()].Finalizers = object.GetFinalizers()
	return nil
}

func (a *api) Status() client.SubResourceWriter { return status{api: a} }

type status struct {
	client.SubResourceWriter
	api *api
}

func (s status) Update(_ context.Context, object client.Object, _ ...client.SubResourceUpdateOption) error {
	s.api.mu.Lock()
	defer s.api.mu.Unlock()
	s.api.stages[object.GetName()].Status = object.(*pavv1.PavStage).DeepCopy().Status
	return nil
}

// setPod changes the staging pod.
func (a *api) setPod(change func(*corev1.Pod)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change(a.pods["stage-1"])
}

// told takes events.
type told chan string

func (e told) Event(object runtime.Object, _, reason, message string) {
	kind := object.GetObjectKind().GroupVersionKind().Kind
	if _, is := object.(*pavv1.PavStage); is {
		kind = "PavStage"
	}
	name := ""
	if ref, is := object.(*corev1.ObjectReference); is {
		name = " " + ref.Namespace + "/" + ref.Name
	}
	e <- fmt.Sprintf("%s%s: %s: %s", kind, name, reason, message)
}

// provisioners is a Catalogue with one provisioner.
type provisioners struct {
	Catalogue
	recovery pavv1.StagingRecovery
}

func (p provisioners) Provisioner(context.Context, string) (*pavv1.PavProvisioner, error) {
	return &pavv1.PavProvisioner{Spec: pavv1.PavProvisionerSpec{VolumeStaging: pavv1.VolumeStaging{Recovery: p.recovery}}}, nil
}

// testNode is a node with a kubelet's folder, a stage of the name "stage-a" and its keeper.
type testNode struct {
	*Keeper
	api     *api
	events  told
	kubelet string
	dirs    *pavdir.Directories
}

func newNode(t *testing.T) *testNode {
	t.Helper()
	n := &testNode{
		api:    &api{stages: map[string]*pavv1.PavStage{}, pods: map[string]*corev1.Pod{}},
		events: make(told, 100), kubelet: t.TempDir(),
	}
	must(t, unix.Mount("kubelet", n.kubelet, "tmpfs", 0, "mode=755"))
	must(t, unix.Mount("", n.kubelet, "", unix.MS_SHARED, ""))
	must(t, os.Mkdir(n.kubelet+"/plugins", 0o755))
	host, err := mount.Open("/proc/self/ns/mnt")
	must(t, err)
	n.dirs, err = pavdir.New(host, n.kubelet, func(string) {})
	must(t, err)
	stager := New(Config{
		Client: n.api, Catalogue: provisioners{recovery: pavv1.StagingRecoveryRestage}, Dirs: n.dirs, Mounts: Host{Namespace: host},
		Hub: NewHub(), Events: n.events, Node: "node", Boot: pavdir.Boot{BootID: "boot"},
	})
	n.Keeper = NewKeeper(stager, KeeperConfig{
		Prober: Host{Namespace: host}, OrphanGrace: time.Hour, Metrics: prometheus.NewPedanticRegistry(), Log: testr.New(t),
	})
	stager.clusterTime = func() time.Time { return n.now() }
	t.Cleanup(func() {
		n.queue.ShutDown()
		n.wg.Wait()
		must(t, n.dirs.Close())
		must(t, unix.Unmount(n.kubelet, unix.MNT_DETACH))
		must(t, host.Close())
	})
	return n
}

// stage makes a stage that is Staged, with a staging pod that runs, and changes it.
func (n *testNode) stage(t *testing.T, change func(*pavv1.PavStage)) {
	t.Helper()
	stage := &pavv1.PavStage{
		ObjectMeta: metav1.ObjectMeta{Name: "stage-a", UID: "stage-uid", Finalizers: []string{pavv1.StageFinalizer}},
		Spec: pavv1.PavStageSpec{
			Provisioner: "driver", VolumeName: "pv", VolumeHandle: "handle", NodeName: "node",
			ClaimRef: pavv1.ClaimReference{Namespace: "default", Name: "claim", UID: "claim-uid"},
		},
		Status: pavv1.PavStageStatus{
			Phase: pavv1.StageStaged, BootID: "boot", Attempt: 1, StagingPod: &pavv1.PodReference{Namespace: "pav-pods", Name: "stage-1"},
		},
	}
	change(stage)
	n.api.stages["stage-a"] = stage
	n.api.pods["stage-1"] = &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "pav-pods", Name: "stage-1", Finalizers: []string{pavv1.PodFinalizer},
			Labels:          map[string]string{pavv1.WorkflowLabel: pavv1.WorkflowStaging},
			Annotations:     map[string]string{pavv1.NodeAnnotation: "node"},
			OwnerReferences: []metav1.OwnerReference{{UID: "stage-uid", Controller: new(true)}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
	must(t, n.dirs.Record(t.Context(), "stage-a", pavdir.Stage{
		Driver: "driver", Handle: "handle", VolumeName: "pv", ClaimNamespace: "default", ClaimName: "claim", Boot: pavdir.Boot{BootID: "boot"},
	}))
}

// attach mounts a file system for clients, which a daemon serves, and records a client pod that has it.
func (n *testNode) attach(t *testing.T) *daemon {
	t.Helper()
	volume := n.dirs.Volume("stage-a")
	must(t, os.MkdirAll(volume, 0o755))
	d := serveFUSE(t, volume)
	n.publish(t, "boot")
	return d
}

// publish binds what is attached to a target of the client pod "client", and records that.
func (n *testNode) publish(t *testing.T, bootID string) {
	t.Helper()
	target := n.podFolder(t, "client-uid") + "/mount"
	must(t, os.MkdirAll(target, 0o750))
	must(t, unix.Mount(n.dirs.Volume("stage-a"), target, "", unix.MS_BIND, ""))
	must(t, n.dirs.RecordPublication(t.Context(), "stage-a", pavdir.Publication{
		Target: target, Client: pavdir.Client{Namespace: "default", Name: "client", UID: "client-uid"}, Boot: pavdir.Boot{BootID: bootID},
	}))
}

// podFolder makes kubelet's folder for the volume of a pod.
func (n *testNode) podFolder(t *testing.T, uid types.UID) string {
	t.Helper()
	folder := filepath.Join(n.kubelet, "pods", string(uid), "volumes/kubernetes.io~csi/pv")
	must(t, os.MkdirAll(folder, 0o750))
	return folder
}

// Probe has the keeper look at the stage, and returns the events that came of it.
func (n *testNode) look(t *testing.T) []string {
	t.Helper()
	must(t, n.keep(t.Context(), "stage-a"))
	n.wg.Wait()
	events := []string{}
	for {
		select {
		case event := <-n.events:
			events = append(events, event)
		default:
			slices.Sort(events)
			return events
		}
	}
}

// podHeld says whether the staging pod has its finalizer.
func (n *testNode) podHeld() bool {
	n.api.mu.Lock()
	defer n.api.mu.Unlock()
	return slices.Contains(n.api.pods["stage-1"].Finalizers, pavv1.PodFinalizer)
}

func fail(pod *corev1.Pod) {
	pod.Status.Phase = corev1.PodFailed
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled"},
	}}}
}

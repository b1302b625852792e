package nodetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

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

// API simulates the API server, with the objects that a node agent reads and writes. The integration tests have a real
// one.
type API struct {
	client.WithWatch

	sync.Mutex
	Stages  map[string]*pavv1.PavStage
	Pods    map[string]*corev1.Pod
	Volumes map[string]*corev1.PersistentVolume
	Records map[string]*pavv1.PavVolume
}

// Get implements client.Reader.
func (a *API) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	a.Lock()
	defer a.Unlock()
	switch into := into.(type) {
	case *pavv1.PavStage:
		if found := a.Stages[key.Name]; found != nil {
			found.DeepCopyInto(into)
			return nil
		}
	case *corev1.Pod:
		if found := a.Pods[key.Name]; found != nil {
			found.DeepCopyInto(into)
			return nil
		}
	case *corev1.PersistentVolume:
		if found := a.Volumes[key.Name]; found != nil {
			found.DeepCopyInto(into)
			return nil
		}
	case *pavv1.PavVolume:
		if found := a.Records[key.Name]; found != nil {
			found.DeepCopyInto(into)
			return nil
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{Resource: "things"}, key.Name)
}

// List implements client.Reader.
func (a *API) List(_ context.Context, into client.ObjectList, options ...client.ListOption) error {
	a.Lock()
	defer a.Unlock()
	switch into := into.(type) {
	case *metav1.PartialObjectMetadataList:
		selector := (&client.ListOptions{}).ApplyOptions(options).LabelSelector
		for _, pod := range a.Pods {
			if selector.Matches(apilabels.Set(pod.Labels)) {
				into.Items = append(into.Items, metav1.PartialObjectMetadata{ObjectMeta: *pod.ObjectMeta.DeepCopy()})
			}
		}
	case *pavv1.PavStageList:
		for _, stage := range a.Stages {
			into.Items = append(into.Items, *stage.DeepCopy())
		}
	case *corev1.PodList:
		for _, pod := range a.Pods {
			if pod.Spec.NodeName != "" {
				into.Items = append(into.Items, *pod.DeepCopy())
			}
		}
	}
	return nil
}

// Patch sets the finalizers of a pod, as for its release.
func (a *API) Patch(_ context.Context, object client.Object, _ client.Patch, _ ...client.PatchOption) error {
	a.Lock()
	defer a.Unlock()
	a.Pods[object.GetName()].Finalizers = object.GetFinalizers()
	return nil
}

// Delete marks a pod as being deleted.
func (a *API) Delete(_ context.Context, object client.Object, _ ...client.DeleteOption) error {
	a.Lock()
	defer a.Unlock()
	a.Pods[object.GetName()].DeletionTimestamp = &metav1.Time{Time: time.Now()}
	return nil
}

// Status implements client.StatusClient.
func (a *API) Status() client.SubResourceWriter { return Status{API: a} }

// Status writes the status of PavStages.
type Status struct {
	client.SubResourceWriter
	API *API
}

// Update implements client.SubResourceWriter.
func (s Status) Update(_ context.Context, object client.Object, _ ...client.SubResourceUpdateOption) error {
	s.API.Lock()
	defer s.API.Unlock()
	s.API.Stages[object.GetName()].Status = object.(*pavv1.PavStage).DeepCopy().Status
	return nil
}

// SetPod changes the staging pod.
func (a *API) SetPod(change func(*corev1.Pod)) {
	a.Lock()
	defer a.Unlock()
	change(a.Pods["stage-1"])
}

// Events receives events, one line for each.
type Events chan string

// Event implements stage.EventRecorder.
func (e Events) Event(object runtime.Object, _, reason, message string) {
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

// Provisioners is a stage.Catalogue with one provisioner and no volume.
type Provisioners struct{ Recovery pavv1.StagingRecovery }

// VolumeNames implements stage.Catalogue.
func (Provisioners) VolumeNames(context.Context, string, string) ([]string, error) { return nil, nil }

// Provisioner implements stage.Catalogue.
func (p Provisioners) Provisioner(context.Context, string) (*pavv1.PavProvisioner, error) {
	return &pavv1.PavProvisioner{Spec: pavv1.PavProvisionerSpec{VolumeStaging: pavv1.VolumeStaging{Recovery: p.Recovery}}}, nil
}

// Machine is a node with kubelet's directory, which can have a stage named "stage-a".
type Machine struct {
	API     *API
	Events  Events
	Kubelet string
	Dirs    *pavdir.Directories
	Mounts  *mount.Namespace
}

// New returns a Machine without stages. The test must run in a mount namespace of its own.
func New(t *testing.T) *Machine {
	t.Helper()
	m := &Machine{
		API:    &API{Stages: map[string]*pavv1.PavStage{}, Pods: map[string]*corev1.Pod{}},
		Events: make(Events, 100), Kubelet: t.TempDir(),
	}
	Must(t, unix.Mount("kubelet", m.Kubelet, "tmpfs", 0, "mode=755"))
	Must(t, unix.Mount("", m.Kubelet, "", unix.MS_SHARED, ""))
	Must(t, os.Mkdir(m.Kubelet+"/plugins", 0o755))
	var err error
	m.Mounts, err = mount.Open("/proc/self/ns/mnt")
	Must(t, err)
	m.Dirs, err = pavdir.New(m.Mounts, m.Kubelet, func(string) {})
	Must(t, err)
	t.Cleanup(func() {
		Must(t, m.Dirs.Close())
		Must(t, unix.Unmount(m.Kubelet, unix.MNT_DETACH))
		Must(t, m.Mounts.Close())
	})
	return m
}

// PutStage creates a stage in the phase Staged, with a running staging pod. change may change the stage before that.
func (m *Machine) PutStage(t *testing.T, change func(*pavv1.PavStage)) {
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
	m.API.Stages["stage-a"] = stage
	m.API.Pods["stage-1"] = &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "pav-pods", Name: "stage-1", Finalizers: []string{pavv1.PodFinalizer},
			Labels:          map[string]string{pavv1.WorkflowLabel: pavv1.WorkflowStaging},
			Annotations:     map[string]string{pavv1.NodeAnnotation: "node"},
			OwnerReferences: []metav1.OwnerReference{{UID: "stage-uid", Controller: new(true)}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
	Must(t, m.Dirs.Record(t.Context(), "stage-a", pavdir.Stage{
		Driver: "driver", Handle: "handle", VolumeName: "pv", ClaimNamespace: "default", ClaimName: "claim", Boot: pavdir.Boot{BootID: "boot"},
	}))
}

// Attach mounts a file system as the volume of the stage, and publishes it for a client pod. A daemon serves the file
// system.
func (m *Machine) Attach(t *testing.T) *Daemon {
	t.Helper()
	volume := m.Dirs.Volume("stage-a")
	Must(t, os.MkdirAll(volume, 0o755))
	d := ServeFUSE(t, volume)
	m.Publish(t, "boot")
	return d
}

// Publish binds the attached volume to a target of the client pod "client", and records that.
func (m *Machine) Publish(t *testing.T, bootID string) {
	t.Helper()
	target := m.PodDirectory(t, "client-uid") + "/mount"
	Must(t, os.MkdirAll(target, 0o750))
	Must(t, unix.Mount(m.Dirs.Volume("stage-a"), target, "", unix.MS_BIND, ""))
	Must(t, m.Dirs.RecordPublication(t.Context(), "stage-a", pavdir.Publication{
		Target: target, Client: pavdir.Client{Namespace: "default", Name: "client", UID: "client-uid"}, Boot: pavdir.Boot{BootID: bootID},
	}))
}

// PodDirectory creates kubelet's directory for the volume of a pod, and returns its path.
func (m *Machine) PodDirectory(t *testing.T, uid types.UID) string {
	t.Helper()
	directory := filepath.Join(m.Kubelet, "pods", string(uid), "volumes/kubernetes.io~csi/pv")
	Must(t, os.MkdirAll(directory, 0o750))
	return directory
}

// Run simulates a container of a pod: a process with a mount namespace of its own, in which a file of the pod's directory
// is mounted. It returns a function that stops it, and that may be repeated.
func Run(ctx context.Context, kubelet string, uid types.UID) (stop func() error, err error) {
	hosts := filepath.Join(kubelet, "pods", string(uid), "etc-hosts")
	if err := errors.Join(os.MkdirAll(filepath.Dir(hosts), 0o750), os.WriteFile(hosts, nil, 0o600)); err != nil {
		return nil, fmt.Errorf("making the files of pod %s: %w", uid, err)
	}
	command := exec.CommandContext(ctx, "unshare", "--mount", "--propagation", "private",
		"sh", "-c", `mount --bind "$1" "$1" && echo started && cat`, "container", hosts)
	input, err := command.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("the container of pod %s: %w", uid, err)
	}
	output, err := command.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("the container of pod %s: %w", uid, err)
	}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("starting the container of pod %s: %w", uid, err)
	}
	stop = sync.OnceValue(func() error { return errors.Join(input.Close(), command.Wait()) })
	if _, err := io.ReadFull(output, make([]byte, len("started\n"))); err != nil {
		return nil, fmt.Errorf("starting the container of pod %s: %w", uid, errors.Join(err, stop()))
	}
	return stop, nil
}

// PodHeld reports whether the staging pod has its finalizer.
func (m *Machine) PodHeld() bool {
	m.API.Lock()
	defer m.API.Unlock()
	return slices.Contains(m.API.Pods["stage-1"].Finalizers, pavv1.PodFinalizer)
}

// Fail sets the status of a pod whose container was killed.
func Fail(pod *corev1.Pod) {
	pod.Status.Phase = corev1.PodFailed
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled"},
	}}}
}

// Must fails the test if err is not nil.
func Must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

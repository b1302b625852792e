package csi

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// world simulates the API server, the node's directories and a Waker, for one pod and one PavStage or record of the controller agent.
type world struct {
	pod      *corev1.Pod
	stage    *pavv1.PavStage
	volume   *pavv1.PavVolume
	snapshot *pavv1.PavSnapshot
	bucket   *pavv1.PavBucket
	access   *pavv1.PavBucketAccess
	err      error // of the API server

	published, unpublished, woken []string
	parted                        string // what Unpublish returns
	dirsErr                       error
	begun                         bool // what Begun returns
	publishing                    func()
	collector                     recordingCollector
}

func newWorld() *world {
	return &world{
		pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "stage-1", UID: "pod-uid",
			Labels: map[string]string{pavv1.WorkflowLabel: "stage", pavv1.StageLabel: "the-stage"},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: pavv1.GroupVersion.String(), Kind: "PavStage", Name: "the-stage", UID: "stage-uid", Controller: new(true),
			}},
		}},
		stage: &pavv1.PavStage{
			ObjectMeta: metav1.ObjectMeta{Name: "the-stage", UID: "stage-uid"},
			Spec:       pavv1.PavStageSpec{NodeName: "node1"},
			Status:     pavv1.PavStageStatus{StagingPod: &pavv1.PodReference{Namespace: "ns", Name: "stage-1"}},
		},
		parted: "the-stage",
	}
}

// Get implements client.Reader.
func (w *world) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if w.err != nil {
		return w.err
	}
	switch object := into.(type) {
	case *corev1.Pod:
		if w.pod != nil && key == client.ObjectKeyFromObject(w.pod) {
			w.pod.DeepCopyInto(object)
			return nil
		}
	case *pavv1.PavStage:
		if w.stage != nil && key == client.ObjectKeyFromObject(w.stage) {
			w.stage.DeepCopyInto(object)
			return nil
		}
	case *pavv1.PavVolume:
		if w.volume != nil && key == client.ObjectKeyFromObject(w.volume) {
			w.volume.DeepCopyInto(object)
			return nil
		}
	case *pavv1.PavSnapshot:
		if w.snapshot != nil && key == client.ObjectKeyFromObject(w.snapshot) {
			w.snapshot.DeepCopyInto(object)
			return nil
		}
	case *pavv1.PavBucket:
		if w.bucket != nil && key == client.ObjectKeyFromObject(w.bucket) {
			w.bucket.DeepCopyInto(object)
			return nil
		}
	case *pavv1.PavBucketAccess:
		if w.access != nil && key == client.ObjectKeyFromObject(w.access) {
			w.access.DeepCopyInto(object)
			return nil
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

// List implements client.Reader.
func (w *world) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errors.New("nothing is listed")
}

// Publish implements Directories.
func (w *world) Publish(_ context.Context, stage, target string) error {
	if w.publishing != nil {
		w.publishing()
	}
	w.published = append(w.published, stage+" at "+target)
	return w.dirsErr
}

// Unpublish implements Directories.
func (w *world) Unpublish(_ context.Context, target string) (string, error) {
	w.unpublished = append(w.unpublished, target)
	return w.parted, w.dirsErr
}

// Begun implements Directories.
func (w *world) Begun(context.Context, string, string) (bool, error) { return w.begun, w.dirsErr }

// Wake implements Waker.
func (w *world) Wake(stage string) { w.woken = append(w.woken, stage) }

// WakeAll implements Waker.
func (w *world) WakeAll() { w.woken = append(w.woken, "everybody") }

func (w *world) node() *pavNode {
	return &pavNode{nodeID: "node1", client: w, dirs: w, collector: &w.collector, waker: w, foreign: newForeignPods()}
}

// publish requests /pav, as kubelet does.
func (w *world) publish(ctx context.Context, change func(volumeContext map[string]string)) error {
	volumeContext := map[string]string{ephemeralKey: "true", podNamespaceKey: "ns", podNameKey: "stage-1", podUIDKey: "pod-uid"}
	switch {
	case w.volume != nil:
		volumeContext[podNameKey] = "create-1"
	case w.snapshot != nil:
		volumeContext[podNameKey] = "snapshot-1"
	case w.bucket != nil || w.access != nil:
		volumeContext[podNameKey] = "pod-1"
	}
	if change != nil {
		change(volumeContext)
	}
	_, err := w.node().NodePublishVolume(ctx, &csi.NodePublishVolumeRequest{VolumeId: "id", TargetPath: "/target", VolumeContext: volumeContext})
	return err
}

func TestAPodThatPavMadeGetsTheDirectoryOfItsStage(t *testing.T) {
	for name, change := range map[string]func(*world){
		"the staging pod": func(*world) {},
		"the validation pod of a static volume": func(w *world) {
			w.stage.Status.ValidationPod, w.stage.Status.StagingPod = w.stage.Status.StagingPod, nil
			w.pod.Labels[pavv1.WorkflowLabel] = "validate"
		},
		"the unstaging pod": func(w *world) {
			w.stage.Status.UnstagingPod, w.stage.Status.StagingPod = w.stage.Status.StagingPod, nil
		},
		"the unstaging pod of a stage that is being unstaged": func(w *world) {
			w.stage.Status.Phase = pavv1.StageUnstaging
			w.stage.Status.UnstagingPod, w.stage.Status.StagingPod = w.stage.Status.StagingPod, nil
		},
		"the unstaging pod, besides another staging pod": func(w *world) {
			w.stage.Status.UnstagingPod = w.stage.Status.StagingPod
			w.stage.Status.StagingPod = &pavv1.PodReference{Namespace: "ns", Name: "other"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			change(w)
			if err := w.publish(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{"the-stage at /target"}, w.published); diff != "" {
				t.Errorf("published (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnyOtherPodIsRefusedPav(t *testing.T) {
	other := func(key, value string) func(map[string]string) {
		return func(volumeContext map[string]string) { volumeContext[key] = value }
	}
	for name, test := range map[string]struct {
		change func(*world)
		asks   func(map[string]string)
		code   codes.Code
	}{
		"which is no inline volume":                 {asks: other(ephemeralKey, "false"), code: codes.InvalidArgument},
		"which says nothing of itself":              {asks: func(m map[string]string) { clear(m) }, code: codes.InvalidArgument},
		"which does not exist":                      {change: func(w *world) { w.pod = nil }, code: codes.PermissionDenied},
		"which is in another namespace":             {asks: other(podNamespaceKey, "other"), code: codes.PermissionDenied},
		"which is another one of that name":         {asks: other(podUIDKey, "other"), code: codes.PermissionDenied},
		"which nothing controls":                    {change: func(w *world) { w.pod.OwnerReferences = nil }, code: codes.PermissionDenied},
		"whose owner does not control it":           {change: func(w *world) { w.pod.OwnerReferences[0].Controller = nil }, code: codes.PermissionDenied},
		"which has no workflow":                     {change: func(w *world) { delete(w.pod.Labels, pavv1.WorkflowLabel) }, code: codes.PermissionDenied},
		"which has no labels":                       {change: func(w *world) { w.pod.Labels = nil }, code: codes.PermissionDenied},
		"which is labelled for another stage":       {change: func(w *world) { w.pod.Labels[pavv1.StageLabel] = "other" }, code: codes.PermissionDenied},
		"which something else of that name owns":    {change: func(w *world) { w.pod.OwnerReferences[0].Kind = "ReplicaSet" }, code: codes.PermissionDenied},
		"which another group's PavStage owns":       {change: func(w *world) { w.pod.OwnerReferences[0].APIVersion = "example.org/v1" }, code: codes.PermissionDenied},
		"which is labelled for a volume":            {change: func(w *world) { w.pod.Labels = map[string]string{pavv1.WorkflowLabel: "create"} }, code: codes.PermissionDenied},
		"which validates for no stage":              {change: func(w *world) { w.pod.Labels = map[string]string{pavv1.WorkflowLabel: "validate"} }, code: codes.PermissionDenied},
		"whose stage does not exist":                {change: func(w *world) { w.stage = nil }, code: codes.PermissionDenied},
		"whose stage is another one of that name":   {change: func(w *world) { w.stage.UID = "other" }, code: codes.PermissionDenied},
		"whose stage is on another node":            {change: func(w *world) { w.stage.Spec.NodeName = "node2" }, code: codes.PermissionDenied},
		"whose stage has no pod on record":          {change: func(w *world) { w.stage.Status.StagingPod = nil }, code: codes.PermissionDenied},
		"whose stage has another pod on record":     {change: func(w *world) { w.stage.Status.StagingPod.Name = "other" }, code: codes.PermissionDenied},
		"whose stage has a pod elsewhere on record": {change: func(w *world) { w.stage.Status.StagingPod.Namespace = "other" }, code: codes.PermissionDenied},
		"which comes when its stage is unstaged":    {change: func(w *world) { w.stage.Status.Phase = pavv1.StageUnstaging }, code: codes.PermissionDenied},
		"while the API server does not answer":      {change: func(w *world) { w.err = errors.New("connection refused") }, code: codes.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			if test.change != nil {
				test.change(w)
			}
			err := w.publish(t.Context(), test.asks)
			if status.Code(err) != test.code {
				t.Errorf("got %v, want the code %s", err, test.code)
			}
			if len(w.published)+len(w.collector.calls) > 0 {
				t.Errorf("%s %s is published", w.published, w.collector.calls)
			}
			if test.code == codes.PermissionDenied && !strings.Contains(err.Error(), "only for pods that PaV makes") {
				t.Errorf("%v does not say why", err)
			}
		})
	}
}

// A call that hangs may still publish after kubelet has given it up. So no call returns a final error meanwhile.
func TestPavIsPublishedByOneCallAtATime(t *testing.T) {
	w := newWorld()
	node, begun, goOn := w.node(), make(chan struct{}), make(chan struct{})
	w.publishing = func() {
		close(begun)
		<-goOn
	}
	request := &csi.NodePublishVolumeRequest{VolumeId: "id", TargetPath: "/target", VolumeContext: map[string]string{
		ephemeralKey: "true", podNamespaceKey: "ns", podNameKey: "stage-1", podUIDKey: "pod-uid",
	}}
	first := make(chan error, 1)
	go func() {
		_, err := node.NodePublishVolume(t.Context(), request)
		first <- err
	}()
	<-begun
	request.VolumeContext = map[string]string{ephemeralKey: "true", podNamespaceKey: "ns", podNameKey: "stage-1", podUIDKey: "other"}
	if _, err := node.NodePublishVolume(t.Context(), request); status.Code(err) != codes.Aborted {
		t.Errorf("a call beside got %v, want the code %s", err, codes.Aborted)
	}
	close(goOn)
	if err := <-first; err != nil {
		t.Error(err)
	}
	if _, err := node.NodePublishVolume(t.Context(), request); status.Code(err) != codes.PermissionDenied {
		t.Errorf("a call afterwards got %v, want the code %s", err, codes.PermissionDenied)
	}
}

func TestPavIsUnpublished_AndWakesWaiters(t *testing.T) {
	for name, test := range map[string]struct {
		parted string
		err    error
		woken  []string
		code   codes.Code
	}{
		"where the stage can be told":  {parted: "the-stage", woken: []string{"the-stage"}},
		"where it cannot be told":      {parted: "", woken: []string{"everybody"}},
		"where it cannot be unmounted": {err: errors.New("busy"), code: codes.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.parted, w.dirsErr = test.parted, test.err
			_, err := w.node().NodeUnpublishVolume(t.Context(), &csi.NodeUnpublishVolumeRequest{VolumeId: "id", TargetPath: "/target"})
			if status.Code(err) != test.code {
				t.Errorf("got %v, want the code %s", err, test.code)
			}
			if diff := cmp.Diff(test.woken, w.woken); diff != "" {
				t.Errorf("woken (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]string{"/target"}, w.unpublished); diff != "" {
				t.Errorf("unpublished (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCallsForPavThatLackAFieldAreInvalid(t *testing.T) {
	w := newWorld()
	for name, err := range map[string]error{
		"publishing without a volume":        second(w.node().NodePublishVolume(t.Context(), &csi.NodePublishVolumeRequest{TargetPath: "/target"})),
		"publishing without a target":        second(w.node().NodePublishVolume(t.Context(), &csi.NodePublishVolumeRequest{VolumeId: "id"})),
		"unpublishing without a volume":      second(w.node().NodeUnpublishVolume(t.Context(), &csi.NodeUnpublishVolumeRequest{TargetPath: "/target"})),
		"unpublishing from a relative path":  second(w.node().NodeUnpublishVolume(t.Context(), &csi.NodeUnpublishVolumeRequest{VolumeId: "id", TargetPath: "target"})),
		"unpublishing from a path with dots": second(w.node().NodeUnpublishVolume(t.Context(), &csi.NodeUnpublishVolumeRequest{VolumeId: "id", TargetPath: "/a/../b"})),
	} {
		if status.Code(err) != codes.InvalidArgument {
			t.Errorf("%s: got %v, want the code InvalidArgument", name, err)
		}
	}
	if len(w.published)+len(w.unpublished)+len(w.woken)+len(w.collector.calls) > 0 {
		t.Errorf("something was done: %+v", w)
	}
}

func second[T any](_ T, err error) error { return err }

package csi

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/node/collect"
	"github.com/albertofaria/pav/internal/node/pavdir"
)

// recordingCollector is a Collector that records its calls.
type recordingCollector struct {
	calls []string
	found bool // what Unpublish returns
	err   error
}

// Publish implements Collector.
func (c *recordingCollector) Publish(_ context.Context, volumeID string, pod pavdir.Pod, target string) error {
	call := fmt.Sprintf("%s of %s/%s (%s) at %s", volumeID, pod.Namespace, pod.Name, pod.UID, target)
	if pod.Credentials {
		call += ", with credentials"
	}
	c.calls = append(c.calls, call)
	return c.err
}

// Announce implements Collector.
func (c *recordingCollector) Announce(_ context.Context, pod pavdir.Pod) error {
	c.calls = append(c.calls, fmt.Sprintf("%s/%s (%s) has /pav", pod.Namespace, pod.Name, pod.UID))
	return nil
}

// AwaitReady implements Collector.
func (c *recordingCollector) AwaitReady(_ context.Context, volumeID string, _ pavdir.Pod) {
	c.calls = append(c.calls, "/pav/ready of "+volumeID)
}

// Unpublish implements Collector.
func (c *recordingCollector) Unpublish(_ context.Context, volumeID, target string) (bool, error) {
	if c.found || c.err != nil {
		c.calls = append(c.calls, volumeID+" from "+target)
	}
	return c.found, c.err
}

// newVolumeWorld returns a world with a creation pod of a PavVolume.
func newVolumeWorld() *world {
	return &world{
		pod: &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "ns", Name: "create-1", UID: "pod-uid",
				Labels: map[string]string{pavv1.WorkflowLabel: "create"},
				OwnerReferences: []metav1.OwnerReference{{
					APIVersion: pavv1.GroupVersion.String(), Kind: "PavVolume", Name: "the-volume", UID: "volume-uid", Controller: new(true),
				}},
			},
			Spec: corev1.PodSpec{NodeName: "node1"},
		},
		volume: &pavv1.PavVolume{
			ObjectMeta: metav1.ObjectMeta{Name: "the-volume", UID: "volume-uid"},
			Status:     pavv1.PavVolumeStatus{Pod: &pavv1.PodReference{Namespace: "ns", Name: "create-1"}},
		},
	}
}

func TestAPodOfTheControllerAgentGetsADirectoryOfItsOwn(t *testing.T) {
	for name, test := range map[string]struct {
		change   func(*world)
		announce bool
	}{
		"a creation pod":                    {func(*world) {}, true},
		"a creation pod, once more":         {func(w *world) { w.pod.Annotations = map[string]string{pavv1.GivenAnnotation: "true"} }, false},
		"one that cannot choose the handle": {func(w *world) { w.volume.Status.Plan = &pavv1.VolumePlan{Handle: "h"} }, false},
		"a validation pod":                  {func(w *world) { w.pod.Labels[pavv1.WorkflowLabel] = "validate" }, false},
		"a deletion pod":                    {func(w *world) { w.pod.Labels[pavv1.WorkflowLabel] = "delete" }, false},
		"one whose UID is recorded":         {func(w *world) { w.volume.Status.Pod.UID = "pod-uid" }, true},
		"one that goes on after /pav/ready": {func(w *world) { w.ready("pod-uid") }, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newVolumeWorld()
			test.change(w)
			want := []string{"id of ns/create-1 (pod-uid) at /target"}
			if test.announce {
				want = append(want, "ns/create-1 (pod-uid) has /pav")
			}
			if err := w.publish(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, w.collector.calls); diff != "" || len(w.published) > 0 {
				t.Errorf("published %s, and by the collector (-want +got):\n%s", w.published, diff)
			}
		})
	}
}

// ready records that the creation pod has created /pav/ready.
func (w *world) ready(pod types.UID) {
	status := &w.volume.Status
	status.CreationPod, status.Pod = status.Pod, nil
	status.CreationPod.UID = pod
}

func TestAnyOtherPodIsRefusedADirectoryOfItsOwn(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*world)
		code   codes.Code
	}{
		"which is another one of that name":              {func(w *world) { w.pod.UID = "other" }, codes.PermissionDenied},
		"which nothing controls":                         {func(w *world) { w.pod.OwnerReferences = nil }, codes.PermissionDenied},
		"whose owner does not control it":                {func(w *world) { w.pod.OwnerReferences[0].Controller = nil }, codes.PermissionDenied},
		"which has no workflow":                          {func(w *world) { w.pod.Labels = nil }, codes.PermissionDenied},
		"of a workflow that is a stage's":                {func(w *world) { w.pod.Labels[pavv1.WorkflowLabel] = "stage" }, codes.PermissionDenied},
		"of an unknown workflow":                         {func(w *world) { w.pod.Labels[pavv1.WorkflowLabel] = "other" }, codes.PermissionDenied},
		"which something else of that name owns":         {func(w *world) { w.pod.OwnerReferences[0].Kind = "PersistentVolumeClaim" }, codes.PermissionDenied},
		"which a PavStage of that name owns":             {func(w *world) { w.pod.OwnerReferences[0].Kind = "PavStage" }, codes.PermissionDenied},
		"which another group's PavVolume owns":           {func(w *world) { w.pod.OwnerReferences[0].APIVersion = "example.org/v1" }, codes.PermissionDenied},
		"which is on another node":                       {func(w *world) { w.pod.Spec.NodeName = "node2" }, codes.PermissionDenied},
		"which is on no node":                            {func(w *world) { w.pod.Spec.NodeName = "" }, codes.PermissionDenied},
		"whose volume does not exist":                    {func(w *world) { w.pod.OwnerReferences[0].Name = "other" }, codes.PermissionDenied},
		"whose volume is another one of that name":       {func(w *world) { w.volume.UID = "other" }, codes.PermissionDenied},
		"whose volume has no pod on record":              {func(w *world) { w.volume.Status.Pod = nil }, codes.PermissionDenied},
		"whose volume has another pod on record":         {func(w *world) { w.volume.Status.Pod.Name = "other" }, codes.PermissionDenied},
		"whose volume has a pod elsewhere on record":     {func(w *world) { w.volume.Status.Pod.Namespace = "other" }, codes.PermissionDenied},
		"whose volume has an earlier pod's UID recorded": {func(w *world) { w.volume.Status.Pod.UID = "other" }, codes.PermissionDenied},
		"whose volume has another pod that was ready":    {func(w *world) { w.ready("other") }, codes.PermissionDenied},
		"while the API server does not answer":           {func(w *world) { w.err = errors.New("connection refused") }, codes.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			w := newVolumeWorld()
			test.change(w)
			err := w.publish(t.Context(), nil)
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

// Kubelet never unpublishes after a final error. So there is a final error only if nothing is on the node.
func TestAPodThatIsNoLongerPaVs_GetsAFinalError_OnlyIfNothingIsLeft(t *testing.T) {
	for name, test := range map[string]struct {
		begun   bool
		dirsErr error
		code    codes.Code
	}{
		"nothing is on the node":           {code: codes.PermissionDenied},
		"an earlier call was interrupted":  {begun: true, code: codes.Aborted},
		"nobody knows what is on the node": {dirsErr: errors.New("the disk is gone"), code: codes.Aborted},
	} {
		t.Run(name, func(t *testing.T) {
			w := newVolumeWorld()
			w.volume.Status.Pod = nil
			w.begun, w.dirsErr = test.begun, test.dirsErr
			if err := w.publish(t.Context(), nil); status.Code(err) != test.code {
				t.Errorf("got %v, want the code %s", err, test.code)
			}
			if len(w.published)+len(w.collector.calls) > 0 {
				t.Errorf("%s %s is published", w.published, w.collector.calls)
			}
		})
	}
}

func TestErrorsOfTheCollectorReachKubelet_AndNothingElseIsDone(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		code codes.Code
	}{
		"it succeeds":                      {nil, codes.OK},
		"another call is going on":         {collect.ErrBusy, codes.Aborted},
		"the volume ID is none":            {pavdir.ErrVolumeID, codes.InvalidArgument},
		"the API server does not answer":   {errors.New("connection refused"), codes.Unavailable},
		"its time is over in the meantime": {context.DeadlineExceeded, codes.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			w := newVolumeWorld()
			w.pod.Labels[pavv1.WorkflowLabel] = "delete"
			w.collector.err, w.collector.found = test.err, true
			if err := w.publish(t.Context(), nil); status.Code(err) != test.code {
				t.Errorf("publishing: got %v, want the code %s", err, test.code)
			}
			_, err := w.node().NodeUnpublishVolume(t.Context(), &csi.NodeUnpublishVolumeRequest{VolumeId: "id", TargetPath: "/target"})
			if status.Code(err) != test.code {
				t.Errorf("unpublishing: got %v, want the code %s", err, test.code)
			}
			if len(w.published)+len(w.unpublished)+len(w.woken) > 0 {
				t.Errorf("a stage is served: %+v", w)
			}
			if diff := cmp.Diff([]string{"id of ns/create-1 (pod-uid) at /target", "id from /target"}, w.collector.calls); diff != "" {
				t.Errorf("calls of the collector (-want +got):\n%s", diff)
			}
		})
	}
}

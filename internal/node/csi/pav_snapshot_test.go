package csi

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// newSnapshotWorld returns a world with a snapshot creation pod of a PavSnapshot.
func newSnapshotWorld() *world {
	return &world{
		pod: &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "ns", Name: "snapshot-1", UID: "pod-uid",
				Labels: map[string]string{pavv1.WorkflowLabel: "snapshot"},
				OwnerReferences: []metav1.OwnerReference{{
					APIVersion: pavv1.GroupVersion.String(), Kind: "PavSnapshot", Name: "the-snapshot", UID: "snapshot-uid", Controller: new(true),
				}},
			},
			Spec: corev1.PodSpec{NodeName: "node1"},
		},
		snapshot: &pavv1.PavSnapshot{
			ObjectMeta: metav1.ObjectMeta{Name: "the-snapshot", UID: "snapshot-uid"},
			Status:     pavv1.PavSnapshotStatus{Pod: &pavv1.PodReference{Namespace: "ns", Name: "snapshot-1"}},
		},
	}
}

func TestAPodOfASnapshotGetsADirectoryOfItsOwn(t *testing.T) {
	const publishes, announces, awaits = "id of ns/snapshot-1 (pod-uid) at /target", "ns/snapshot-1 (pod-uid) has /pav", "/pav/ready of id"
	for name, test := range map[string]struct {
		change func(*world)
		want   []string
	}{
		"a creation pod":                    {func(*world) {}, []string{publishes, announces}},
		"a creation pod, once more":         {func(w *world) { w.pod.Annotations = map[string]string{pavv1.GivenAnnotation: "true"} }, []string{publishes}},
		"one that cannot choose the handle": {func(w *world) { w.snapshot.Status.PlannedHandle = "h" }, []string{publishes}},
		"one that may create /pav/ready":    {func(w *world) { w.pod.Spec.RestartPolicy = corev1.RestartPolicyNever }, []string{publishes, announces, awaits}},
		"a deletion pod":                    {func(w *world) { w.pod.Labels[pavv1.WorkflowLabel] = "unsnapshot" }, []string{publishes}},
		"one whose UID is recorded":         {func(w *world) { w.snapshot.Status.Pod.UID = "pod-uid" }, []string{publishes, announces}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newSnapshotWorld()
			test.change(w)
			if err := w.publish(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, w.collector.calls); diff != "" || len(w.published) > 0 {
				t.Errorf("published %s, and by the collector (-want +got):\n%s", w.published, diff)
			}
		})
	}
}

func TestAPodThatNoSnapshotKnowsIsRefusedADirectoryOfItsOwn(t *testing.T) {
	for name, change := range map[string]func(*world){
		"which is on another node":                         func(w *world) { w.pod.Spec.NodeName = "node2" },
		"of a workflow that is a volume's":                 func(w *world) { w.pod.Labels[pavv1.WorkflowLabel] = "create" },
		"of a workflow that is a stage's":                  func(w *world) { w.pod.Labels[pavv1.WorkflowLabel] = "stage" },
		"which a PavVolume of that name owns":              func(w *world) { w.pod.OwnerReferences[0].Kind = "PavVolume" },
		"whose snapshot does not exist":                    func(w *world) { w.pod.OwnerReferences[0].Name = "other" },
		"whose snapshot is another one of that name":       func(w *world) { w.snapshot.UID = "other" },
		"whose snapshot has no pod on record":              func(w *world) { w.snapshot.Status.Pod = nil },
		"whose snapshot has another pod on record":         func(w *world) { w.snapshot.Status.Pod.Name = "other" },
		"whose snapshot has an earlier pod's UID recorded": func(w *world) { w.snapshot.Status.Pod.UID = "other" },
	} {
		t.Run(name, func(t *testing.T) {
			w := newSnapshotWorld()
			change(w)
			if err := w.publish(t.Context(), nil); status.Code(err) != codes.PermissionDenied {
				t.Errorf("got %v, want the code %s", err, codes.PermissionDenied)
			}
			if len(w.published)+len(w.collector.calls) > 0 {
				t.Errorf("%s %s is published", w.published, w.collector.calls)
			}
		})
	}
}

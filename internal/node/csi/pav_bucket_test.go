package csi

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// newPodOf returns a pod of a workflow, which an object controls.
func newPodOf(kind string, uid types.UID, workflow string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "pod-1", UID: "pod-uid", Labels: map[string]string{pavv1.WorkflowLabel: workflow},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: pavv1.GroupVersion.String(), Kind: kind, Name: "owner", UID: uid, Controller: new(true)}},
		},
		Spec: corev1.PodSpec{NodeName: "node1"},
	}
}

// newBucketWorld returns a world with a creation pod of a PavBucket, and newAccessWorld one with a grant pod of a PavBucketAccess.
func newBucketWorld() *world {
	return &world{
		pod: newPodOf("PavBucket", "bucket-uid", "create-bucket"),
		bucket: &pavv1.PavBucket{
			ObjectMeta: metav1.ObjectMeta{Name: "owner", UID: "bucket-uid"},
			Status:     pavv1.PavBucketStatus{Pod: &pavv1.PodReference{Namespace: "ns", Name: "pod-1"}},
		},
	}
}

func newAccessWorld() *world {
	return &world{
		pod: newPodOf("PavBucketAccess", "access-uid", "grant"),
		access: &pavv1.PavBucketAccess{
			ObjectMeta: metav1.ObjectMeta{Name: "owner", UID: "access-uid"},
			Status:     pavv1.PavBucketAccessStatus{Pod: &pavv1.PodReference{Namespace: "ns", Name: "pod-1"}},
		},
	}
}

func TestPodsOfBucketsAndAccessesGetADirectoryOfTheirOwn(t *testing.T) {
	const (
		publishes, announces, awaits = "id of ns/pod-1 (pod-uid) at /target", "ns/pod-1 (pod-uid) has /pav", "/pav/ready of id"

		withCredentials = publishes + ", with credentials"
	)
	of := func(workflow string) func(*world) {
		return func(w *world) { w.pod.Labels[pavv1.WorkflowLabel] = workflow }
	}
	once := func(w *world) { w.pod.Annotations = map[string]string{pavv1.GivenAnnotation: "true"} }
	never := func(w *world) { w.pod.Spec.RestartPolicy = corev1.RestartPolicyNever }
	for name, test := range map[string]struct {
		world  *world
		change func(*world)
		want   []string
	}{
		"a creation pod":                       {newBucketWorld(), func(*world) {}, []string{publishes, announces}},
		"a creation pod, once more":            {newBucketWorld(), once, []string{publishes}},
		"one that cannot choose the ID":        {newBucketWorld(), func(w *world) { w.bucket.Status.PlannedBucketID = "b" }, []string{publishes, announces}},
		"one that may create /pav/ready":       {newBucketWorld(), never, []string{publishes, announces, awaits}},
		"a validation pod":                     {newBucketWorld(), of("validate-bucket"), []string{publishes}},
		"an update pod":                        {newBucketWorld(), of("update-bucket"), []string{publishes}},
		"a deletion pod":                       {newBucketWorld(), of("delete-bucket"), []string{publishes}},
		"one whose UID is recorded":            {newBucketWorld(), func(w *world) { w.bucket.Status.Pod.UID = "pod-uid" }, []string{publishes, announces}},
		"a grant pod":                          {newAccessWorld(), func(*world) {}, []string{withCredentials, announces}},
		"a grant pod, once more":               {newAccessWorld(), once, []string{withCredentials}},
		"a grant pod that may be ready":        {newAccessWorld(), never, []string{withCredentials, announces, awaits}},
		"a grant pod whose UID is recorded":    {newAccessWorld(), func(w *world) { w.access.Status.Pod.UID = "pod-uid" }, []string{withCredentials, announces}},
		"a revocation pod":                     {newAccessWorld(), of("revoke"), []string{publishes}},
		"a revocation pod that is never ready": {newAccessWorld(), func(w *world) { of("revoke")(w); never(w) }, []string{publishes}},
	} {
		t.Run(name, func(t *testing.T) {
			w := test.world
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

func TestAPodThatNoBucketOrAccessKnowsIsRefusedADirectoryOfItsOwn(t *testing.T) {
	for name, change := range map[string]func(w *world, record **pavv1.PodReference, uid *types.UID){
		"which is on another node":            func(w *world, _ **pavv1.PodReference, _ *types.UID) { w.pod.Spec.NodeName = "node2" },
		"which is another one of that name":   func(w *world, _ **pavv1.PodReference, _ *types.UID) { w.pod.UID = "other" },
		"of a workflow that is a volume's":    func(w *world, _ **pavv1.PodReference, _ *types.UID) { w.pod.Labels[pavv1.WorkflowLabel] = "create" },
		"of a workflow that is a snapshot's":  func(w *world, _ **pavv1.PodReference, _ *types.UID) { w.pod.Labels[pavv1.WorkflowLabel] = "snapshot" },
		"which a PavVolume of that name owns": func(w *world, _ **pavv1.PodReference, _ *types.UID) { w.pod.OwnerReferences[0].Kind = "PavVolume" },
		"which another group's object owns": func(w *world, _ **pavv1.PodReference, _ *types.UID) {
			w.pod.OwnerReferences[0].APIVersion = "example.org/v1"
		},
		"whose record does not exist":                func(w *world, _ **pavv1.PodReference, _ *types.UID) { w.pod.OwnerReferences[0].Name = "other" },
		"whose record is another one of that name":   func(_ *world, _ **pavv1.PodReference, uid *types.UID) { *uid = "other" },
		"whose record has no pod":                    func(_ *world, record **pavv1.PodReference, _ *types.UID) { *record = nil },
		"whose record has another pod":               func(_ *world, record **pavv1.PodReference, _ *types.UID) { (*record).Name = "other" },
		"whose record has a pod elsewhere":           func(_ *world, record **pavv1.PodReference, _ *types.UID) { (*record).Namespace = "other" },
		"whose record has an earlier pod's UID":      func(_ *world, record **pavv1.PodReference, _ *types.UID) { (*record).UID = "other" },
		"of the other kind's workflow and same name": func(w *world, _ **pavv1.PodReference, _ *types.UID) { w.swapWorkflow() },
	} {
		for kind, w := range map[string]*world{"bucket": newBucketWorld(), "access": newAccessWorld()} {
			t.Run(name+", of a "+kind, func(t *testing.T) {
				if w.bucket != nil {
					change(w, &w.bucket.Status.Pod, &w.bucket.UID)
				} else {
					change(w, &w.access.Status.Pod, &w.access.UID)
				}
				if err := w.publish(t.Context(), nil); status.Code(err) != codes.PermissionDenied {
					t.Errorf("got %v, want the code %s", err, codes.PermissionDenied)
				}
				if len(w.published)+len(w.collector.calls) > 0 {
					t.Errorf("%s %s is published", w.published, w.collector.calls)
				}
			})
		}
	}
}

// swapWorkflow makes a pod of a bucket one that is a grant pod by its label, and the other way round.
func (w *world) swapWorkflow() {
	other := pavv1.WorkflowGrant
	if w.access != nil {
		other = pavv1.WorkflowBucketCreation
	}
	w.pod.Labels[pavv1.WorkflowLabel] = other
}

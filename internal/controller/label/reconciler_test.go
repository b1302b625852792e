package label

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/reconcile"
	"github.com/albertofaria/pav/internal/reconcile/reconciletest"
	"github.com/albertofaria/pav/internal/workflow"
)

// beside returns another handle that the index has in the same bucket.
func beside(t *testing.T, driver, handle string) string {
	t.Helper()
	for i := range 100_000 {
		if other := fmt.Sprintf("h%d", i); reconcile.Bucket(reconcile.Storage(driver, other)) == reconcile.Bucket(reconcile.Storage(driver, handle)) {
			return other
		}
	}
	t.Fatal("no other handle is in the bucket")
	return ""
}

var begin = time.Unix(1000, 0)

func pvOf(name, driver, handle string, age time.Duration, labels map[string]string) *corev1.PersistentVolume {
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{
		Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(begin.Add(-age)), Labels: labels,
	}}
	pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: handle}
	return pv
}

func provisionerOf(name string, accepted metav1.ConditionStatus) *pavv1.PavProvisioner {
	p := &pavv1.PavProvisioner{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if accepted != "" {
		p.Status.Conditions = []metav1.Condition{{Type: pavv1.ProvisionerAccepted, Status: accepted, Reason: "ForeignCSIDriver", Message: "of another"}}
	}
	return p
}

// Where one of two PersistentVolumes of a storage has the labels, node agents do not see the other without: it must be the
// newer one.
func TestReconcile_LabelsAllOfAStorage_TheOldestFirst(t *testing.T) {
	right := workflow.VolumeLabels("demo", "h")
	volumes := []client.Object{
		pvOf("a-new", "demo", "h", time.Minute, nil), pvOf("b-old", "demo", "h", time.Hour, map[string]string{pavv1.StorageLabel: "wrong"}),
		pvOf("c-oldest", "demo", "h", 2*time.Hour, right), pvOf("d-newest", "demo", "h", 0, nil), pvOf("other", "demo", beside(t, "demo", "h"), 3*time.Hour, nil),
		pvOf("refused", "refused", "h", 0, nil), pvOf("unjudged", "unjudged", "h", 0, nil), pvOf("foreign", "foreign", "h", 0, nil),
		provisionerOf("demo", metav1.ConditionTrue), provisionerOf("refused", metav1.ConditionFalse), provisionerOf("unjudged", ""),
	}
	for name, test := range map[string]struct {
		of, fails string
		want      []string
	}{
		"the newest":             {"d-newest", "", []string{"b-old", "a-new", "d-newest"}},
		"one in between":         {"a-new", "", []string{"b-old", "a-new", "d-newest"}},
		"the first is refused":   {"d-newest", "b-old", nil},
		"a later one is refused": {"d-newest", "a-new", []string{"b-old"}},
		"one that has them":      {"c-oldest", "", nil},
		"another storage":        {"other", "", []string{"other"}},
		"a refused provisioner":  {"refused", "", nil},
		"not judged yet":         {"unjudged", "", nil},
		"another driver":         {"foreign", "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			kube := interceptor.NewClient(reconciletest.Client(t, volumes...), interceptor.Funcs{
				Patch: func(ctx context.Context, w client.WithWatch, o client.Object, patch client.Patch, options ...client.PatchOption) error {
					if o.GetName() == test.fails {
						return errors.New("refused")
					}
					got = append(got, o.GetName())
					return w.Patch(ctx, o, patch, options...)
				},
			})
			_, err := (&Reconciler{Client: kube}).Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: test.of}})
			if (err != nil) != (test.fails != "") {
				t.Errorf("got error %v", err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("labelled (-want +got):\n%s", diff)
			}
			for _, name := range slices.Compact(got) {
				pv := &corev1.PersistentVolume{}
				if err := kube.Get(t.Context(), types.NamespacedName{Name: name}, pv); err != nil || !reconcile.IsLabelled(pv) {
					t.Errorf("%s has the labels %v, error %v", name, pv.Labels, err)
				}
			}
		})
	}
}

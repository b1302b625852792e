package volume

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/reconcile/reconciletest"
)

// A change of the definition brings a pass of the volumes that it may matter to, and of no others.
func TestUnsettled(t *testing.T) {
	for name, test := range map[string]struct {
		state *state
		want  int
	}{
		"in use":                {state: onNodes().with(shown)},
		"is to grow on a node":  {state: onNodes().with(kubeletSays(corev1.PersistentVolumeClaimNodeResizePending))},
		"cannot grow on a node": {state: onNodes().with(kubeletSays(corev1.PersistentVolumeClaimNodeResizeInfeasible)), want: 1},
		"an expansion has failed": {state: failedToGrow("2Gi", pavv1.FailurePodFailed, 1).with(func(o *observation) {
			setCondition(o.volume, &o.volume.Status, pavv1.VolumeExpanded, "ExpansionFailed", "m")
		}), want: 1},
		"is not provisioned": {state: growable("1Gi").with(func(o *observation) { o.volume.Status.Phase = pavv1.VolumePending }), want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			o := test.state.o
			o.user.Spec.VolumeName = o.volume.Name
			o.volume.Spec.Provisioner = "demo"
			c := reconciletest.Client(t, o.volume, o.user)
			r := &Reconciler{Client: c, Live: c, Events: record.NewFakeRecorder(1)}
			got := r.unsettled(t.Context(), &pavv1.PavProvisioner{ObjectMeta: metav1.ObjectMeta{Name: "demo"}})
			if len(got) != test.want {
				t.Errorf("got %v, want %d", got, test.want)
			}
		})
	}
}

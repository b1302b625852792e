package volume

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// isRead records that a pod reads the volume.
func isRead(o *observation) { o.readers = []string{"PavSnapshot snapshot-1"} }

// hasDependents records a snapshot that cannot exist without the volume.
func hasDependents(o *observation) { o.dependents = []string{"snapshot-1"} }

// waitsForReaders records that the volume is to grow when it is not read any more.
func waitsForReaders(o *observation) {
	o.volume.Status.Conditions = []metav1.Condition{{Type: pavv1.VolumeExpanded, Status: metav1.ConditionFalse, Reason: pavv1.ReasonBeingRead}}
}

func TestDecide_OnReaders(t *testing.T) {
	released := func() *state { return in(pavv1.VolumeReady, corev1.VolumeReleased, deletePolicy) }
	tests := map[string]struct {
		state     *state
		want      step
		condition string
		message   string
	}{
		"it is read":                                          {state: growable("1Gi").with(isRead), want: stepDone},
		"it is read, and is to grow":                          {state: growable("2Gi").with(isRead), want: stepWait, condition: pavv1.VolumeExpanded, message: "waiting for PavSnapshot snapshot-1"},
		"it is read, and its pod has run":                     {state: growable("2Gi").with(recordedIs("2Gi")).with(shown).with(isRead), want: stepUpdatePV},
		"it is read, and is to be deleted":                    {state: released().with(withDeletionPod).with(isRead), want: stepWait, condition: pavv1.VolumeDeleted, message: "waiting for PavSnapshot snapshot-1"},
		"it is read, and is to be deleted without a pod":      {state: released().with(isRead), want: stepWait, condition: pavv1.VolumeDeleted, message: "waiting for PavSnapshot snapshot-1"},
		"it has snapshots, and is to grow":                    {state: growable("2Gi").with(hasDependents), want: stepExpand},
		"it has snapshots, and is to be deleted":              {state: released().with(withDeletionPod).with(hasDependents), want: stepWait, condition: pavv1.VolumeDeleted, message: `such as PavSnapshot "snapshot-1"`},
		"it has snapshots, and is to be deleted without one":  {state: released().with(hasDependents), want: stepWait, condition: pavv1.VolumeDeleted, message: `such as PavSnapshot "snapshot-1"`},
		"it has snapshots, and is retained":                   {state: in(pavv1.VolumeReady, corev1.VolumeReleased, retainPolicy).with(hasDependents), want: stepRetain},
		"its growth waited for readers, and is not wanted":    {state: growable("2Gi").with(claimDeleted).with(waitsForReaders), want: stepDropReaders},
		"it is recorded of something gone that it reads this": {state: growable("2Gi").with(func(o *observation) { o.formerReaders = []pavv1.Reader{{Name: "snapshot-1"}} }), want: stepDropReaders},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			d := decide(test.state.o)
			if d.Step != test.want || d.Condition != test.condition || !strings.Contains(d.Message, test.message) || (test.message == "") != (d.Message == "") {
				t.Errorf("got %s (%s, %s: %q), want %s, %s: %q", d.Step, d.Rule, d.Condition, d.Message, test.want, test.condition, test.message)
			}
		})
	}
}

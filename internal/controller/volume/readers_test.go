package volume

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/reconcile/reconciletest"
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

// A snapshot that cannot exist without its volume keeps it, also after the definition was changed.
func TestGatherReaders_FindsDependents(t *testing.T) {
	depends := func(o *observation) {
		o.provisioner.Spec.SnapshotCreation = &pavv1.SnapshotCreation{DependsOnVolume: true}
	}
	removed := func(o *observation) { o.provisioner.Spec.SnapshotCreation = nil }
	gone := func(o *observation) { o.provisioner = nil }
	for name, test := range map[string]struct {
		change   func(*observation)
		recorded bool
		handle   string
		want     bool
	}{
		"it was made so": {change: depends, recorded: true, want: true},
		"it was made so, and the definition is another": {change: removed, recorded: true, want: true},
		"it was made so, and the definition is gone":    {change: gone, recorded: true, want: true},
		"it does not say, and the definition does":      {change: depends, want: true},
		"it does not say, nor does the definition":      {change: removed},
		"it is of another volume":                       {change: depends, recorded: true, handle: "other"},
	} {
		t.Run(name, func(t *testing.T) {
			s := in(pavv1.VolumeReady, corev1.VolumeReleased, deletePolicy).with(test.change)
			snapshot := &pavv1.PavSnapshot{ObjectMeta: metav1.ObjectMeta{Name: "s"}, Status: pavv1.PavSnapshotStatus{DependsOnVolume: test.recorded}}
			snapshot.Spec.Provisioner, snapshot.Spec.VolumeName, snapshot.Spec.VolumeHandle = s.o.volume.Spec.Provisioner, s.o.volume.Name, s.o.volume.Status.Handle+test.handle
			r := &Reconciler{Client: reconciletest.Client(t, snapshot)}
			if err := r.gatherReaders(t.Context(), &s.o); err != nil || len(s.o.dependents) > 0 != test.want {
				t.Errorf("got %q, %v", s.o.dependents, err)
			}
		})
	}
}

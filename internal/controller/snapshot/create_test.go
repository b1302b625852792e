package snapshot

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/podplan"
	"github.com/albertofaria/pav/internal/reconcile/reconciletest"
)

// What a pod has cut counts only if the volume is still the claim's, according to the API server: the cache may be behind.
func TestOutcome_OfAVolumeThatIsGivenAway(t *testing.T) {
	for name, test := range map[string]struct {
		recorded, bound types.UID
		refused         bool
	}{
		"the volume is the claim's":            {recorded: "u-claim", bound: "u-claim"},
		"the volume is another claim's":        {recorded: "u-claim", bound: "u-other", refused: true},
		"the volume is no claim's":             {recorded: "u-claim", refused: true},
		"the record does not say whose it was": {bound: "u-other"},
	} {
		t.Run(name, func(t *testing.T) {
			s := requested().with(intends(pavv1.SnapshotCreating), thePod(ended(corev1.PodSucceeded), reports(`{}`)))
			s.record.Spec.ClaimUID = test.recorded
			s.pv.Spec.ClaimRef = &corev1.ObjectReference{UID: "u-claim"}
			live := s.pv.DeepCopy()
			if live.Spec.ClaimRef = nil; test.bound != "" {
				live.Spec.ClaimRef = &corev1.ObjectReference{UID: test.bound}
			}
			r := &Reconciler{Live: reconciletest.Client(t, live)}
			if _, err := r.outcome(t.Context(), s.observation, s.pod()); podplan.IsRefusal(err) != test.refused || !test.refused && err != nil {
				t.Errorf("got %v", err)
			}
		})
	}
}

// Whether a snapshot needs its volume is that of the definition by which it was cut.
func TestBeginning_RecordsDependenceUntilTheCut(t *testing.T) {
	r := &Reconciler{Now: func() time.Time { return noon }}
	for phase, want := range map[pavv1.SnapshotPhase]bool{"": true, pavv1.SnapshotPending: true, pavv1.SnapshotCut: false} {
		s := requested()
		s.record.Status.Phase, s.provisioner.Spec.SnapshotCreation.DependsOnVolume = phase, true
		if r.beginning(s.observation, nil)(&s.record.Status); s.record.Status.DependsOnVolume != want {
			t.Errorf("in phase %q: got %t", phase, !want)
		}
	}
}

// A snapshot is where its volume was when it was cut: the volume may be gone, or moved, when its processing is repeated.
func TestBeginning_RecordsTopologyUntilTheCut(t *testing.T) {
	here, there := []pavv1.TopologyLabels{{"zone": "here"}}, []pavv1.TopologyLabels{{"zone": "there"}}
	r := &Reconciler{Now: func() time.Time { return noon }}
	for name, test := range map[string]struct {
		state *state
		want  []pavv1.TopologyLabels
	}{
		"it is not cut":                      {requested(), there},
		"it is cut, and its volume is moved": {requested().with(phase(pavv1.SnapshotCut)), here},
		"it is cut, and its volume is gone":  {requested().with(phase(pavv1.SnapshotCut), func(s *state) { s.volume, s.pv = nil, nil }), here},
	} {
		t.Run(name, func(t *testing.T) {
			status := &test.state.record.Status
			status.AccessibleTopology = here
			if test.state.volume != nil {
				test.state.volume.Status.AccessibleTopology = there
			}
			r.beginning(test.state.observation, nil)(status)
			if diff := cmp.Diff(test.want, status.AccessibleTopology); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

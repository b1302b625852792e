package snapshot

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

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

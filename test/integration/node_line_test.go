package integration

import (
	"fmt"
	"maps"
	"testing"
	"time"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/test/agent"
)

// nodeLines has the unreliable connections that the node agent must cope with. In the long suite, each of its caches is
// also behind.
func nodeLines() map[string]agent.Faults {
	lines := maps.Clone(unreliable)
	all := map[string]time.Duration{}
	for i, resource := range []string{"pods", "pavstages", "pavprovisioners"} {
		all[resource] = time.Duration(i+3) * 200 * time.Millisecond
		if long() {
			lines["the cache of "+resource+" is behind"] = agent.Faults{Late: map[string]time.Duration{resource: 700 * time.Millisecond}}
		}
	}
	lines["all caches are behind, each by another time"] = agent.Faults{Late: all}
	return lines
}

// The connection of the node agent is unreliable during a volume's whole life: each pod still runs exactly once.
func TestNode_UnreliableLine(t *testing.T) {
	for name, faults := range nodeLines() {
		t.Run(name, func(t *testing.T) {
			n := newNode(t, workers(t, newDevices(t)))
			a := n.LaunchWith(t, n.agentConfig, faults)
			t.Cleanup(func() { a.Stop(t) })
			lives := 0
			for len(missing(faults, a.Usage(t).Strikes)) > 0 && lives < 40 && !t.Failed() || lives == 0 {
				t.Run(fmt.Sprintf("from %d", lives), func(t *testing.T) {
					for range 2 { // Side by side, since only events of another object can overtake one.
						v := n.volume(t, fmt.Sprintf("served-%d", lives))
						lives++
						t.Run(v.Handle, func(t *testing.T) {
							t.Parallel()
							n.liveOnce(t, v)
							n.wantRuns(t, v, runs(pavv1.WorkflowStaging, pavv1.WorkflowUnstaging))
						})
					}
				})
			}
			n.checkLeft(t)
			wantStruck(t, faults, a.Usage(t).Strikes)
		})
	}
}

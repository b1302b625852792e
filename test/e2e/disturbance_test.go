package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/test/seed"
)

// long reports whether there is time for what takes longer.
func long() bool { return os.Getenv("PAV_LONG") != "" }

// disturbances returns how often the agents are disturbed.
func disturbances() int {
	return often(5, 100)
}

// Agents are killed at any moment, while volumes are in use and others come and go. Pods that use a volume are not
// affected, pods that wait get their volumes, and nothing is left. The test ends when enough agents were killed and enough
// pods came and went, however long that takes on a slow machine.
func TestAgentsKilledAtAnyMoment_ClientsContinue(t *testing.T) {
	namespace := start(t)
	chosen := seed.Of(t)
	random := seed.Stream(chosen, 0)
	volumes := useVolumes(t, namespace, nodes...)
	churners, begins, finish := startChurn(t, namespace, chosen)

	fallenInto, kills := map[string]int{}, 0
	for i := 0; i < disturbances() || kills <= disturbances()/3; i++ {
		during := awaitMoment(t, random, begins)
		agent, err := chooseAgent(t.Context(), random, during)
		must(t, err)
		kind := chooseDisturbance(random, agent)
		doing, err := goingOn(t.Context(), churners)
		must(t, err)
		moment := time.Now()
		killed, err := kind.apply(t.Context(), agent)
		must(t, err)
		if killed {
			kills++
		}
		for _, what := range doing {
			fallenInto[what]++
		}
		ended := containerID(agent)
		if !killed && !kind.deleted {
			ended = "" // There was no process to kill.
		}
		waitAgents(t, ended)
		t.Logf("%d: %s on %s, %s, during %q (%s); ready after %.1f s", i+1, component(agent), agent.Spec.NodeName, kind.name,
			during.what, strings.Join(doing, ", "), time.Since(moment).Seconds())
		volumes.checkUndisturbed(t)
		if t.Failed() {
			t.FailNow()
		}
	}
	awaitChurn(t, churners)
	finish()
	volumes.checkUndisturbed(t)
	logChurn(t, churners, fallenInto)
	t.Logf("%d processes were killed", kills)
}

// leastChurn is how many pods of each churner must have come and gone.
const leastChurn = 2

// awaitChurn waits until enough pods of each churner came and went.
func awaitChurn(t *testing.T, churners []*churner) {
	t.Helper()
	for _, c := range churners {
		within(t, leastChurn*stepTimeout, c.name+" lets pods come and go", func(context.Context) error {
			if c.failed.Load() {
				t.FailNow()
			}
			if rounds := c.rounds.Load(); rounds < leastChurn {
				return fmt.Errorf("it has done so %d times, and is %s", rounds, c.doing.Load().what)
			}
			return nil
		})
	}
}

// awaitMoment waits for a random moment: some time after a churner has begun a random activity. If the activity were not
// chosen, short ones would hardly ever be hit.
func awaitMoment(t *testing.T, random *rand.Rand, begins <-chan activity) activity {
	t.Helper()
	within := map[string]time.Duration{makingClaim: 200 * time.Millisecond, startingPod: 2 * time.Second, deletingPod: 2 * time.Second, deletingClaim: 200 * time.Millisecond}
	wanted := []string{makingClaim, startingPod, startingPod, deletingPod, deletingPod, deletingClaim}[random.IntN(6)]
	after := time.Duration(random.Int64N(int64(within[wanted])))
	timeout := time.NewTimer(stepTimeout) // Every round has all of these.
	defer timeout.Stop()
	for {
		select {
		case begun := <-begins:
			if begun.what == wanted {
				pause(t.Context(), after)
				return begun
			}
		case <-timeout.C:
			t.Fatalf("no churner has begun %s within %s", wanted, stepTimeout)
		case <-t.Context().Done():
			t.FailNow()
		}
	}
}

// goingOn returns what the churners do, and what PavStages are not settled.
func goingOn(ctx context.Context, churners []*churner) ([]string, error) {
	var doing []string
	for _, c := range churners {
		doing = append(doing, c.doing.Load().what)
	}
	stages := &pavv1.PavStageList{}
	if err := kube.List(ctx, stages); err != nil {
		return nil, err
	}
	for i := range stages.Items {
		if phase := stages.Items[i].Status.Phase; phase != pavv1.StageStaged {
			doing = append(doing, fmt.Sprintf("a PavStage is %q", phase))
		}
	}
	return doing, nil
}

// logChurn logs which activities were disturbed.
func logChurn(t *testing.T, churners []*churner, fallenInto map[string]int) {
	t.Helper()
	for _, c := range churners {
		t.Logf("%s: %d pods came and went", c.name, c.rounds.Load())
	}
	var lines []string
	for what, n := range fallenInto {
		lines = append(lines, fmt.Sprintf("%s: %d", what, n))
	}
	slices.Sort(lines)
	t.Logf("the disturbances fell into this:\n%s", strings.Join(lines, "\n"))
}

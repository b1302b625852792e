package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// long says whether there is time for what takes longer.
func long() bool { return os.Getenv("PAV_LONG") != "" }

// disturbances returns how often the agents are disturbed.
func disturbances() int {
	return often(5, 100)
}

// seed returns what random choices follow from: PAV_SEED, to repeat those of an earlier run, or a new one.
func seed(t *testing.T) uint64 {
	t.Helper()
	value := rand.Uint64()
	if text := os.Getenv("PAV_SEED"); text != "" {
		var err error
		value, err = strconv.ParseUint(text, 10, 64)
		must(t, err)
	}
	t.Logf("to choose the same again: PAV_SEED=%d", value)
	return value
}

// While volumes are in use, and others come and go, agents end at any moment: nobody who uses a volume
// notices, all who wait get theirs, and all cleans up.
func TestAgentsKilledAtAnyMoment_ClientsGoOn(t *testing.T) {
	namespace := start(t)
	seed := seed(t)
	random := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // It is to be repeatable.
	volumes := useVolumes(t, namespace, nodes...)
	churners, begins, finish := startChurn(t, namespace, seed)

	fallenInto, kills := map[string]int{}, 0
	for i := range disturbances() {
		during := awaitMoment(t.Context(), random, begins)
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
		waitAgents(t, containerID(agent))
		t.Logf("%d: %s on %s, %s, during %q (%s); ready after %.1f s", i+1, component(agent), agent.Spec.NodeName, kind.name,
			during.what, strings.Join(doing, ", "), time.Since(moment).Seconds())
		volumes.checkUndisturbed(t)
		if t.Failed() {
			t.FailNow()
		}
	}
	finish()
	volumes.checkUndisturbed(t)
	logChurn(t, churners, fallenInto)
	if t.Logf("%d processes were killed", kills); kills < disturbances()/3 {
		t.Errorf("only %d processes were killed", kills)
	}
}

// awaitMoment waits for a random moment: a while after a churner has begun to do something that is
// chosen, too, as what takes little time would otherwise hardly ever be hit.
func awaitMoment(ctx context.Context, random *rand.Rand, begins <-chan activity) activity {
	within := map[string]time.Duration{makingClaim: 200 * time.Millisecond, startingPod: 2 * time.Second, deletingPod: 2 * time.Second, deletingClaim: 200 * time.Millisecond}
	wanted := []string{makingClaim, startingPod, startingPod, deletingPod, deletingPod, deletingClaim}[random.IntN(6)]
	after := time.Duration(random.Int64N(int64(within[wanted])))
	timeout := time.NewTimer(20 * time.Second) // There may be no leader for 15 s.
	defer timeout.Stop()
	for {
		select {
		case begun := <-begins:
			if begun.what == wanted {
				pause(ctx, after)
				return begun
			}
		case <-timeout.C:
			return activity{what: "nothing in particular"}
		case <-ctx.Done():
			return activity{}
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

// logChurn says what the disturbances fell into, and fails the test where they fell into nothing.
func logChurn(t *testing.T, churners []*churner, fallenInto map[string]int) {
	t.Helper()
	for _, c := range churners {
		t.Logf("%s: %d pods came and went", c.name, c.rounds)
		if c.rounds < 2 {
			t.Errorf("%s made %d pods: nothing was going on", c.name, c.rounds)
		}
	}
	var lines []string
	for what, n := range fallenInto {
		lines = append(lines, fmt.Sprintf("%s: %d", what, n))
	}
	slices.Sort(lines)
	t.Logf("the disturbances fell into this:\n%s", strings.Join(lines, "\n"))
}

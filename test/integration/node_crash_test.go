package integration

import (
	"context"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/test/kubelet"
	"github.com/albertofaria/pav/test/seed"
)

// long reports whether tests are to take their time.
func long() bool { return os.Getenv("PAV_LONG") != "" }

// every returns n if only every n-th moment of a fault is tried; 1 in the long suite.
func every(few int) int {
	if long() {
		return 1
	}
	return few
}

// nodeState is what must be the same on a node whenever its agent was killed on the way there.
type nodeState struct {
	Mounts []string
	Stages []string
	Runs   map[string]int
}

// Names that differ between lives.
var (
	uids        = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
	stageNames  = regexp.MustCompile(`stage-[0-9a-f]{20}`)
	volumeNames = regexp.MustCompile(`pv-node-\d+-\d+`)
)

func withoutNames(text string) string {
	return volumeNames.ReplaceAllString(stageNames.ReplaceAllString(uids.ReplaceAllString(text, "UID"), "STAGE"), "PV")
}

// state returns the node's, when its pods have settled.
func (n *node) state(t *testing.T, v kubelet.Volume) nodeState {
	t.Helper()
	eventually(t, "the pods have settled", func(context.Context) (bool, string) { return n.Settled(), "" })
	mounts, err := n.Mounts()
	if err != nil {
		t.Fatal(err)
	}
	s := nodeState{Runs: n.Journal.Runs(v.Handle)}
	for _, mount := range mounts {
		s.Mounts = append(s.Mounts, withoutNames(mount))
	}
	for _, stage := range n.stages(t) {
		s.Stages = append(s.Stages, describe(&stage))
	}
	slices.Sort(s.Mounts)
	slices.Sort(s.Stages)
	return s
}

// describe returns what must be the same of a PavStage.
func describe(stage *pavv1.PavStage) string {
	conditions := map[string]string{}
	for _, c := range stage.Status.Conditions {
		conditions[c.Type] = string(c.Status) + " " + c.Reason + " " + c.Message
	}
	client := ""
	if c := stage.Spec.Client; c != nil {
		client = c.Name
	}
	expansion := "none"
	if e := stage.Status.Expansion; e != nil {
		expansion = fmt.Sprintf("to %s, attempt %d, pod %t, recorded %t, %v, has %s", e.Target.String(), e.Attempt, e.Pod != nil, e.Recorded, e.Failure, stage.Status.Capacity)
	}
	return withoutNames(fmt.Sprintf("%s %s %q attempt %d, unstaging attempt %d, staging pod %t, failures %v %v, restaging %t, expansion %s, finalizers %v, %v",
		stage.Spec.Scope, stage.Status.Phase, client, stage.Status.Attempt, stage.Status.UnstagingAttempt, stage.Status.StagingPod != nil,
		stage.Status.StagingFailure, stage.Status.UnstagingFailure, stage.Status.Restaging, expansion, stage.Finalizers, conditions))
}

// liveOnce takes a volume through its life, and returns what was on the node when two clients had it.
func (n *node) liveOnce(t *testing.T, v kubelet.Volume) nodeState {
	t.Helper()
	writer, reader := clientOf(v, 1), clientOf(v, 2)
	reader.ReadOnly = true
	n.stage(t, v)
	n.publish(t, v, writer)
	n.publish(t, v, reader)
	n.wantRead(t, v, writer)
	n.wantRead(t, v, reader)
	n.expand(t, v, writer, 2<<30)
	seen := n.state(t, v)
	n.unpublish(t, v, writer)
	n.unpublish(t, v, reader)
	n.unstage(t, v)
	return seen
}

// The agent is killed after each of its effects in turn, which are its writes to the API server and its
// changes to the mount table. The next one goes on where it ended: pods run once, and in the end
// everything is as if nothing had happened. Without PAV_LONG, some effects are chosen by chance.
func TestNode_AgentKilledAfterEachEffect(t *testing.T) {
	for _, scope := range slices.Sorted(maps.Keys(scopes)) {
		for _, kind := range kinds {
			t.Run(scope+", "+kind, func(t *testing.T) { killAfterEach(t, scope, kind) })
		}
	}
}

// sampled is how many effects agents are killed after where there is no time for all.
const sampled = 2

func killAfterEach(t *testing.T, scope, kind string) {
	t.Helper()
	n := newNode(t, workers(t, newDevices(t)), scopes[scope], growsOnNodes)
	undisturbed := n.Launch(t, n.agentConfig, 0)
	v := n.volume(t, kind+"-undisturbed")
	want := n.liveOnce(t, v)
	wantRuns := n.Journal.Runs(v.Handle)
	n.checkLeft(t)
	undisturbed.Stop(t)
	effects := undisturbed.Effects(t)
	if len(effects) < 20 {
		t.Fatalf("the agent had only the effects %q", effects)
	}

	struck := 0
	for _, k := range seed.Random(t).Perm(len(effects)) {
		if struck == sampled && !long() {
			break
		}
		t.Run(fmt.Sprintf("after effect %d", k+1), func(t *testing.T) {
			if n.killAfter(t, k+1, fmt.Sprintf("%s-%d", kind, k), want, wantRuns) {
				struck++
			}
		})
	}
	t.Logf("killed after %d of %d effects: %s", struck, len(effects), withoutNames(strings.Join(effects, "\n")))
	if enough := len(effects) * 3 / 4; struck < sampled || long() && struck < enough {
		t.Errorf("only %d agents were killed", struck)
	}
}

// killAfter lets the agent be killed after so many of its effects in the life of a volume, and says whether it had
// as many: what it does by itself differs from life to life.
func (n *node) killAfter(t *testing.T, effects int, handle string, want nodeState, wantRuns map[string]int) (killed bool) {
	t.Helper()
	first, second := n.Launch(t, n.agentConfig, effects), n.Prepare(t, n.agentConfig, 0)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		<-first.Ended()
		second.Go()
	}()
	v := n.volume(t, handle)
	got := n.liveOnce(t, v)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the node with two clients (-undisturbed +got):\n%s", diff)
	}
	n.wantRuns(t, v, wantRuns)
	n.checkLeft(t)
	had := first.Effects(t)
	t.Logf("its last effect: %s", withoutNames(had[len(had)-1]))
	select {
	case <-first.Ended():
		killed = true
	default:
		if t.Logf("it had %d effects only", len(had)); len(had) >= effects {
			t.Errorf("it had %d effects, and was not killed after %d", len(had), effects)
		}
		first.Kill(t)
	}
	<-stopped
	first.Check(t)
	second.Stop(t)
	return killed
}

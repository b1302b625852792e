package integration

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller"
	"github.com/albertofaria/pav/test/agent"
	"github.com/albertofaria/pav/test/seed"
)

// leading returns the options of an agent beside which others run.
func leading() controller.Options {
	o := agent.Options(namespace)
	o.LeaderElect, o.LeaseDuration = true, 6*time.Second
	return o
}

// leader returns the identity of the agent that has the lease, or "".
func leader(ctx context.Context, c *cluster) (string, error) {
	lease := &coordinationv1.Lease{}
	err := c.Admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "pav-controller"}, lease)
	return ptr.Deref(lease.Spec.HolderIdentity, ""), client.IgnoreNotFound(err)
}

// awaitLeader waits until an agent leads that is not the given one, and returns its identity.
func awaitLeader(t *testing.T, c *cluster, not string) string {
	t.Helper()
	holder := ""
	eventually(t, "an agent leads", func(ctx context.Context) (bool, string) {
		var err error
		holder, err = leader(ctx, c)
		return err == nil && holder != "" && holder != not, fmt.Sprintf("%q leads, %v", holder, err)
	})
	return holder
}

// happens waits until a channel is closed. The test fails, and it returns false, if that takes too long.
func happens(t *testing.T, what string, done <-chan struct{}) bool {
	t.Helper()
	select {
	case <-done:
		return true
	case <-time.After(deadline):
		t.Errorf("it does not happen that %s", what)
		return false
	}
}

// A leader stalls before one of its writes for longer than its lease, and continues with that write while another leader
// acts: each pod runs exactly once.
func TestLeaderStalls_AndContinuesWhileTheOtherActs(t *testing.T) {
	const writes = 14 // of the least that there are in a life with all pods
	c := start(t)
	times, held := 3, 0
	if long() {
		times = writes
	}
	for _, after := range seed.Random(t).Perm(writes)[:times] {
		t.Run(fmt.Sprintf("after write %d", after+1), func(t *testing.T) {
			former, err := leader(t.Context(), c) // which may not have given the lease up
			if err != nil {
				t.Fatal(err)
			}
			first := agent.Launch(t, c.agent, leading(), &agent.Line{StallAfter: after + 1, MayEnd: true})
			stalled := awaitLeader(t, c, former)
			second := agent.Launch(t, c.agent, leading(), &agent.Line{MayEnd: true})
			t.Cleanup(func() {
				late := first.Line.Resume()
				second.Stop(t)
				first.Stop(t)
				checkNothingLeft(t, c)
				if t.Logf("what the stalled leader wrote late: %q", late); len(late) > 0 {
					held++
				}
			})
			resumed := make(chan struct{})
			go func() {
				defer close(resumed)
				if !happens(t, "the leader stalls", first.Line.Stalled()) {
					return
				}
				awaitLeader(t, c, stalled)
				eventually(t, "the other one has acted", func(context.Context) (bool, string) {
					return len(second.Line.Writes()) > 0, "it has written nothing"
				})
				first.Line.Resume()
			}()
			h := runFakeKubelets(t, c, func(string, int) int32 { return 0 })
			if seen := liveWithPods(t, c); seen != "made by hand 2Gi" {
				t.Errorf("the volume was %s", seen)
			}
			<-resumed
			happens(t, "the stalled leader finds that it does not lead any more", first.Ended())
			if diff := cmp.Diff(map[string]int{"validate": 1, "create": 1, "delete": 1}, h.rest()); diff != "" {
				t.Errorf("pods (-want +got):\n%s", diff)
			}
		})
	}
	if t.Logf("%d leaders stalled", held); held < times {
		t.Errorf("%d leaders were to stall", times)
	}
}

// recovery is how soon after the return of the API server everything must be as without the outage.
const recovery = time.Minute

// The API server is unavailable for longer than the leader's lease: the agent ends, and so do its replacements, until the
// API server is back. Then pending requests are served soon.
func TestAPIServerDown_ForLongerThanTheLease(t *testing.T) {
	const name = "outage"
	c := start(t)
	line, config := newRelay(t, c.agent)
	s := agent.Supervise(t, config, leading(), 0)
	t.Cleanup(func() { s.Stop(t); checkNothingLeft(t, c) })
	driver(t, c, name, func(p *pavv1.PavProvisioner, _ *storagev1.StorageClass) {
		withAllPods(p)
		p.Spec.VolumeCreation.Handle = field(`"{{ defaultHandle }}"`)
	})
	h := runFakeKubelets(t, c, func(string, int) int32 { return 0 })
	ending := mustCreate(t, c, claimOf(name, "ending"))
	pv, volume := bound(t, c, ending)

	line.set(true, false)
	if !happens(t, "the leader ends without its lease", s.First().Ended()) {
		t.FailNow()
	}
	mustDelete(t, c, ending)
	beginning := mustCreate(t, c, claimOf(name, "beginning"))
	line.set(false, false)
	back := time.Now()
	_, other := bound(t, c, beginning)
	gone(t, c, pv)
	gone(t, c, volume)
	if took := time.Since(back); took > recovery {
		t.Errorf("all was as it should be %s after the API server was back, not within %s", took, recovery)
	}
	mustDelete(t, c, beginning)
	gone(t, c, other)
	noPodIsLeft(t, c)
	if diff := cmp.Diff(map[string]int{"validate": 2, "create": 2, "delete": 2}, h.rest()); diff != "" {
		t.Errorf("pods (-want +got):\n%s", diff)
	}
}

package csi

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// agent is a node agent as far as kubelet sees it.
type agent struct {
	*Registry
	kubelet *pluginManager
	end     func() // as it ends when it is restarted
}

// newAgent returns an agent that tries again sooner than a real one.
func (k *pluginManager) newAgent(t *testing.T) *agent {
	t.Helper()
	r, err := NewRegistry(".", KubeletRecord{Node: "node1", Reader: k}, testr.New(t))
	must(t, err)
	r.pace = pace{
		slots: 10, slotTimeout: time.Minute, silence: time.Minute, retry: 50 * time.Millisecond,
		refusal: 50 * time.Millisecond, maxRefusal: time.Second,
	}
	t.Cleanup(r.Close)
	return &agent{Registry: r, kubelet: k}
}

// start lets the agent register its drivers.
func (a *agent) start(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	a.end = func() {
		if cancel(); ended != nil {
			must(t, happens(t, "the agent ends", ended))
			ended = nil
		}
		a.Close()
	}
	t.Cleanup(a.end)
}

// next starts the next agent, with drivers by their topology keys.
func (k *pluginManager) next(t *testing.T, former *agent, drivers map[string][]string) *agent {
	t.Helper()
	if former != nil {
		former.end()
	}
	a := k.newAgent(t)
	a.register(t, drivers)
	a.start(t)
	return a
}

func (a *agent) register(t *testing.T, drivers map[string][]string) {
	t.Helper()
	for name, keys := range drivers {
		must(t, a.Register(name, ForProvisioner(name, "node1", "1", nil, Topology{Keys: keys, Nodes: a.kubelet})))
	}
}

// settles waits until the agent knows that kubelet has all of its drivers, with the topology keys.
func (a *agent) settles(t *testing.T, want map[string]string) {
	t.Helper()
	eventually(t, fmt.Sprintf("kubelet has %v, and the agent knows", want), func() bool {
		a.mu.Lock()
		for _, d := range a.drivers {
			if d.registration.wanted && (d.registration.step != answered || d.registration.answer != kubeletRegistered) {
				a.mu.Unlock()
				return false
			}
		}
		a.mu.Unlock()
		return maps.Equal(want, a.kubelet.drivers())
	})
}

// many returns drivers without topology keys, and what kubelet has of them then.
func many(number int) (drivers map[string][]string, want map[string]string) {
	drivers, want = map[string][]string{}, map[string]string{}
	for i := range number {
		name := fmt.Sprintf("driver-%04d", i)
		drivers[name], want[name] = nil, ""
	}
	return drivers, want
}

// wantHistory checks how often each driver was registered, and which drivers have left the CSINode.
func (k *pluginManager) wantHistory(t *testing.T, counts map[string]int, removals ...string) {
	t.Helper()
	got := see(k, func() map[string]int { return maps.Clone(k.counts) })
	if diff := cmp.Diff(counts, got); diff != "" {
		t.Errorf("registrations (-want +got):\n%s", diff)
	}
	left := see(k, func() []string { return slices.Sorted(slices.Values(k.removals)) })
	if !slices.Equal(left, removals) {
		t.Errorf("%q have left the CSINode, want %q", left, removals)
	}
}

func once(drivers map[string][]string) map[string]int {
	counts := map[string]int{}
	for name := range drivers {
		counts[name] = 1
	}
	return counts
}

func TestAfterARestart_AllDriversAnswer_AndKubeletHasSeenNothing(t *testing.T) {
	k := newKubelet(t)
	k.run(t)
	drivers, want := many(100)
	a := k.next(t, nil, drivers)
	a.settles(t, want)
	for range 3 {
		reads := see(k, func() int { return k.reads })
		a = k.next(t, a, drivers)
		for name := range drivers {
			wantVersion(t, a.socket(name), name+" 1")
		}
		a.settles(t, want)
		if more := see(k, func() int { return k.reads }) - reads; more != 1 {
			t.Errorf("kubelet's record was read %d times, want once for all drivers", more)
		}
		must(t, a.Alive(nil))
	}
	k.wantHistory(t, once(drivers))
}

func TestDriversThatWereDeletedWhileNoAgentRan_AreUnregistered_AndNewOnesRegistered(t *testing.T) {
	k := newKubelet(t)
	k.run(t)
	a := k.next(t, nil, map[string][]string{"stays": nil, "deleted": nil})
	a.settles(t, map[string]string{"stays": "", "deleted": ""})
	a.end()
	a = k.newAgent(t)
	a.register(t, map[string][]string{"stays": nil, "new": nil})
	must(t, a.Prune(nil))
	a.start(t)
	a.settles(t, map[string]string{"stays": "", "new": ""})
	k.wantHistory(t, map[string]int{"stays": 1, "deleted": 1, "new": 1}, "deleted")
	wantFiles(t, a.Registry, a.socket("stays"), a.registration("stays"), a.socket("new"), a.registration("new"))
}

func TestTopologyThatChangedWhileNoAgentRan_IsRegisteredAgain(t *testing.T) {
	k := newKubelet(t)
	k.run(t)
	a := k.next(t, nil, map[string][]string{"changed": {"zone"}, "same": {"rack", "zone"}, "lacking": {"pool", "zone"}, "none": nil})
	a.settles(t, map[string]string{"changed": "zone", "same": "rack+zone", "lacking": "zone", "none": ""})
	a.end()
	see(k, func() any { k.labels["pool"] = "p1"; return nil })
	a = k.next(t, a, map[string][]string{"changed": {"rack"}, "same": {"zone", "rack"}, "lacking": {"pool", "zone"}, "none": {"absent"}})
	a.settles(t, map[string]string{"changed": "rack", "same": "rack+zone", "lacking": "pool+zone", "none": ""})
	k.wantHistory(t, map[string]int{"changed": 2, "same": 1, "lacking": 2, "none": 1}, "changed", "lacking")
}

// Kubelet, which has been restarted, asks for a topology that is soon that of before again.
func TestTopologyThatChangesWhileKubeletRegisters_IsTheLastOneInTheEnd(t *testing.T) {
	k := newKubelet(t)
	stop := k.run(t)
	a := k.next(t, nil, map[string][]string{"driver": {"zone"}})
	a.settles(t, map[string]string{"driver": "zone"})
	stop()
	a.register(t, map[string][]string{"driver": {"rack"}})
	asked := k.asked
	k.hold = make(chan struct{})
	k.run(t)
	eventually(t, "kubelet has asked", func() bool { return see(k, func() int { return k.asked }) > asked })
	a.register(t, map[string][]string{"driver": {"zone"}})
	a.settles(t, map[string]string{"driver": "zone"})
	close(k.hold)
	eventually(t, "kubelet has registered the other topology", func() bool { return see(k, func() int { return k.counts["driver"] }) > 1 })
	a.settles(t, map[string]string{"driver": "zone"})
}

func TestADriverThatKubeletRefuses_IsRegisteredLater_ByEveryKubelet(t *testing.T) {
	for name, forgetful := range map[string]bool{"kubelet tries again": false, "kubelet until 1.33": true} {
		t.Run(name, func(t *testing.T) {
			k := newKubelet(t)
			k.forgetful = forgetful
			k.refuse["refused"] = 2
			k.run(t)
			a := k.next(t, nil, map[string][]string{"refused": nil, "other": nil})
			a.settles(t, map[string]string{"refused": "", "other": ""})
			k.wantHistory(t, map[string]int{"refused": 1, "other": 1})
		})
	}
}

func TestADriverThatKubeletHasLost_IsRegisteredAgain(t *testing.T) {
	k := newKubelet(t)
	stop := k.run(t)
	drivers := map[string][]string{"lost": nil, "kept": nil}
	a := k.next(t, nil, drivers)
	a.settles(t, map[string]string{"lost": "", "kept": ""})
	a.end()
	stop()
	k.run(t)
	// Kubelet has missed the event of this link.
	see(k, func() any { delete(k.paths, a.registration("lost")); delete(k.csiNode, "lost"); return nil })
	a = k.next(t, a, drivers)
	a.settles(t, map[string]string{"lost": "", "kept": ""})
}

func TestKubeletsRecordThatCannotBeRead_LeavesAllAsItIs(t *testing.T) {
	k := newKubelet(t)
	k.run(t)
	a := k.next(t, nil, map[string][]string{"driver": {"zone"}, "old": nil})
	a.settles(t, map[string]string{"driver": "zone", "old": ""})
	see(k, func() any { k.unread = errors.New("connection refused"); return nil })
	a = k.next(t, a, map[string][]string{"driver": {"rack"}, "old": nil, "new": nil})
	eventually(t, "a driver without a link is registered", func() bool {
		return maps.Equal(k.drivers(), map[string]string{"driver": "zone", "old": "", "new": ""})
	})
	k.wantHistory(t, map[string]int{"driver": 1, "old": 1, "new": 1})
	see(k, func() any { k.unread = nil; return nil })
	a.settles(t, map[string]string{"driver": "rack", "old": "", "new": ""})
	k.wantHistory(t, map[string]int{"driver": 2, "old": 1, "new": 1}, "driver")
}

func TestKubeletIsRestarted_AndFindsAllDrivers(t *testing.T) {
	k := newKubelet(t)
	stop := k.run(t)
	drivers, want := many(20)
	a := k.next(t, nil, drivers)
	a.settles(t, want)
	for _, agentRuns := range []bool{true, false} {
		stop()
		see(k, func() any { clear(k.counts); return nil })
		if !agentRuns {
			a.end()
		}
		stop = k.run(t)
		if !agentRuns {
			eventually(t, "kubelet has tried in vain", func() bool { return see(k, func() int { return len(k.retry) }) == len(drivers) })
			a = k.next(t, a, drivers)
		}
		eventually(t, "kubelet has registered all drivers", func() bool { return see(k, func() int { return len(k.counts) }) == len(drivers) })
		a.settles(t, want)
		k.wantHistory(t, once(drivers))
	}
}

// An agent before this version had a socket where kubelet looks for drivers. It may also come back for a while.
func TestTheSocketsOfAnEarlierVersion_AreReplacedByLinks(t *testing.T) {
	k := newKubelet(t)
	k.run(t)
	drivers, want := many(30)
	a := k.next(t, nil, drivers)
	a.settles(t, want)
	a.end()
	for name := range drivers {
		earlier, err := listenOn(a.registration(name))
		must(t, err)
		must(t, unix.Close(earlier))
	}
	a = k.next(t, a, drivers)
	a.settles(t, want)
	for name := range drivers {
		if target, err := os.Readlink(a.registration(name)); err != nil || target != linkTarget(name) {
			t.Errorf("%s links to %q, %v", name, target, err)
		}
	}
}

func TestNewDrivers_AreRegisteredAFewAtATime_PavsOwnFirst(t *testing.T) {
	k := newKubelet(t)
	k.hold = make(chan struct{})
	k.run(t)
	drivers, want := many(60)
	drivers[pavv1.Driver], want[pavv1.Driver] = nil, ""
	a := k.next(t, nil, drivers)
	eventually(t, "kubelet has asked the first", func() bool { return see(k, func() int { return k.asked }) == a.pace.slots })
	if _, err := os.Readlink(a.registration(pavv1.Driver)); err != nil {
		t.Errorf("PaV's own driver is not among the first: %v", err)
	}
	close(k.hold)
	a.settles(t, want)
	k.wantHistory(t, once(drivers))
	if busiest := see(k, func() int { return k.busiest }); busiest > a.pace.slots {
		t.Errorf("kubelet registered %d drivers at once, of at most %d", busiest, a.pace.slots)
	}
}

func TestADriverThatIsRemovedBeforeItsTurn_IsNeverRegistered(t *testing.T) {
	k := newKubelet(t)
	k.hold = make(chan struct{})
	k.run(t)
	a := k.newAgent(t)
	a.pace.slots = 1
	a.start(t)
	a.register(t, map[string][]string{"first": nil})
	eventually(t, "kubelet has asked", func() bool { return see(k, func() int { return k.asked }) == 1 })
	a.register(t, map[string][]string{"removed": nil})
	eventually(t, "the driver waits for its turn", func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		return len(a.queue) == 1
	})
	must(t, a.Unregister("removed"))
	a.register(t, map[string][]string{"last": nil})
	close(k.hold)
	a.settles(t, map[string]string{"first": "", "last": ""})
	wantFiles(t, a.Registry, a.socket("first"), a.registration("first"), a.socket("last"), a.registration("last"))
}

// Kubelet may be stopped, or unable to answer.
func TestDriversThatKubeletDoesNotAnswerFor_DoNotHoldUpOthers(t *testing.T) {
	k := newKubelet(t)
	drivers, want := many(30)
	for name := range drivers {
		if len(k.mute) < 15 {
			k.mute[name] = true
		}
	}
	k.run(t)
	a := k.newAgent(t)
	a.pace.slotTimeout, a.pace.silence = 100*time.Millisecond, 500*time.Millisecond
	a.register(t, drivers)
	a.start(t)
	a.settles(t, want) // By kubelet's record.
}

func TestALinkThatCannotBeMade_IsTriedAgain(t *testing.T) {
	k := newKubelet(t)
	k.run(t)
	a := k.newAgent(t)
	a.start(t)
	// A link cannot replace a directory that is not empty.
	must(t, os.MkdirAll(a.registration("driver")+"/file", 0o755))
	a.register(t, map[string][]string{"driver": nil, "other": nil})
	eventually(t, "another driver is registered", func() bool { return maps.Equal(k.drivers(), map[string]string{"other": ""}) })
	must(t, os.RemoveAll(a.registration("driver")))
	a.settles(t, map[string]string{"driver": "", "other": ""})
}

func TestNothingOfAnAgentIsLeft_ButSocketsAndLinks(t *testing.T) {
	k := newKubelet(t)
	before := runtime.NumGoroutine()
	stop := k.run(t)
	a := k.next(t, nil, map[string][]string{"driver": nil})
	a.settles(t, map[string]string{"driver": ""})
	a.end()
	stop()
	eventually(t, "no goroutine is left", func() bool { return runtime.NumGoroutine() <= before })
	wantFiles(t, a.Registry, a.socket("driver"), a.registration("driver"))
}

func TestDecideRegistration(t *testing.T) {
	for name, test := range map[string]struct {
		snapshot snapshot
		want     action
	}{
		"kubelet finds no link":                                 {snapshot{}, tellKubelet},
		"kubelet finds no link, but has the driver":             {snapshot{known: true, has: true}, tellKubelet},
		"kubelet has refused it":                                {snapshot{linked: true, refused: true}, tellKubelet},
		"kubelet has refused it, and its record is of before":   {snapshot{linked: true, refused: true, known: true, has: true}, tellKubelet},
		"what kubelet has is not known":                         {snapshot{linked: true}, askLater},
		"kubelet has it":                                        {snapshot{linked: true, known: true, has: true}, keepRegistration},
		"kubelet does not have it, or with other topology keys": {snapshot{linked: true, known: true}, tellKubelet},
	} {
		t.Run(name, func(t *testing.T) {
			if got := decideRegistration(test.snapshot); got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
}

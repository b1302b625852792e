package simulation

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing/synctest"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/albertofaria/pav/internal/controller/queue"
	"github.com/albertofaria/pav/test/simulation/agents"
	"github.com/albertofaria/pav/test/simulation/invariants"
	"github.com/albertofaria/pav/test/simulation/kubernetes"
	"github.com/albertofaria/pav/test/simulation/scenario"
	"github.com/albertofaria/pav/test/simulation/storage"
	"github.com/albertofaria/pav/test/simulation/world"
)

// pause returns the mean pause between two actions of an actor in this run. It is chosen at random, from 1% to 100% of
// most.
func pause(w *world.World, most time.Duration) time.Duration {
	return time.Duration(float64(most) * math.Pow(0.01, w.Rand.Float64()))
}

// simulated is one world with all its actors.
type simulated struct {
	*world.World

	settings settings
	rules    *invariants.Invariants
	system   *storage.System
	events   *agents.Events
	faults   *agents.Faults
	trouble  *kubernetes.Trouble
	webhook  *agents.Webhook
	on       map[string]string // the node of each node agent, by the agent's name
	copies   bool              // the world has snapshots

	disturber *scenario.Disturber
	tenants   *scenario.Tenants
	admins    *scenario.Admins
	copiers   *scenario.Copiers // nil in a world without copies
	people    []world.Actor
	agents    int // the number of agents that have ever started
}

// haveCopies reports whether the world of a seed has copies. Its random source is not that of the world: worlds without
// copies must go on as they did before there were any.
func haveCopies(seed uint64, s settings) bool {
	return s.copies || s.has("copies") && rand.New(rand.NewPCG(seed, ^seed)).IntN(4) == 0
}

// run simulates one world. The seed determines all random choices.
func run(ctx context.Context, seed uint64, s settings) (outcome, error) {
	w, err := newWorld(ctx, seed, s)
	if err != nil {
		return outcome{}, err
	}
	err = w.live()
	return w.end(), err
}

// newWorld returns a world with its initial objects, before the first step.
func newWorld(ctx context.Context, seed uint64, s settings) (*simulated, error) {
	uuid.SetRand(rand.NewChaCha8(sha256.Sum256(binary.BigEndian.AppendUint64(nil, seed)))) // for the IDs of passes, by which the world orders calls
	store := kubernetes.NewStore()
	store.Name = uint32(seed)
	w := &simulated{World: world.New(seed, store), settings: s, system: storage.New(), copies: haveCopies(seed, s)}
	if *history {
		w.Trace = func(line string) { fmt.Fprintln(os.Stderr, line) }
	}
	w.rules = invariants.Watch(store, w.system, func(by string) bool { return strings.HasPrefix(by, "controller-") || strings.HasPrefix(by, "agent-") })
	w.Heard, w.rules.Pass = w.rules.Heard, w.Pass
	names := []string{"n1", "n2", "n3"}
	if err := scenario.Populate(store, names, w.copies); err != nil {
		return nil, err
	}
	w.addKubernetes()
	w.trouble = &kubernetes.Trouble{
		Hangs: s.perMille("hangs", w.Rand.IntN(60)), Fails: s.perMille("fails", w.Rand.IntN(300)), Dies: s.perMille("dies", w.Rand.IntN(4)*w.Rand.IntN(4)),
		Slow: s.perMille("slow", w.Rand.IntN(200)), Late: s.perMille("late", w.Rand.IntN(100)), Broken: s.broken,
	}
	w.faults = &agents.Faults{
		Refused: s.perMille("refused", w.Rand.IntN(60)), Cut: s.perMille("cut", w.Rand.IntN(60)), Killed: s.perMille("killed", w.Rand.IntN(10)),
	}
	if w.Rand.IntN(2) == 0 && s.has("killed") {
		kinds := agents.Kinds
		if w.copies {
			kinds = slices.Concat(kinds, agents.KindsOfCopies)
		}
		w.faults.Weak = kinds[w.Rand.IntN(len(kinds))]
	}
	w.events = agents.NewEvents(w.World)
	w.addWebhook()
	w.addNodes(ctx, names)
	w.addPeople()
	return w, nil
}

// addKubernetes adds the controllers of Kubernetes, and the snapshot-controller.
func (w *simulated) addKubernetes() {
	parts := []world.Actor{
		&kubernetes.Volumes{World: w.World}, &kubernetes.Scheduler{World: w.World}, &kubernetes.Attacher{World: w.World},
		&kubernetes.Collector{World: w.World, Kinds: []string{"Pod", "PavStage", "CSIDriver"}},
	}
	if w.copies {
		parts = append(parts, &kubernetes.Snapshots{World: w.World})
	}
	for _, part := range parts {
		w.Add(&world.OfStore{Store: w.Store, Actor: part})
	}
}

// addWebhook adds the webhook that checks the agents' pods.
func (w *simulated) addWebhook() {
	w.on = map[string]string{}
	w.webhook = agents.NewWebhook(w.World, shared, w.faults, func(agent string) string { return w.on[agent] })
	w.Store.Hook(w.webhook.Judge)
}

// addNodes adds the nodes, the agents and the disturber.
func (w *simulated) addNodes(ctx context.Context, names []string) {
	d := &scenario.Disturber{World: w.World, Webhook: w.webhook, OnNodes: map[*kubernetes.Node]*agents.Node{}, Drains: &scenario.Drains{World: w.World}}
	d.Begin = func() *agents.Controller { return w.begin(ctx) }
	d.BeginOn = func(node *kubernetes.Node) *agents.Node { return w.beginOn(ctx, node) }
	w.disturber = d
	w.rules.Leads = func(by string) bool { return d.Former == nil || by != d.Former.Name }
	for _, name := range names {
		node := kubernetes.NewNode(w.World, name, w.system, w.trouble)
		node.Starting, node.Ready, node.Ended = func(pod *corev1.Pod) { w.rules.Starting(node, pod) }, w.rules.Ready, w.rules.Ended
		node.Expanded = w.rules.Expanded
		node.Drivers = func(driver string) (csi.NodeServer, context.Context) { return d.Driver(node, driver) }
		d.Nodes = append(d.Nodes, node)
		w.Add(node)
	}
	d.Controller = d.Begin()
	for _, node := range d.Nodes {
		d.OnNodes[node] = d.BeginOn(node)
	}
	w.Check = func() error {
		w.rules.Clients(d.Nodes)
		if dropped := w.events.Dropped(); len(dropped) > 0 {
			return fmt.Errorf("invariant 5: nobody sees this event any more: %s", dropped[0])
		}
		return w.rules.Failed()
	}
	if w.settings.has("disturbances") {
		w.Add(&scenario.Paced{World: w.World, Actor: d, Pause: pause(w.World, 20*time.Second)})
		w.Add(d.Drains)
	}
}

// clock returns the clock of a process's machine. It is correct, or it is wrong by up to ten minutes and too slow or
// too fast by up to 1%.
func (w *simulated) clock() func() time.Time {
	const most = 10 * time.Minute
	if wrong := w.Rand.IntN(2) == 0; !wrong || !w.settings.has("clocks") {
		return time.Now
	}
	by := time.Duration(w.Rand.Int64N(int64(2*most))) - most
	drift := w.Rand.Float64()*0.02 - 0.01
	began := time.Now()
	w.Counts["clocks that are wrong"]++
	return func() time.Time {
		return time.Now().Add(by + time.Duration(float64(time.Since(began))*drift))
	}
}

// begin starts a controller agent.
func (w *simulated) begin(ctx context.Context) *agents.Controller {
	w.agents++
	c := &agents.Controller{Name: fmt.Sprintf("controller-%d", w.agents), World: w.World, Faults: w.faults, Events: w.events, Clock: w.clock()}
	c.Dies = func() { w.disturber.Dies(c) }
	if err := c.Start(ctx, shared, queue.Limits{Overall: 10, PerProvisioner: 4}, 3); err != nil {
		panic(err)
	}
	w.Add(c)
	return c
}

// beginOn starts a node agent on a node.
func (w *simulated) beginOn(ctx context.Context, node *kubernetes.Node) *agents.Node {
	w.agents++
	n := &agents.Node{
		Name: fmt.Sprintf("agent-%d", w.agents), On: node.Name, World: w.World, Faults: w.faults, Events: w.events, Machine: node.Machine,
		Clock: w.clock(), Linked: func() bool { return node.Linked }, Dies: func() { w.disturber.DiesOn(node) }, Flushes: w.copies,
	}
	w.on[n.Name] = node.Name
	if err := n.Start(ctx, shared); err != nil {
		panic(err)
	}
	w.Add(n)
	return n
}

// addPeople adds tenants and administrators.
func (w *simulated) addPeople() {
	w.tenants = &scenario.Tenants{World: w.World, Nodes: w.disturber.Nodes, Classes: w.settings.classes, Copies: w.copies}
	w.tenants.Choose()
	w.admins = &scenario.Admins{World: w.World, Storage: w.system, Copies: w.copies}
	w.people = []world.Actor{&scenario.Paced{World: w.World, Actor: w.tenants, Pause: pause(w.World, 4*time.Second)}}
	if administrators := (&scenario.Paced{World: w.World, Actor: w.admins, Pause: pause(w.World, 20*time.Second)}); w.settings.has("administrators") {
		w.people = append(w.people, administrators)
	}
	if w.copies {
		w.copiers = &scenario.Copiers{World: w.World, Storage: w.system, Most: 1 + w.Rand.IntN(8)}
		w.people = append(w.people, &scenario.Paced{World: w.World, Actor: w.copiers, Pause: pause(w.World, 6*time.Second)})
		w.Counts["worlds with copies"]++
	}
	w.come()
}

func (w *simulated) come() {
	for _, p := range w.people {
		w.Add(p)
	}
}

func (w *simulated) leave() {
	for _, p := range w.people {
		w.Remove(p)
	}
}

// rest runs the world for a time. It returns earlier if all objects of people are gone and Settled finds no problem.
func (w *simulated) rest(wait time.Duration) error {
	until := time.Now().Add(wait)
	return w.Run(1_000_000, func() bool {
		return time.Now().After(until) || w.empty() && w.rules.Settled(w.events.Warnings) == nil
	})
}

// idle runs the world for a time.
func (w *simulated) idle(wait time.Duration) error {
	until := time.Now().Add(wait)
	return w.Run(1_000_000, func() bool { return time.Now().After(until) })
}

// empty reports whether there are no claims, pods, volumes, stages and snapshots, and no records of them.
func (w *simulated) empty() bool {
	for _, kind := range []string{
		"PersistentVolumeClaim", "Pod", "PersistentVolume", "PavVolume", "PavStage", "VolumeSnapshot", "VolumeSnapshotContent", "PavSnapshot",
	} {
		if w.Store.Len(kind) > 0 {
			return false
		}
	}
	return true
}

// live runs the world in three parts: with people and disturbances, without faults, and with people who delete all
// their objects.
func (w *simulated) live() error {
	if err := w.Run(w.settings.steps, nil); err != nil {
		return err
	}

	// Faults stop, and everything settles.
	w.Notef("calm")
	w.disturber.Calm()
	w.admins.Restore()
	w.leave()
	*w.faults, *w.trouble = agents.Faults{}, kubernetes.Trouble{}
	// This is longer than a cache can be stale (two minutes), and shorter than the time after which PaV gives up a pod
	// that hangs (five minutes).
	if err := w.rest(150 * time.Second); err != nil {
		return err
	}
	if err := w.rules.Unstopped(); err != nil {
		return err
	}
	w.rules.Calm = true
	if err := w.rest(10 * time.Minute); err != nil {
		return err
	}
	w.admins.Accept()
	if err := w.rest(20 * time.Minute); err != nil {
		return err
	}
	if err := w.rules.Settled(w.events.Warnings); err != nil {
		return err
	}

	// All people delete their objects, and nothing must remain.
	w.Notef("leaving")
	w.tenants.Leaving, w.admins.Leaving = true, true
	if w.copies {
		w.copiers.Leaving = true
	}
	w.come()
	if err := w.rest(60 * time.Minute); err != nil {
		return err
	}
	w.leave()
	if err := w.idle(5 * time.Minute); err != nil {
		return err
	}
	// Nothing is left to do, and the caches are up to date.
	w.rules.Idle = true
	if err := w.idle(5 * time.Minute); err != nil {
		return err
	}
	return w.rules.Left(w.events.All(), w.disturber.Nodes)
}

// end stops all agents, and returns the outcome of the run.
func (w *simulated) end() outcome {
	d := w.disturber
	if d.Former != nil {
		d.Former.Kill()
	}
	if w.copies {
		w.tenants.Lives += w.copiers.Lives
	}
	o := outcome{lives: w.tenants.Lives, steps: w.Steps, passes: d.Controller.Passes(), counts: w.Counts, bound: w.bound()}
	d.Controller.Kill()
	for _, node := range d.Nodes {
		if agent := d.OnNodes[node]; agent != nil {
			agent.Kill()
		}
	}
	synctest.Wait()
	o.hash = w.Hash()
	return o
}

// bound returns the times from the creation to the binding of all claims that were bound, by class.
func (w *simulated) bound() map[string][]time.Duration {
	made, bound := map[types.UID]time.Time{}, map[string][]time.Duration{}
	for _, e := range w.Store.Events("PersistentVolumeClaim") {
		claim, ok := e.After.(*corev1.PersistentVolumeClaim)
		if !ok {
			continue
		}
		if e.Before == nil {
			made[claim.UID] = e.At
		}
		if at, waits := made[claim.UID]; waits && claim.Status.Phase == corev1.ClaimBound {
			delete(made, claim.UID)
			bound[*claim.Spec.StorageClassName] = append(bound[*claim.Spec.StorageClassName], e.At.Sub(at))
		}
	}
	return bound
}

// Package simulation runs PaV's agents in a simulated world, from a seed: see the packages below it.
package simulation

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/queue"
	"github.com/albertofaria/pav/test/simulation/agents"
	"github.com/albertofaria/pav/test/simulation/invariants"
	"github.com/albertofaria/pav/test/simulation/kubernetes"
	"github.com/albertofaria/pav/test/simulation/scenario"
	"github.com/albertofaria/pav/test/simulation/storage"
	"github.com/albertofaria/pav/test/simulation/world"
)

var (
	firstSeed = flag.Uint64("seed", 1, "the first seed")
	seeds     = flag.Int("seeds", 20, "how many seeds, from the first on")
	during    = flag.Duration("during", 0, "take seeds for as long as this, instead of so many")
	steps     = flag.Int("steps", 3000, "how many steps are disturbed, in each run")
	without   = flag.String("without", "", "what does not happen, of "+strings.Join(optional, ", "))
	history   = flag.Bool("history", false, "print the history of each run")
)

// shared makes runs faster: nothing that it keeps changes what an agent does.
var shared = agents.NewShared()

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	debug.SetGCPercent(400) // each run makes much and keeps little
	os.Exit(m.Run())
}

// outcome is what came of one run, or of many.
type outcome struct {
	hash                       uint64
	runs, lives, steps, passes int
	counts                     map[string]int // of disturbances
}

func (o *outcome) add(other outcome) {
	o.runs++
	o.lives += other.lives
	o.steps += other.steps
	o.passes += other.passes
	for what, count := range other.counts {
		o.counts[what] += count
	}
}

func (o outcome) String() string {
	text := fmt.Sprintf("%d runs: %d lives of volumes, %d steps, %d passes", o.runs, o.lives, o.steps, o.passes)
	for _, what := range slices.Sorted(maps.Keys(o.counts)) {
		text += fmt.Sprintf(", %d %s", o.counts[what], what)
	}
	return text
}

// asked returns the settings that the flags ask for.
func asked() settings {
	s := settings{steps: *steps}
	if *without != "" {
		s.without = strings.Split(*without, ",")
	}
	return s
}

// Runs from seeds, in which all that must be true is true.
func TestSimulation(t *testing.T) {
	began := time.Now()
	all := outcome{counts: map[string]int{}}
	wanted := func(n int) bool {
		if *during > 0 {
			return time.Since(began) < *during
		}
		return n < *seeds
	}
	for n := 0; wanted(n); n++ {
		all.add(simulate(t, *firstSeed+uint64(n), asked()))
	}
	t.Logf("%s; %.0f passes a second", all, float64(all.passes)/time.Since(began).Seconds())
}

// Runs from seeds that found something once.
func TestFormerFailures(t *testing.T) {
	raw, err := os.ReadFile("testdata/seeds")
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	for line := range strings.Lines(string(raw)) {
		first, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		if first == "" || first == "#" {
			continue
		}
		seed, err := strconv.ParseUint(first, 10, 64)
		if err != nil {
			t.Fatalf("testdata/seeds: %v", err)
		}
		simulate(t, seed, settings{steps: 3000})
		ran++
	}
	if ran == 0 {
		t.Error("testdata/seeds has no seeds")
	}
}

// The same seed has the same history.
func TestSameSeed(t *testing.T) {
	for n := range uint64(min(*seeds, 5)) {
		seed := *firstSeed + n
		first, second := simulate(t, seed, asked()), simulate(t, seed, asked())
		if first.hash != second.hash {
			t.Errorf("seed %d: two runs had different histories, of %d and %d steps", seed, first.steps, second.steps)
		}
	}
}

func newStore() *world.Store {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), pavv1.AddToScheme(scheme)); err != nil {
		panic(err)
	}
	store := world.NewStore(scheme, &corev1.PersistentVolumeClaim{}, &corev1.PersistentVolume{}, &corev1.Pod{}, &corev1.Node{}, &corev1.Namespace{},
		&storagev1.StorageClass{}, &storagev1.CSIDriver{}, &storagev1.CSINode{}, &storagev1.VolumeAttachment{}, &policyv1.PodDisruptionBudget{},
		&pavv1.PavProvisioner{}, &pavv1.PavVolume{}, &pavv1.PavStage{})
	store.Hook(kubernetes.Admit)
	return store
}

// pause returns how long somebody rests between two deeds in a run: from a hundredth of a time to all of it.
func pause(w *world.World, most time.Duration) time.Duration {
	return time.Duration(float64(most) * math.Pow(0.01, w.Rand.Float64()))
}

// run simulates one world from a seed.
func run(ctx context.Context, seed uint64, s settings) (outcome, error) {
	store := newStore()
	store.Name = uint32(seed)
	w := world.New(seed, store)
	if *history {
		w.Trace = func(line string) { fmt.Fprintln(os.Stderr, line) }
	}
	system := storage.New()
	rules := invariants.Watch(store, system, func(by string) bool { return strings.HasPrefix(by, "controller-") || strings.HasPrefix(by, "agent-") })
	w.Heard = rules.Heard
	names := []string{"n1", "n2", "n3"}
	if err := scenario.Populate(store, names); err != nil {
		return outcome{}, err
	}
	for _, part := range []world.Actor{
		&kubernetes.Volumes{World: w}, &kubernetes.Scheduler{World: w}, &kubernetes.Collector{World: w, Kinds: []string{"Pod", "PavStage", "CSIDriver"}},
	} {
		w.Add(&world.OfStore{Store: store, Actor: part})
	}
	trouble := &kubernetes.Trouble{Hangs: s.perMille("hangs", w.Rand.IntN(60)), Fails: s.perMille("fails", w.Rand.IntN(300)), Dies: s.perMille("dies", w.Rand.IntN(4))}
	events := agents.NewEvents(w)
	faults := &agents.Faults{Refused: s.perMille("refused", w.Rand.IntN(60)), Cut: s.perMille("cut", w.Rand.IntN(60)), Killed: s.perMille("killed", w.Rand.IntN(10))}
	begun := 0
	passes := 0
	d := &scenario.Disturber{World: w, OnNodes: map[*kubernetes.Node]*agents.Node{}}
	for _, name := range names {
		node := kubernetes.NewNode(w, name, system, trouble)
		node.Starting, node.Ended = rules.Starting, rules.Ended
		node.Drivers = func(driver string) (csi.NodeServer, context.Context) { return d.Driver(node, driver) }
		d.Nodes = append(d.Nodes, node)
		w.Add(node)
	}
	d.Begin = func() *agents.Controller {
		begun++
		c := &agents.Controller{Name: fmt.Sprintf("controller-%d", begun), World: w, Faults: faults, Events: events}
		c.Dies = func() { d.Dies(c) }
		if err := c.Start(ctx, shared, queue.Limits{Overall: 10, PerProvisioner: 4}, 3); err != nil {
			panic(err)
		}
		w.Add(c)
		return c
	}
	d.BeginOn = func(node *kubernetes.Node) *agents.Node {
		begun++
		n := &agents.Node{
			Name: fmt.Sprintf("agent-%d", begun), On: node.Name, World: w, Faults: faults, Events: events, Machine: node.Machine,
			Linked: func() bool { return node.Linked },
		}
		n.Dies = func() { d.DiesOn(node) }
		if err := n.Start(ctx, shared); err != nil {
			panic(err)
		}
		w.Add(n)
		return n
	}
	d.Controller = d.Begin()
	for _, node := range d.Nodes {
		d.OnNodes[node] = d.BeginOn(node)
	}
	nodes := d.Nodes
	w.Check = func() error {
		rules.Clients(nodes)
		if dropped := events.Dropped(); len(dropped) > 0 {
			return fmt.Errorf("invariant 5: nobody sees this event any more: %s", dropped[0])
		}
		return rules.Failed()
	}
	disturber := &scenario.Paced{World: w, Actor: d, Pause: pause(w, 20*time.Second)}
	if s.has("disturbances") {
		w.Add(disturber)
	}
	tenants := &scenario.Tenants{World: w, Nodes: nodes}
	tenants.Choose()
	admins := &scenario.Admins{World: w, Storage: system}
	people := []world.Actor{&scenario.Paced{World: w, Actor: tenants, Pause: pause(w, 4*time.Second)}}
	if administrators := (&scenario.Paced{World: w, Actor: admins, Pause: pause(w, 20*time.Second)}); s.has("administrators") {
		people = append(people, administrators)
	}
	come := func() {
		for _, p := range people {
			w.Add(p)
		}
	}
	leave := func() {
		for _, p := range people {
			w.Remove(p)
		}
	}
	come()
	finish := func(err error) (outcome, error) {
		passes += d.Controller.Passes()
		if d.Former != nil {
			d.Former.Kill()
		}
		d.Controller.Kill()
		for _, node := range d.Nodes {
			if agent := d.OnNodes[node]; agent != nil {
				agent.Kill()
			}
		}
		synctest.Wait()
		return outcome{hash: w.Hash(), lives: tenants.Lives, steps: w.Steps, passes: passes, counts: w.Counts}, err
	}
	if err := w.Run(s.steps, nil); err != nil {
		return finish(err)
	}

	// Faults stop: all comes to rest within ten minutes.
	w.Notef("calm")
	d.Calm()
	admins.Restore()
	leave()
	*faults, *trouble = agents.Faults{}, kubernetes.Trouble{}
	rest := func(wait time.Duration) error {
		until := time.Now().Add(wait)
		return w.Run(1_000_000, func() bool { return time.Now().After(until) })
	}
	if err := rest(30 * time.Minute); err != nil {
		return finish(err)
	}
	if err := rules.Settled(events.Warnings); err != nil {
		return finish(err)
	}

	// Everybody leaves, and nothing stays.
	w.Notef("leaving")
	tenants.Leaving, admins.Leaving = true, true
	come()
	if err := rest(60 * time.Minute); err != nil {
		return finish(err)
	}
	leave()
	if err := rest(10 * time.Minute); err != nil {
		return finish(err)
	}
	return finish(rules.Left(events.All(), nodes))
}

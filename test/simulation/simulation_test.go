// Package simulation runs PaV's agents in a simulated world, from a seed: see the packages below it.
package simulation

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"testing"
	"testing/synctest"
	"time"

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
	steps     = flag.Int("steps", 5000, "how many steps are disturbed, in each run")
	twice     = flag.Bool("twice", false, "run each seed twice, and compare the histories")
	history   = flag.Bool("history", false, "print the history of each run")
)

// shared makes runs faster: nothing that it keeps changes what an agent does.
var shared = agents.NewShared()

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

// outcome is what came of one run.
type outcome struct {
	hash         uint64
	lives, steps int
	passes       int
}

func TestSimulation(t *testing.T) {
	began := time.Now()
	var all outcome
	for n := range *seeds {
		seed := *firstSeed + uint64(n)
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			var first outcome
			if *twice {
				synctest.Test(t, func(t *testing.T) { first, _ = run(t.Context(), seed, *steps) })
			}
			synctest.Test(t, func(t *testing.T) {
				o, err := run(t.Context(), seed, *steps)
				if err != nil {
					t.Errorf("seed %d: %v", seed, err)
				}
				if *twice && o.hash != first.hash {
					t.Errorf("seed %d: two runs had different histories, of %d and %d steps", seed, first.steps, o.steps)
				}
				all.lives += o.lives
				all.steps += o.steps
				all.passes += o.passes
			})
		})
	}
	seconds := time.Since(began).Seconds()
	t.Logf("%d lives in %d steps and %d passes, %.0f passes a second", all.lives, all.steps, all.passes, float64(all.passes)/seconds)
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

// run simulates one world from a seed.
func run(ctx context.Context, seed uint64, steps int) (outcome, error) {
	store := newStore()
	store.Name = uint32(seed)
	w := world.New(seed, store)
	if *history {
		w.Trace = func(line string) { fmt.Fprintln(os.Stderr, line) }
	}
	system := storage.New()
	rules := invariants.Watch(store, system, func(by string) bool { return len(by) > 10 && by[:10] == "controller" })
	w.Check, w.Heard = rules.Failed, rules.Heard
	names := []string{"n1", "n2", "n3"}
	if err := scenario.Populate(store, names); err != nil {
		return outcome{}, err
	}
	w.Add(&kubernetes.Volumes{World: w})
	w.Add(&kubernetes.Scheduler{World: w})
	w.Add(&kubernetes.Collector{World: w, Kinds: []string{"Pod", "PavStage", "CSIDriver"}})
	trouble := &kubernetes.Trouble{Hangs: w.Rand.IntN(60), Fails: w.Rand.IntN(300)}
	var nodes []*kubernetes.Node
	for _, name := range names {
		node := &kubernetes.Node{World: w, Name: name, Storage: system, Trouble: trouble, Up: true, Linked: true, Starting: rules.Starting, Ended: rules.Ended}
		nodes = append(nodes, node)
		w.Add(node)
	}
	events := agents.NewEvents(w)
	faults := &agents.Faults{Refused: w.Rand.IntN(60), Cut: w.Rand.IntN(60)}
	begun := 0
	passes := 0
	d := &scenario.Disturber{World: w, Nodes: nodes}
	d.Begin = func() *agents.Controller {
		begun++
		c := &agents.Controller{Name: fmt.Sprintf("controller-%d", begun), World: w, Faults: faults, Events: events}
		if err := c.Start(ctx, shared, queue.Limits{Overall: 10, PerProvisioner: 4}, 3); err != nil {
			panic(err)
		}
		w.Add(c)
		return c
	}
	d.Controller = d.Begin()
	w.Add(&scenario.Paced{World: w, Actor: d, Pause: 10 * time.Second})
	tenants := &scenario.Tenants{World: w, Nodes: nodes}
	tenants.Choose()
	admins := &scenario.Admins{World: w}
	people := []world.Actor{
		&scenario.Paced{World: w, Actor: tenants, Pause: 2 * time.Second}, &scenario.Paced{World: w, Actor: admins, Pause: 10 * time.Second},
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
		synctest.Wait()
		return outcome{hash: w.Hash(), lives: tenants.Lives, steps: w.Steps, passes: passes}, err
	}
	if err := w.Run(steps, nil); err != nil {
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
	return finish(rules.Left(events.All()))
}

// Package simulation runs PaV's agents in a simulated world. Each run depends only on its seed. The packages in the
// subdirectories have the parts of the world.
package simulation

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/albertofaria/pav/test/simulation/agents"
)

var (
	firstSeed = flag.Uint64("seed", 1, "the first seed")
	seeds     = flag.Int("seeds", 20, "how many seeds, from the first on")
	during    = flag.Duration("during", 0, "take seeds for as long as this, instead of so many")
	steps     = flag.Int("steps", 3000, "how many steps are disturbed, in each run")
	without   = flag.String("without", "", "what does not happen, of "+strings.Join(optional, ", "))
	copies    = flag.Bool("copies", false, "only worlds with snapshots, whatever their seeds")
	twice     = flag.Uint64("twice", 5, "how many seeds are run twice, from the first on")
	history   = flag.Bool("history", false, "print the history of each run")
)

// shared makes runs faster. Its state does not affect the behaviour of agents.
var shared = agents.NewShared()

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	debug.SetGCPercent(400) // each run allocates much memory and keeps little
	runtime.GOMAXPROCS(1)   // goroutines that a step wakes together run in the same order each time
	os.Exit(m.Run())
}

// outcome is the result of one run, or the sum of many.
type outcome struct {
	hash                       uint64
	runs, lives, steps, passes int
	counts                     map[string]int             // how often each disturbance or decision happened
	bound                      map[string][]time.Duration // the waiting times of claims, by class
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

// asked returns the settings from the flags.
func asked() settings {
	s := settings{steps: *steps, copies: *copies}
	if *without != "" {
		s.without = strings.Split(*without, ",")
	}
	return s
}

// TestSimulation checks all invariants in runs with several seeds.
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
	for _, what := range all.untroubled(asked()) {
		t.Errorf("in %d runs, there were no %s: the world does not make this trouble any more", all.runs, strings.TrimSuffix(what, ":"))
	}
}

// TestFormerFailures runs the seeds that have found a bug before. Most of them are older than copies.
func TestFormerFailures(t *testing.T) {
	for _, seed := range formerSeeds(t, "testdata/seeds") {
		simulate(t, seed, settings{steps: 3000, without: []string{"copies"}})
	}
	for _, seed := range formerSeeds(t, "testdata/seeds-copies") {
		simulate(t, seed, settings{steps: 3000, copies: true})
	}
}

// formerSeeds returns the seeds in a file.
func formerSeeds(t *testing.T, name string) (seeds []uint64) {
	t.Helper()
	raw, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		first, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		if first == "" || first == "#" {
			continue
		}
		seed, err := strconv.ParseUint(first, 10, 64)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		seeds = append(seeds, seed)
	}
	if len(seeds) == 0 {
		t.Errorf("%s has no seeds", name)
	}
	return seeds
}

// TestSameSeed checks that runs with the same seed have the same history. It logs the hash of the history: two commits
// with the same behaviour have the same hash.
func TestSameSeed(t *testing.T) {
	for n := range *twice {
		seed := *firstSeed + n
		first, second := simulate(t, seed, asked()), simulate(t, seed, asked())
		if first.hash != second.hash {
			t.Errorf("seed %d: two runs had different histories, of %d and %d steps", seed, first.steps, second.steps)
		}
		t.Logf("seed %d: history %016x", seed, first.hash)
	}
}

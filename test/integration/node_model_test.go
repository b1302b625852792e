package integration

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/test/kubelet"
	"github.com/albertofaria/pav/test/seed"
)

const (
	// modelTime is how long sequences are made where there is no time for all.
	modelTime = 30 * time.Second

	// modelSequences is how many there are with PAV_LONG.
	modelSequences = 10000

	// sequenceVariable names the seed of the one sequence that is to be made.
	sequenceVariable = "PAV_SEQUENCE"
)

// modelVolume is what must be true of a volume: whether it is staged, and which clients have it.
type modelVolume struct {
	kubelet.Volume
	scopePod  bool
	staged    bool
	published map[int]bool // by the client's number; whether it may write
	stagings  int          // staging pods that must have run
}

// call is one of the four.
type call struct {
	name   string
	volume *modelVolume
	client kubelet.Client
	hurry  time.Duration // when the caller gives up, and calls again; 0 for never
	want   codes.Code
}

// Kubelet's four calls in random legal sequences: repeated, several at once, for several clients of two volumes, and with
// short timeouts. After each round, the mounts are those of the model.
func TestNode_RandomSequences(t *testing.T) {
	for _, scope := range slices.Sorted(maps.Keys(scopes)) {
		t.Run(scope, func(t *testing.T) {
			n := newNode(t, workers(t, newDevices(t)), scopes[scope])
			n.run(t)
			var volumes [4][]kubelet.Volume // pairs for as many sequences at once
			for i, kind := range []string{"made", "served", "block", "served", "made", "block", "served", "made"} {
				volumes[i/2] = append(volumes[i/2], n.volume(t, fmt.Sprintf("%s-%d", kind, i)))
			}
			began, seeds := time.Now(), make(chan uint64)
			var sequences sync.WaitGroup
			for _, pair := range volumes {
				sequences.Go(func() {
					for one := range seeds {
						if !t.Failed() { // A sequence that failed leaves its volumes as they are.
							n.sequence(t, pair, one, scope == "scope Pod")
						}
					}
				})
			}
			count := sendSeeds(t, seeds, began)
			sequences.Wait()
			t.Logf("%d sequences in %s; pods: %v", count, time.Since(began).Round(time.Second), n.Journal.Runs(""))
		})
	}
}

// sendSeeds sends as many seeds as there is time for, and returns how many.
func sendSeeds(t *testing.T, seeds chan<- uint64, began time.Time) int {
	t.Helper()
	defer close(seeds)
	if text := os.Getenv(sequenceVariable); text != "" {
		one, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		seeds <- one
		return 1
	}
	count, random := 0, seed.Random(t)
	for !t.Failed() && (long() && count < modelSequences/len(scopes) || !long() && time.Since(began) < modelTime/time.Duration(len(scopes))) {
		seeds <- random.Uint64()
		count++
	}
	return count
}

// sequence makes one sequence of calls, which ends with nothing staged.
func (n *node) sequence(t *testing.T, volumes []kubelet.Volume, number uint64, scopePod bool) {
	t.Helper()
	random := seed.Stream(number, 0)
	var models []*modelVolume
	before := map[string]map[string]int{}
	for _, v := range volumes {
		models = append(models, &modelVolume{Volume: v, scopePod: scopePod, published: map[int]bool{}})
		before[v.Handle] = n.Journal.Runs(v.Handle)
	}
	var history []string
	fail := func(format string, args ...any) {
		t.Errorf("%s\nafter %s\nto repeat: %s=%d", fmt.Sprintf(format, args...), strings.Join(history, "\n      "), sequenceVariable, number)
	}
	for range 4 + random.IntN(12) {
		round := nextRound(random, models)
		history = append(history, fmt.Sprint(round))
		if !n.makeRound(lasting(t), round, fail) || !n.checkModel(models, fail) {
			return
		}
	}
	for _, m := range models {
		for number := range modelClients { // Also for those that it was refused to, as kubelet cleans up after them.
			n.makeRound(lasting(t), []*call{{name: "unpublish", volume: m, client: modelClient(m, number)}}, fail)
		}
		clear(m.published)
		m.staged = false
		n.makeRound(lasting(t), []*call{{name: "unstage", volume: m}}, fail)
		runs, was := n.Journal.Runs(m.Handle), before[m.Handle]
		for _, workflow := range []string{pavv1.WorkflowStaging, pavv1.WorkflowUnstaging} {
			if got := runs[workflow] - was[workflow]; got != m.stagings {
				fail("%d pods of workflow %s have run for %s, want %d", got, workflow, m.Handle, m.stagings)
			}
		}
	}
	n.checkModel(models, fail)
}

// String implements fmt.Stringer.
func (c *call) String() string {
	text := c.name + " " + c.volume.Handle
	if c.client.Name != "" {
		text += fmt.Sprintf(" for %s, read-only %t", c.client.Name, c.client.ReadOnly)
	}
	if c.hurry > 0 {
		text += fmt.Sprintf(" within %s", c.hurry)
	}
	return text
}

func modelClient(m *modelVolume, number int) kubelet.Client {
	c := clientOf(m.Volume, number)
	c.ReadOnly = !m.published[number]
	return c
}

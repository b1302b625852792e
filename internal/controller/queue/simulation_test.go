package queue

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"
)

// The times that reconcilers use: how long a pod may take to start before its slot is suspended, and before it is given
// up. A pod that works runs for at most longestRun.
const (
	lendAfter   = 30 * time.Second
	giveUpAfter = 5 * time.Minute
	pullAtLeast = 30 * time.Minute // if others wait for its slot
	longestRun  = 20 * time.Second
)

// fate is what happens to the pods of a claim.
type fate int

const (
	works    fate = iota
	hangs         // a Secret is missing: neither the pod nor its replacement ever starts
	pulls         // the image is being pulled forever: the pod is given up late, and only if others wait for its slot
	homeless      // no node ever fits: the pod, too, is given up only if others wait for its slot
)

// simulatedClaim is a claim whose volume needs one pod.
type simulatedClaim struct {
	volume, provisioner, namespace string
	fate                           fate

	attempt int           // distinguishes events of earlier pods from those of the current pod
	asked   time.Duration // when it first requested a slot
	created time.Duration // when its current pod was created
	lost    bool          // its pod is on a lost node, which an administrator has to delete
	watched bool          // it is healthy, and the only one of its namespace
	lucky   bool          // its next pod avoids broken nodes
	done    bool
}

// occurrence is an event at a point in time.
type occurrence struct {
	at      time.Duration
	order   int
	claim   *simulatedClaim
	attempt int
	what    func(*simulation, *simulatedClaim)
}

type occurrences []occurrence

func (o occurrences) Len() int      { return len(o) }
func (o occurrences) Swap(i, j int) { o[i], o[j] = o[j], o[i] }
func (o occurrences) Less(i, j int) bool {
	return o[i].at < o[j].at || o[i].at == o[j].at && o[i].order < o[j].order
}
func (o *occurrences) Push(x any) { *o = append(*o, x.(occurrence)) }
func (o *occurrences) Pop() any {
	last := (*o)[len(*o)-1]
	*o = (*o)[:len(*o)-1]
	return last
}

// simulation is a queue and a cluster that runs the pods of its volumes, in virtual time.
type simulation struct {
	t      *testing.T
	random *rand.Rand
	limits Limits
	queue  *Queue

	now    time.Duration
	order  int
	agenda occurrences
	claims map[string]*simulatedClaim

	provisioners, tenants int
	brokenNodes           float64 // the share of pods that the scheduler binds to a broken node

	unserved, healthy int // numbers of claims that are still to be served: the watched ones, and all healthy ones
	longest           time.Duration
	struck            map[string]int // how often each fault has occurred
}

func (s *simulation) after(delay time.Duration, c *simulatedClaim, what func(*simulation, *simulatedClaim)) {
	s.order++
	heap.Push(&s.agenda, occurrence{at: s.now + delay, order: s.order, claim: c, attempt: c.attempt, what: what})
}

// ask requests a slot, as the reconciler does for a volume whose pod is recorded.
func ask(s *simulation, c *simulatedClaim) {
	if s.queue.Acquire(c.volume, c.provisioner, c.namespace) {
		s.start(c)
	}
}

// start creates the pod of a volume that has a slot.
func (s *simulation) start(c *simulatedClaim) {
	c.attempt++
	c.created = s.now
	switch {
	case c.fate == homeless:
		s.struck["homeless"]++
		s.after(0, c, lend)
	case c.fate != works:
		s.struck["broken"]++
		s.after(lendAfter, c, lend)
	case !c.lucky && s.random.Float64() < s.brokenNodes:
		s.struck["node"]++
		s.after(lendAfter, c, lend)
	default:
		s.served(c)
		s.after(time.Duration(s.random.Int64N(int64(longestRun))), c, end)
	}
}

// served records that a healthy claim has a slot, and its pod a node that works.
func (s *simulation) served(c *simulatedClaim) {
	s.healthy--
	if !c.watched {
		return
	}
	s.unserved--
	s.longest = max(s.longest, s.now-c.asked)
}

func end(s *simulation, c *simulatedClaim) {
	c.done = true
	s.queue.Release(c.volume)
}

func lend(s *simulation, c *simulatedClaim) {
	s.queue.Suspend(c.volume)
	s.after(giveUpAfter-lendAfter, c, giveUp)
}

// giveUp deletes a pod that has not started, if the reconciler would delete it.
func giveUp(s *simulation, c *simulatedClaim) {
	switch {
	case c.fate == pulls && s.now-c.created < pullAtLeast, (c.fate == pulls || c.fate == homeless) && !s.queue.Contended(c.provisioner):
		s.after(giveUpAfter, c, giveUp)
		return
	case c.fate == works && s.random.IntN(4) == 0:
		// The kubelet does not confirm the end of the pod, so there will be no next pod.
		c.lost = true
		s.healthy--
		if c.watched {
			s.unserved--
		}
		s.struck["lost"]++
		s.queue.Release(c.volume)
		return
	}
	s.struck["given up"]++
	c.lucky = true // the next pod prefers other nodes
	s.queue.Release(c.volume)
	s.after(time.Duration(s.random.Int64N(int64(giveUpAfter))), c, ask)
}

// check checks the limits after each occurrence.
func (s *simulation) check() {
	q, overall := s.queue, s.limits.Overall
	if q.running > overall {
		s.t.Fatalf("%d pods run, of at most %d", q.running, overall)
	}
	if pods := q.running + q.suspended; pods > 3*overall+s.provisioners {
		s.t.Fatalf("there are %d pods, of at most three times %d and %d", pods, overall, s.provisioners)
	}
	for name, l := range q.queues {
		if own := s.limits.PerProvisioner; l.running > own {
			s.t.Fatalf("%d pods of %s run, of at most %d", l.running, name, own)
		}
	}
}

// claimsOf adds claims of a namespace. They request their slots at random times within a period.
func (s *simulation) claimsOf(provisioner, namespace string, number int, fate fate, watched bool, within time.Duration) {
	s.tenants++
	for range number {
		c := &simulatedClaim{volume: fmt.Sprint("v", len(s.claims)), provisioner: provisioner, namespace: namespace, fate: fate, watched: watched}
		s.claims[c.volume] = c
		if fate == works {
			s.healthy++
			if watched {
				s.unserved++
			}
		}
		c.asked = time.Duration(s.random.Int64N(int64(within)))
		s.after(c.asked, c, ask)
	}
}

// newSimulation returns a random cluster for a seed. Some provisioners are broken in different ways. The healthy ones
// have a greedy namespace, perhaps one whose claims are broken, and some modest ones.
func newSimulation(t *testing.T, seed uint64) *simulation {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 6))
	s := &simulation{t: t, random: random, claims: map[string]*simulatedClaim{}, struck: map[string]int{}}
	s.limits = Limits{Overall: 2 + random.IntN(40)}
	s.limits.PerProvisioner = 1 + random.IntN(s.limits.Overall)
	s.queue = New(s.limits, func(volume string) { s.start(s.claims[volume]) })
	greedy := 12
	if seed%1000 == 0 {
		greedy, s.limits.Overall = 4000, 100
	}
	if random.IntN(2) == 0 {
		s.brokenNodes = random.Float64() / 2
	}
	broken, healthy := random.IntN(8), 1+random.IntN(3)
	s.provisioners = broken + healthy
	const early = time.Second
	for i := range broken {
		for n := range 1 + random.IntN(4) {
			s.claimsOf(fmt.Sprint("broken", i), fmt.Sprint("n", n), 1+random.IntN(greedy/2), hangs+fate(random.IntN(3)), false, early)
		}
	}
	for i := range healthy {
		provisioner := fmt.Sprint("healthy", i)
		s.claimsOf(provisioner, "greedy", greedy, works, false, early)
		if random.IntN(2) == 0 {
			s.claimsOf(provisioner, "broken", 1+random.IntN(greedy), hangs+fate(random.IntN(3)), false, early)
		}
		for n := range 1 + random.IntN(3) {
			s.claimsOf(provisioner, fmt.Sprint("modest", n), 1, works, true, giveUpAfter)
		}
	}
	return s
}

// run continues the simulation until a time, or until all watched claims are served; if all is set, until all healthy
// claims are.
func (s *simulation) run(all bool, until time.Duration) {
	for len(s.agenda) > 0 && s.now < until && (s.unserved > 0 || all && s.healthy > 0) {
		next := heap.Pop(&s.agenda).(occurrence)
		s.now = next.at
		if next.attempt == next.claim.attempt && !next.claim.done && !next.claim.lost {
			next.what(s, next.claim)
			s.check()
		}
	}
}

// bound returns how long a watched claim waits at most: for one attempt on a broken node and the delay after it. If
// there are as many namespaces as pods that may run at once, or more, it waits for their turns, of which pulls are the
// longest.
func (s *simulation) bound() time.Duration {
	if rounds := s.tenants / s.limits.Overall; rounds > 0 {
		return time.Duration(1+rounds) * (pullAtLeast + giveUpAfter)
	}
	return 2*giveUpAfter + 2*lendAfter
}

// A single claim of a namespace soon gets a slot on a working node, no matter how many pods, provisioners, nodes and
// other namespaces are broken or greedy. In the end, all healthy claims do.
func TestQueue_Simulated_ServesEveryHealthyClaim(t *testing.T) {
	seeds := 2_000
	if os.Getenv("PAV_LONG") != "" {
		seeds = 10_000
	}
	struck := map[string]int{}
	var longest time.Duration
	for seed := range uint64(seeds) {
		s := newSimulation(t, seed)
		all := seed%100 == 0
		s.run(all, 100*24*time.Hour)
		if s.unserved > 0 || all && s.healthy > 0 {
			t.Fatalf("seed %d: %d single claims and %d in all are not served after %s: %+v", seed, s.unserved, s.healthy, s.now, s.limits)
		}
		if bound := s.bound(); s.longest > bound {
			t.Errorf("seed %d: a claim was served after %s, later than %s: %+v, %d namespaces", seed, s.longest, bound, s.limits, s.tenants)
		}
		if s.tenants <= s.limits.Overall {
			longest = max(longest, s.longest)
		}
		for fault, times := range s.struck {
			struck[fault] += times
		}
	}
	for _, fault := range []string{"homeless", "broken", "node", "lost", "given up"} {
		if struck[fault] == 0 {
			t.Errorf("no pod was ever %q", fault)
		}
	}
	t.Logf("the longest wait was %s; faults: %v", longest, struck)
}

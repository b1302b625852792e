package queue

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// model is what the outside knows of a queue. It does not say who is next, but whether whoever the
// queue chose may be.
type model struct {
	t      *testing.T
	limits Limits
	queue  *Queue

	provisioner map[string]string
	state       map[string]state
	line        map[string][]string // by provisioner, those that wait

	// passed counts, by a provisioner that could use a turn and another, how many the other had meanwhile.
	passed map[[2]string]int
	woken  int
}

func newModel(t *testing.T, limits Limits) *model {
	t.Helper()
	m := &model{
		t: t, limits: limits,
		provisioner: map[string]string{}, state: map[string]state{}, line: map[string][]string{}, passed: map[[2]string]int{},
	}
	m.queue = New(limits, func(volume string) {
		if m.queue.mu.TryLock() {
			m.queue.mu.Unlock()
		} else {
			m.t.Fatalf("%s is woken with the lock held", volume)
		}
		m.woken++
		m.granted(volume)
	})
	return m
}

func (m *model) counts(provisioner string) Counts {
	counts := Counts{Waiting: len(m.line[provisioner])}
	for volume, state := range m.state {
		if m.provisioner[volume] != provisioner {
			continue
		}
		switch state {
		case runs:
			counts.Running++
		case lent:
			counts.Lent++
		case waits:
		}
	}
	return counts
}

func (m *model) running() (n int) {
	for _, state := range m.state {
		if state == runs {
			n++
		}
	}
	return n
}

// eligible says whether the provisioner could use room if there was any overall.
func (m *model) eligible(provisioner string) bool {
	counts := m.counts(provisioner)
	return counts.Waiting > 0 && counts.Running+counts.Lent < m.limits.PerProvisioner
}

// granted checks that a volume that waits may have a place now.
func (m *model) granted(volume string) {
	provisioner := m.provisioner[volume]
	line := m.line[provisioner]
	if len(line) == 0 || line[0] != volume {
		m.t.Fatalf("%s has a place, but the line is %q", volume, line)
	}
	if !m.eligible(provisioner) || m.running() >= m.limits.Overall {
		m.t.Fatalf("%s has a place beyond a limit: %+v, %d in all", volume, m.counts(provisioner), m.running())
	}
	m.line[provisioner] = line[1:]
	m.state[volume] = runs
	for other := range m.line {
		switch pair := [2]string{other, provisioner}; {
		case other == provisioner:
		case !m.eligible(other):
			delete(m.passed, pair)
		case m.passed[pair] > 0:
			m.t.Fatalf("%s has its second turn before the first of %s", provisioner, other)
		default:
			m.passed[pair]++
		}
		delete(m.passed, [2]string{provisioner, other})
	}
}

// check compares the queue with the model after each call.
func (m *model) check() {
	m.t.Helper()
	lines := map[string]bool{}
	for _, provisioner := range m.provisioner {
		lines[provisioner] = true
	}
	waiting := 0
	for provisioner := range lines {
		counts := m.counts(provisioner)
		waiting += counts.Waiting
		if diff := cmp.Diff(counts, m.queue.Of(provisioner)); diff != "" {
			m.t.Fatalf("counts of %s (-want +got):\n%s", provisioner, diff)
		}
		room := m.running() < m.limits.Overall
		if room && m.eligible(provisioner) {
			m.t.Fatalf("there is room, but %q wait and were not woken", m.line[provisioner])
		}
		if got, want := m.queue.Contended(provisioner), room && counts.Waiting > 0; got != want {
			m.t.Fatalf("%s is contended: got %t, want %t", provisioner, got, want)
		}
	}
	for other := range m.line {
		if !m.eligible(other) {
			for pair := range m.passed {
				if pair[0] == other {
					delete(m.passed, pair)
				}
			}
		}
	}
	if m.queue.Running() != m.running() || m.queue.Waiting() != waiting {
		m.t.Fatalf("%d run and %d wait, want %d and %d", m.queue.Running(), m.queue.Waiting(), m.running(), waiting)
	}
	if len(m.queue.volumes) != len(m.provisioner) || len(m.queue.lines) != len(lines) {
		m.t.Fatalf("%d volumes and %d lines, want %d and %d", len(m.queue.volumes), len(m.queue.lines), len(m.provisioner), len(lines))
	}
}

func (m *model) take(volume, provisioner string) {
	if _, known := m.provisioner[volume]; !known {
		m.provisioner[volume], m.state[volume] = provisioner, waits
		m.line[provisioner] = append(m.line[provisioner], volume)
	}
	before := m.woken
	took := m.queue.Take(volume, provisioner)
	if m.woken != before {
		m.t.Fatalf("taking %s woke somebody", volume)
	}
	if took && m.state[volume] == waits {
		m.granted(volume)
	}
	if took != (m.state[volume] != waits) {
		m.t.Fatalf("taking %s, of state %d: got %t", volume, m.state[volume], took)
	}
}

func (m *model) leaveLine(volume string) {
	provisioner := m.provisioner[volume]
	m.line[provisioner] = slices.DeleteFunc(slices.Clone(m.line[provisioner]), func(v string) bool { return v == volume })
}

func (m *model) adopt(volume, provisioner string) {
	if known := m.provisioner[volume]; known == "" {
		m.provisioner[volume] = provisioner
		m.state[volume] = runs
	} else if m.state[volume] == waits {
		m.leaveLine(volume)
		m.state[volume] = runs
	}
	m.queue.Adopt(volume, provisioner)
}

func (m *model) lend(volume string) {
	if state, known := m.state[volume]; known && state == runs {
		m.state[volume] = lent
	}
	m.queue.Lend(volume)
}

func (m *model) reclaim(volume string) {
	if m.state[volume] == lent {
		m.state[volume] = runs
	}
	m.queue.Reclaim(volume)
}

func (m *model) give(volume string) {
	m.leaveLine(volume)
	delete(m.provisioner, volume)
	delete(m.state, volume)
	m.queue.Give(volume)
}

func TestQueue_ByRandomCalls_KeepsItsPromises(t *testing.T) {
	for seed := range uint64(300) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 4))
			m := newModel(t, Limits{Overall: 1 + random.IntN(8), PerProvisioner: 1 + random.IntN(5)})
			provisioners, volumes := 1+random.IntN(6), 2+random.IntN(40)
			for range 400 {
				number := random.IntN(volumes)
				volume, provisioner := fmt.Sprint("v", number), fmt.Sprint("p", number%provisioners)
				switch random.IntN(12) {
				case 0:
					m.adopt(volume, provisioner)
				case 1:
					m.lend(volume)
				case 2:
					m.reclaim(volume)
				case 3, 4, 5:
					m.give(volume)
				default:
					m.take(volume, provisioner)
				}
				m.check()
			}
			for number := range volumes {
				m.give(fmt.Sprint("v", number))
				m.check()
			}
			if len(m.queue.volumes)+len(m.queue.lines)+m.queue.turns.Len() > 0 {
				t.Error("an empty queue keeps something")
			}
		})
	}
}

// Each volume is a goroutine, as impatient and as forgetful as reconcilers are.
func TestQueue_Concurrently_LosesNobody(t *testing.T) {
	const overall, perProvisioner, provisioners, volumes, pods = 6, 3, 4, 60, 50
	var wakers sync.Map
	q := New(Limits{Overall: overall, PerProvisioner: perProvisioner}, func(volume string) {
		waker, _ := wakers.Load(volume)
		select {
		case waker.(chan struct{}) <- struct{}{}:
		default:
		}
	})
	var runningOf [provisioners]atomic.Int64
	var running atomic.Int64
	deadline, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()

	runVolume := func(number int) {
		volume, provisioner := fmt.Sprint("v", number), fmt.Sprint("p", number%provisioners)
		random := rand.New(rand.NewPCG(uint64(number), 5))
		woken := make(chan struct{}, 1)
		wakers.Store(volume, woken)
		for range pods {
			for !q.Take(volume, provisioner) {
				if random.IntN(10) == 0 {
					q.Give(volume)
					continue
				}
				select {
				case <-woken:
				case <-deadline.Done():
					t.Errorf("%s was not woken", volume)
					return
				}
			}
			own := &runningOf[number%provisioners]
			if n := own.Add(1); n > perProvisioner {
				t.Errorf("%d volumes of %s have a place", n, provisioner)
			}
			if n := running.Add(1); n > overall {
				t.Errorf("%d volumes have a place", n)
			}
			running.Add(-1)
			if random.IntN(4) == 0 {
				q.Lend(volume)
			}
			own.Add(-1)
			q.Give(volume)
		}
	}
	var all sync.WaitGroup
	for number := range volumes {
		all.Go(func() { runVolume(number) })
	}
	all.Wait()
	if q.Running()+q.Waiting()+len(q.volumes)+len(q.lines) > 0 {
		t.Errorf("%d run and %d wait after the end", q.Running(), q.Waiting())
	}
}

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

// modelled is the state of a volume, as the callers of the queue know it.
type modelled struct {
	provisioner, namespace string
	state                  state
}

// tally counts volumes: all, those of a provisioner, or those of one of its namespaces.
type tally struct{ running, suspended, waiting int }

func (c tally) pods() int { return c.running + c.suspended }

// model is the state of a queue, as its callers know it. It does not predict which volume is next. It checks whether
// the volume that the queue chose may be next.
type model struct {
	t      *testing.T
	limits Limits
	queue  *Queue

	volumes map[string]*modelled
	order   map[[2]string][]string // the waiting volumes, by provisioner and namespace

	// passed counts turns. Its key is a pair: someone who could use a turn, and someone else. Its value is how many
	// turns the second has had while the first waited. Both are provisioners, or namespaces of one provisioner.
	passed map[[2]string]int
	woken  int
}

func newModel(t *testing.T, limits Limits) *model {
	t.Helper()
	m := &model{t: t, limits: limits, volumes: map[string]*modelled{}, order: map[[2]string][]string{}, passed: map[[2]string]int{}}
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

func (m *model) tally(of func(*modelled) bool) (c tally) {
	for _, v := range m.volumes {
		if !of(v) {
			continue
		}
		switch v.state {
		case runs:
			c.running++
		case suspended:
			c.suspended++
		case waits:
			c.waiting++
		}
	}
	return c
}

func (m *model) all() tally { return m.tally(func(*modelled) bool { return true }) }

func (m *model) of(provisioner string) tally {
	return m.tally(func(v *modelled) bool { return v.provisioner == provisioner })
}

func (m *model) within(provisioner, namespace string) tally {
	return m.tally(func(v *modelled) bool { return v.provisioner == provisioner && v.namespace == namespace })
}

// hasRoom reports whether the limits of running pods allow one more pod of a namespace.
func (m *model) hasRoom(provisioner, namespace string) bool {
	all, line, tenant := m.all(), m.of(provisioner), m.within(provisioner, namespace)
	free, own := m.limits.Overall-all.running, m.limits.PerProvisioner-line.running
	return free > 0 && own > 0 &&
		(line.running == 0 || free > m.limits.Overall/10) && (tenant.running == 0 || own > m.limits.PerProvisioner/10)
}

// eligible reports whether a waiting volume of a namespace may have a slot.
func (m *model) eligible(provisioner, namespace string) bool {
	return m.within(provisioner, namespace).waiting > 0 && m.hasRoom(provisioner, namespace) && m.mayGrow(provisioner, namespace)
}

// mayGrow reports whether the number of pods, including those that cannot start, allows one more pod of a namespace.
func (m *model) mayGrow(provisioner, namespace string) bool {
	all, line, tenant := m.all(), m.of(provisioner), m.within(provisioner, namespace)
	return line.pods() == 0 || tenant.pods() == 0 && all.pods() < 3*m.limits.Overall ||
		all.pods() < 2*m.limits.Overall && line.suspended < m.limits.PerProvisioner
}

// granted checks that a waiting volume may have a slot now, and records that it has one.
func (m *model) granted(volume string) {
	v := m.volumes[volume]
	key := [2]string{v.provisioner, v.namespace}
	if waiting := m.order[key]; len(waiting) == 0 || waiting[0] != volume {
		m.t.Fatalf("%s has a place, but those that wait are %q", volume, waiting)
	}
	if !m.eligible(v.provisioner, v.namespace) {
		m.t.Fatalf("%s has a place beyond a limit: %+v, %+v in all", volume, m.of(v.provisioner), m.all())
	}
	provisioners, tenants := m.eligibles()
	m.order[key] = m.order[key][1:]
	v.state = runs
	m.pass(v.provisioner, provisioners)
	m.pass(v.provisioner+"/"+v.namespace, tenants[v.provisioner])
}

// eligibles returns which provisioners and, by provisioner, which of its namespaces could use a turn.
func (m *model) eligibles() (provisioners map[string]bool, tenants map[string]map[string]bool) {
	provisioners, tenants = map[string]bool{}, map[string]map[string]bool{}
	for key := range m.order {
		if tenants[key[0]] == nil {
			tenants[key[0]] = map[string]bool{}
		}
		can := m.eligible(key[0], key[1])
		provisioners[key[0]] = provisioners[key[0]] || can
		tenants[key[0]][key[0]+"/"+key[1]] = can
	}
	return provisioners, tenants
}

// pass records a turn. It checks that nobody has two turns while someone else, who could use a turn, has none.
func (m *model) pass(chosen string, among map[string]bool) {
	for other, can := range among {
		switch pair := [2]string{other, chosen}; {
		case other == chosen:
		case !can:
			delete(m.passed, pair)
		case m.passed[pair] > 0:
			m.t.Fatalf("%s has its second turn before the first of %s", chosen, other)
		default:
			m.passed[pair]++
		}
		delete(m.passed, [2]string{chosen, other})
	}
}

// check compares the queue with the model after each call.
func (m *model) check() {
	m.t.Helper()
	provisioners, tenants := map[string]bool{}, map[[2]string]bool{}
	for _, v := range m.volumes {
		provisioners[v.provisioner] = true
		tenants[[2]string{v.provisioner, v.namespace}] = true
	}
	hindered := map[string]bool{}
	for key := range tenants {
		if m.eligible(key[0], key[1]) {
			m.t.Fatalf("there is room, but %q wait and were not woken", m.order[key])
		}
		hindered[key[0]] = hindered[key[0]] || m.within(key[0], key[1]).waiting > 0 && !m.mayGrow(key[0], key[1])
	}
	all := m.all()
	for provisioner := range provisioners {
		of := m.of(provisioner)
		if diff := cmp.Diff(Counts{Running: of.running, Suspended: of.suspended, Waiting: of.waiting}, m.queue.Of(provisioner)); diff != "" {
			m.t.Fatalf("counts of %s (-want +got):\n%s", provisioner, diff)
		}
		want := hindered[provisioner]
		for other := range provisioners {
			want = want || hindered[other] && all.pods() >= 2*m.limits.Overall
		}
		if got := m.queue.Contended(provisioner); got != (want && of.suspended > 0) {
			m.t.Fatalf("%s is contended: got %t", provisioner, got)
		}
	}
	m.forgetPassed()
	if m.queue.Running() != all.running || m.queue.Waiting() != all.waiting {
		m.t.Fatalf("%d run and %d wait, want %+v", m.queue.Running(), m.queue.Waiting(), all)
	}
	known := 0
	for _, l := range m.queue.queues {
		known += len(l.tenants)
	}
	if len(m.queue.objects) != len(m.volumes) || len(m.queue.queues) != len(provisioners) || known != len(tenants) {
		m.t.Fatalf("%d volumes, %d lines, %d tenants, want %d, %d and %d", len(m.queue.objects), len(m.queue.queues), known, len(m.volumes), len(provisioners), len(tenants))
	}
}

// forgetPassed removes the counts for those that cannot use a turn now.
func (m *model) forgetPassed() {
	provisioners, tenants := m.eligibles()
	for pair := range m.passed {
		can := provisioners[pair[0]]
		for _, of := range tenants {
			can = can || of[pair[0]]
		}
		if !can {
			delete(m.passed, pair)
		}
	}
}

func (m *model) know(volume, provisioner, namespace string, state state) *modelled {
	v := &modelled{provisioner: provisioner, namespace: namespace, state: state}
	m.volumes[volume] = v
	return v
}

func (m *model) take(volume, provisioner, namespace string) {
	v := m.volumes[volume]
	if v == nil {
		v = m.know(volume, provisioner, namespace, waits)
		key := [2]string{provisioner, namespace}
		m.order[key] = append(m.order[key], volume)
	}
	before := m.woken
	took := m.queue.Acquire(volume, provisioner, namespace)
	if m.woken != before {
		m.t.Fatalf("taking %s woke someone", volume)
	}
	if took && v.state == waits {
		m.granted(volume)
	}
	if took != (v.state != waits) {
		m.t.Fatalf("taking %s, of state %d: got %t", volume, v.state, took)
	}
}

func (m *model) leave(volume string) {
	if v := m.volumes[volume]; v != nil && v.state == waits {
		key := [2]string{v.provisioner, v.namespace}
		m.order[key] = slices.DeleteFunc(slices.Clone(m.order[key]), func(w string) bool { return w == volume })
	}
}

func (m *model) adopt(volume, provisioner, namespace string) {
	m.leave(volume)
	if v := m.volumes[volume]; v == nil {
		m.know(volume, provisioner, namespace, runs)
	} else if v.state == waits {
		v.state = runs
	}
	m.queue.Restore(volume, provisioner, namespace)
}

func (m *model) lend(volume string) {
	if v := m.volumes[volume]; v != nil && v.state == runs {
		v.state = suspended
	}
	m.queue.Suspend(volume)
}

func (m *model) reclaim(volume string) {
	if v := m.volumes[volume]; v != nil && v.state == suspended {
		v.state = runs
	}
	m.queue.Resume(volume)
}

func (m *model) give(volume string) {
	m.leave(volume)
	delete(m.volumes, volume)
	m.queue.Release(volume)
}

func TestQueue_ByRandomCalls_KeepsItsPromises(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 4))
			m := newModel(t, Limits{Overall: 1 + random.IntN(14), PerProvisioner: 1 + random.IntN(12)})
			provisioners, namespaces, volumes := 1+random.IntN(6), 1+random.IntN(3), 2+random.IntN(60)
			for range 300 {
				number := random.IntN(volumes)
				volume, provisioner, namespace := fmt.Sprint("v", number), fmt.Sprint("p", number%provisioners), fmt.Sprint("n", number/7%namespaces)
				switch random.IntN(12) {
				case 0:
					m.adopt(volume, provisioner, namespace)
				case 1, 2:
					m.lend(volume)
				case 3:
					m.reclaim(volume)
				case 4, 5:
					m.give(volume)
				default:
					m.take(volume, provisioner, namespace)
				}
				m.check()
			}
			for number := range volumes {
				m.give(fmt.Sprint("v", number))
				m.check()
			}
			if len(m.queue.objects)+len(m.queue.queues)+m.queue.roundRobin.Len() > 0 {
				t.Error("an empty queue keeps something")
			}
		})
	}
}

// Each volume is a goroutine. As a reconciler may, it sometimes gives up its place in the queue and asks again.
func TestQueue_Concurrently_LosesNoWaiter(t *testing.T) {
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
			for !q.Acquire(volume, provisioner, fmt.Sprint("n", number%3)) {
				if random.IntN(10) == 0 {
					q.Release(volume)
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
				q.Suspend(volume)
			}
			own.Add(-1)
			q.Release(volume)
		}
	}
	var all sync.WaitGroup
	for number := range volumes {
		all.Go(func() { runVolume(number) })
	}
	all.Wait()
	if q.Running()+q.Waiting()+len(q.objects)+len(q.queues) > 0 {
		t.Errorf("%d run and %d wait after the end", q.Running(), q.Waiting())
	}
}

package queue

import (
	"container/list"
	"sync"
)

// Limits are how many volumes may have a place at once. Zero, or less, is no limit.
type Limits struct {
	// Overall bounds the running pods of all provisioners. Pods that cannot start do not count, but all pods
	// together, those included, stay within three times the limit and one more for each provisioner.
	Overall int

	// PerProvisioner bounds the running pods of one provisioner. While as many of its pods cannot start, it
	// gets places only for namespaces that have none.
	PerProvisioner int
}

// Queue gives places to volumes, one for each workflow pod: by turns to provisioners, by turns to the
// namespaces of one provisioner, and in the order of their requests to those of one namespace. It is safe
// for concurrent use.
//
// A volume is unknown, or waits, or has a place. A place is lent while the pod that it was given for cannot
// start: somebody else may run a pod meanwhile. Three rules keep everybody else going, however many pods of
// others run for long or never start:
//   - A tenth of all places is kept for provisioners that have none running, and a tenth of those of one
//     provisioner for namespaces that have none running.
//   - Suspended slots stop first the provisioner, then the namespace that has them.
//   - A provisioner that has no place at all gets one as soon as a place is free.
type Queue struct {
	limits Limits
	wake   func(volume string)

	mu      sync.Mutex
	volumes map[string]*entry
	lines   map[string]*provisionerQueue

	// turns are the lines in which volumes wait; the next is the first.
	turns *list.List

	running, lent, waiting int
}

// state of a volume that the queue knows.
type state int

const (
	waits state = iota
	runs
	lent
)

// entry is a volume.
type entry struct {
	volume string
	line   *provisionerQueue
	tenant *tenant
	state  state
	inLine *list.Element // where it waits
}

// provisionerQueue is a provisioner, as long as there are volumes of it.
type provisionerQueue struct {
	provisioner            string
	running, lent, waiting int

	tenants map[string]*tenant
	turns   *list.List    // the tenants of which volumes wait; the next is the first
	turn    *list.Element // in Queue.turns, or nil
}

// tenant is a namespace, as long as it has volumes of a provisioner.
type tenant struct {
	namespace     string
	running, lent int
	waiting       *list.List    // of *entry, first come first
	turn          *list.Element // in line.turns, or nil
}

// New returns an empty queue. Wake is called with each volume that waited and has a place now; its
// next Acquire is true. Wake is called by the goroutine that made the room, before its call returns,
// and must not wait for anything. It may come late: for a volume that has given its place back.
func New(limits Limits, wake func(volume string)) *Queue {
	return &Queue{limits: limits, wake: wake, volumes: map[string]*entry{}, lines: map[string]*provisionerQueue{}, turns: list.New()}
}

// Acquire reports whether the volume has a place for its pod, and gives it one if it has none and it is
// its turn. Otherwise the volume waits. A volume keeps its slot until Release, and a suspended slot is one as
// well: a volume whose pod has ended, or was never created, must give it back before the next. Provisioner
// and namespace are those of the first call.
func (q *Queue) Acquire(volume, provisioner, namespace string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	e := q.volumes[volume]
	if e == nil {
		e = q.add(volume, provisioner, namespace)
		q.enqueue(e)
		// Nobody else can get a place by this, who would have to be woken: whoever may have one has it.
		q.grant()
	}
	return e.state != waits
}

// Restore gives a place to a volume whose pod runs already, also above the limits. After a restart,
// it comes before the first Acquire. A slot that is suspended stays so.
func (q *Queue) Restore(volume, provisioner, namespace string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	e := q.volumes[volume]
	switch {
	case e == nil:
		e = q.add(volume, provisioner, namespace)
	case e.state == waits:
		q.dequeue(e)
	default:
		return
	}
	q.count(e, runs, 1)
}

// Suspend takes note that the pod of a volume with a place cannot start.
func (q *Queue) Suspend(volume string) { q.swap(volume, runs, lent) }

// Resume takes note that the pod has started after all: its place counts again, also above the limit.
func (q *Queue) Resume(volume string) { q.swap(volume, lent, runs) }

func (q *Queue) swap(volume string, from, to state) {
	q.change(func() {
		if e := q.volumes[volume]; e != nil && e.state == from {
			q.count(e, from, -1)
			q.count(e, to, 1)
		}
	})
}

// Release forgets the volume: it gives back its place, whether it has used it or not, or waits no more.
func (q *Queue) Release(volume string) {
	q.change(func() {
		e := q.volumes[volume]
		if e == nil {
			return
		}
		delete(q.volumes, volume)
		if e.state == waits {
			q.dequeue(e)
		} else {
			q.count(e, e.state, -1)
		}
		q.forget(e)
	})
}

// change makes a change that may make room, then wakes those who get it.
func (q *Queue) change(apply func()) {
	q.mu.Lock()
	apply()
	woken := q.grant()
	q.mu.Unlock()

	for _, volume := range woken {
		q.wake(volume)
	}
}

// grant gives places as long as there are volumes that may have one, and returns these volumes.
func (q *Queue) grant() (woken []string) {
	for e := q.next(); e != nil; e = q.next() {
		// One place each: all others are before it then.
		e.line.turns.MoveToBack(e.tenant.turn)
		q.turns.MoveToBack(e.line.turn)
		q.dequeue(e)
		q.count(e, runs, 1)
		woken = append(woken, e.volume)
	}
	return woken
}

// next returns the volume whose turn it is to get a place, or nil if none may have one.
func (q *Queue) next() *entry {
	if !below(q.running, q.limits.Overall) {
		return nil
	}
	for lines := q.turns.Front(); lines != nil; lines = lines.Next() {
		l := lines.Value.(*provisionerQueue)
		for tenants := l.turns.Front(); tenants != nil; tenants = tenants.Next() {
			if t := tenants.Value.(*tenant); q.hasRoom(l, t) && q.mayGrow(l, t) {
				return t.waiting.Front().Value.(*entry)
			}
		}
	}
	return nil
}

// hasRoom reports whether the pods that run leave room for one of a tenant.
func (q *Queue) hasRoom(l *provisionerQueue, t *tenant) bool {
	overall, own := q.limits.Overall, q.limits.PerProvisioner
	if l.running > 0 {
		overall -= kept(overall)
	}
	if t.running > 0 {
		own -= kept(own)
	}
	return below(q.running, overall) && below(l.running, own)
}

// kept returns how many places of a limit are kept for those who have none running.
func kept(limit int) int { return limit / 10 }

// mayGrow reports whether the pods that cannot start allow for another one of a tenant.
func (q *Queue) mayGrow(l *provisionerQueue, t *tenant) bool {
	pods := q.running + q.lent
	switch {
	case l.running+l.lent == 0:
		return true
	case t.running+t.lent == 0:
		return below(pods, 3*q.limits.Overall)
	default:
		return below(pods, 2*q.limits.Overall) && below(l.lent, q.limits.PerProvisioner)
	}
}

func (q *Queue) add(volume, provisioner, namespace string) *entry {
	l := q.lines[provisioner]
	if l == nil {
		l = &provisionerQueue{provisioner: provisioner, tenants: map[string]*tenant{}, turns: list.New()}
		q.lines[provisioner] = l
	}
	t := l.tenants[namespace]
	if t == nil {
		t = &tenant{namespace: namespace, waiting: list.New()}
		l.tenants[namespace] = t
	}
	e := &entry{volume: volume, line: l, tenant: t}
	q.volumes[volume] = e
	return e
}

// forget forgets the tenant and the line of a volume that is gone, if there is nothing else of them.
func (q *Queue) forget(e *entry) {
	l, t := e.line, e.tenant
	if t.running+t.lent+t.waiting.Len() == 0 {
		delete(l.tenants, t.namespace)
	}
	if len(l.tenants) == 0 {
		delete(q.lines, l.provisioner)
	}
}

func (q *Queue) enqueue(e *entry) {
	l, t := e.line, e.tenant
	e.state = waits
	e.inLine = t.waiting.PushBack(e)
	q.waiting++
	l.waiting++
	if t.turn == nil {
		t.turn = l.turns.PushBack(t)
	}
	if l.turn == nil {
		l.turn = q.turns.PushBack(l)
	}
}

func (q *Queue) dequeue(e *entry) {
	l, t := e.line, e.tenant
	t.waiting.Remove(e.inLine)
	e.inLine = nil
	q.waiting--
	l.waiting--
	if t.waiting.Len() == 0 {
		l.turns.Remove(t.turn)
		t.turn = nil
	}
	if l.waiting == 0 {
		q.turns.Remove(l.turn)
		l.turn = nil
	}
}

// count adds a number to the places of a state, and puts the volume into it.
func (q *Queue) count(e *entry, s state, number int) {
	e.state = s
	if s == lent {
		q.lent += number
		e.line.lent += number
		e.tenant.lent += number
		return
	}
	q.running += number
	e.line.running += number
	e.tenant.running += number
}

func below(n, limit int) bool {
	return limit <= 0 || n < limit
}

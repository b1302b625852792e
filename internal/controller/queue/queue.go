package queue

import (
	"container/list"
	"sync"
)

// Limits are how many objects may have a slot at once. Zero or less means no limit.
type Limits struct {
	// Overall limits the running pods of all provisioners. Pods that cannot start do not count, but all pods together
	// are at most three times the limit, plus one for each provisioner.
	Overall int

	// PerProvisioner limits the running pods of one provisioner. While as many of its pods cannot start, it gets
	// slots only for namespaces that have none.
	PerProvisioner int
}

// Queue gives slots to objects, one for each workflow pod: round-robin over provisioners, round-robin over the
// namespaces of one provisioner, and in the order of the requests within a namespace. It is safe for concurrent use.
//
// An object is unknown, waits, or has a slot. A slot is suspended while its pod cannot start: another object may run a
// pod meanwhile. Three rules guarantee progress for all, even if many pods of others run for long or never start:
//   - A tenth of all slots is reserved for provisioners that have none running, and a tenth of those of one
//     provisioner for namespaces that have none running.
//   - Suspended slots first block the provisioner, then the namespace that has them.
//   - A provisioner that has no slot gets one as soon as a slot is free.
type Queue struct {
	limits Limits
	wake   func(object string)

	mu      sync.Mutex
	objects map[string]*entry
	queues  map[string]*provisionerQueue

	// roundRobin are the provisioners with waiting objects; the first is the next.
	roundRobin *list.List

	running, suspended, waiting int
}

// state is the state of an object in the queue.
type state int

const (
	waits state = iota
	runs
	suspended
)

// entry is an object.
type entry struct {
	object  string
	queue   *provisionerQueue
	tenant  *tenant
	state   state
	inQueue *list.Element // its place in the list of waiting objects
}

// provisionerQueue has the objects of a provisioner. It exists as long as there are any.
type provisionerQueue struct {
	provisioner                 string
	running, suspended, waiting int

	tenants    map[string]*tenant
	roundRobin *list.List    // the tenants with waiting objects; the first is the next
	turn       *list.Element // in Queue.roundRobin, or nil
}

// tenant has the objects of a provisioner in a namespace. It exists as long as there are any.
type tenant struct {
	namespace          string
	running, suspended int
	waiting            *list.List    // of *entry, in the order of requests
	turn               *list.Element // in provisionerQueue.roundRobin, or nil
}

// New returns an empty queue. Wake is called with each object that waited and has a slot now; its next Acquire
// returns true. Wake is called by the goroutine that freed the slot, before its call returns, and must not block. It
// may be called late: for an object that has already released its slot.
func New(limits Limits, wake func(object string)) *Queue {
	return &Queue{limits: limits, wake: wake, objects: map[string]*entry{}, queues: map[string]*provisionerQueue{}, roundRobin: list.New()}
}

// Acquire reports whether the object has a slot for its pod, and gives it one if that is possible. Otherwise the
// object waits. An object keeps its slot until Release, even if the slot is suspended: when its pod has ended, or was
// never created, it must release the slot before the next pod. Provisioner and namespace are those of the first call.
func (q *Queue) Acquire(object, provisioner, namespace string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	e := q.objects[object]
	if e == nil {
		e = q.add(object, provisioner, namespace)
		q.enqueue(e)
		// No other object can get a slot because of this call, so none must be woken.
		q.grant()
	}
	return e.state != waits
}

// Restore gives a slot to an object whose pod already runs, even above the limits. After a restart, it must be called
// before the first Acquire. A suspended slot stays suspended.
func (q *Queue) Restore(object, provisioner, namespace string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	e := q.objects[object]
	switch {
	case e == nil:
		e = q.add(object, provisioner, namespace)
	case e.state == waits:
		q.dequeue(e)
	default:
		return
	}
	q.count(e, runs, 1)
}

// Suspend suspends the slot of an object whose pod cannot start.
func (q *Queue) Suspend(object string) { q.swap(object, runs, suspended) }

// Resume ends the suspension, as the pod has started: its slot counts again, even above the limit.
func (q *Queue) Resume(object string) { q.swap(object, suspended, runs) }

func (q *Queue) swap(object string, from, to state) {
	q.change(func() {
		if e := q.objects[object]; e != nil && e.state == from {
			q.count(e, from, -1)
			q.count(e, to, 1)
		}
	})
}

// Release removes the object: it releases its slot, used or not, or stops waiting.
func (q *Queue) Release(object string) {
	q.change(func() {
		e := q.objects[object]
		if e == nil {
			return
		}
		delete(q.objects, object)
		if e.state == waits {
			q.dequeue(e)
		} else {
			q.count(e, e.state, -1)
		}
		q.forget(e)
	})
}

// change makes a change that may free slots, then wakes the objects that get them.
func (q *Queue) change(apply func()) {
	q.mu.Lock()
	apply()
	woken := q.grant()
	q.mu.Unlock()

	for _, object := range woken {
		q.wake(object)
	}
}

// grant gives slots to objects as long as that is possible, and returns these objects.
func (q *Queue) grant() (woken []string) {
	for e := q.next(); e != nil; e = q.next() {
		// One slot each: it is the last in turn then.
		e.queue.roundRobin.MoveToBack(e.tenant.turn)
		q.roundRobin.MoveToBack(e.queue.turn)
		q.dequeue(e)
		q.count(e, runs, 1)
		woken = append(woken, e.object)
	}
	return woken
}

// next returns the next object to get a slot, or nil if none may get one.
func (q *Queue) next() *entry {
	if !below(q.running, q.limits.Overall) {
		return nil
	}
	for element := q.roundRobin.Front(); element != nil; element = element.Next() {
		l := element.Value.(*provisionerQueue)
		for tenants := l.roundRobin.Front(); tenants != nil; tenants = tenants.Next() {
			if t := tenants.Value.(*tenant); q.hasRoom(l, t) && q.mayGrow(l, t) {
				return t.waiting.Front().Value.(*entry)
			}
		}
	}
	return nil
}

// hasRoom reports whether the limits on running pods allow another pod of a tenant.
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

// kept returns how many slots of a limit are reserved for those that have none running.
func kept(limit int) int { return limit / 10 }

// mayGrow reports whether the limits on pods that cannot start allow another pod of a tenant.
func (q *Queue) mayGrow(l *provisionerQueue, t *tenant) bool {
	pods := q.running + q.suspended
	switch {
	case l.running+l.suspended == 0:
		return true
	case t.running+t.suspended == 0:
		return below(pods, 3*q.limits.Overall)
	default:
		return below(pods, 2*q.limits.Overall) && below(l.suspended, q.limits.PerProvisioner)
	}
}

func (q *Queue) add(object, provisioner, namespace string) *entry {
	l := q.queues[provisioner]
	if l == nil {
		l = &provisionerQueue{provisioner: provisioner, tenants: map[string]*tenant{}, roundRobin: list.New()}
		q.queues[provisioner] = l
	}
	t := l.tenants[namespace]
	if t == nil {
		t = &tenant{namespace: namespace, waiting: list.New()}
		l.tenants[namespace] = t
	}
	e := &entry{object: object, queue: l, tenant: t}
	q.objects[object] = e
	return e
}

// forget removes the tenant and the provisioner of an object that is gone, if they have no other objects.
func (q *Queue) forget(e *entry) {
	l, t := e.queue, e.tenant
	if t.running+t.suspended+t.waiting.Len() == 0 {
		delete(l.tenants, t.namespace)
	}
	if len(l.tenants) == 0 {
		delete(q.queues, l.provisioner)
	}
}

func (q *Queue) enqueue(e *entry) {
	l, t := e.queue, e.tenant
	e.state = waits
	e.inQueue = t.waiting.PushBack(e)
	q.waiting++
	l.waiting++
	if t.turn == nil {
		t.turn = l.roundRobin.PushBack(t)
	}
	if l.turn == nil {
		l.turn = q.roundRobin.PushBack(l)
	}
}

func (q *Queue) dequeue(e *entry) {
	l, t := e.queue, e.tenant
	t.waiting.Remove(e.inQueue)
	e.inQueue = nil
	q.waiting--
	l.waiting--
	if t.waiting.Len() == 0 {
		l.roundRobin.Remove(t.turn)
		t.turn = nil
	}
	if l.waiting == 0 {
		q.roundRobin.Remove(l.turn)
		l.turn = nil
	}
}

// count adds a number to the counts of a state, and sets the state of the object.
func (q *Queue) count(e *entry, s state, number int) {
	e.state = s
	if s == suspended {
		q.suspended += number
		e.queue.suspended += number
		e.tenant.suspended += number
		return
	}
	q.running += number
	e.queue.running += number
	e.tenant.running += number
}

func below(n, limit int) bool {
	return limit <= 0 || n < limit
}

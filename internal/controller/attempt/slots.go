package attempt

import (
	"strings"
	"time"

	"github.com/albertofaria/pav/internal/controller/queue"
	"github.com/albertofaria/pav/internal/workflow"
)

// Pool has the slots of the pods of all kinds of objects, and remembers the nodes on which pods hung, whatever they were for.
type Pool struct {
	queue *queue.Queue
	hung  hungNodes
	wake  map[string]func(name string) // by kind
}

// NewPool returns the slots of an empty queue.
func NewPool(limits queue.Limits) *Pool {
	p := &Pool{wake: map[string]func(string){}}
	p.queue = queue.New(limits, func(key string) {
		kind, name, _ := strings.Cut(key, "/")
		p.wake[kind](name)
	})
	return p
}

// Of returns the slots of one kind; wake is as of queue.New, with the names of objects of that kind. It must be called once for
// each kind, before the first pass of any.
func (p *Pool) Of(kind string, wake func(name string)) *Slots {
	p.wake[kind] = wake
	return &Slots{pool: p, kind: kind}
}

// All returns the counts of all provisioners that have objects in the queue, by name.
func (p *Pool) All() map[string]queue.Counts { return p.queue.All() }

// Slots gives the pods of the objects of one kind their slots. It is safe for concurrent use.
type Slots struct {
	pool *Pool
	kind string
}

// Owner is the object that a slot is for.
type Owner struct {
	// Name is the object's, Provisioner that of its PavProvisioner, and Namespace that of the tenant for whom the
	// pod runs.
	Name, Provisioner, Namespace string
}

// key returns the key of an object in the queue, which no object of another kind has.
func (s *Slots) key(name string) string { return s.kind + "/" + name }

// Acquire reports whether the object has a slot for its pod; see queue.Queue.
func (s *Slots) Acquire(o Owner) bool {
	return s.pool.queue.Acquire(s.key(o.Name), o.Provisioner, o.Namespace)
}

// Restore gives a slot to an object whose pod exists; see queue.Queue.
func (s *Slots) Restore(o Owner) { s.pool.queue.Restore(s.key(o.Name), o.Provisioner, o.Namespace) }

// Release releases the slot of an object, or ends its wait for one; see queue.Queue.
func (s *Slots) Release(name string) { s.pool.queue.Release(s.key(name)) }

// Contended reports whether objects of any kind wait because pods of the provisioner cannot start; see queue.Queue.
func (s *Slots) Contended(provisioner string) bool { return s.pool.queue.Contended(provisioner) }

// Avoid returns the nodes that pods of a provisioner should avoid, sorted; none if there are too many.
func (s *Slots) Avoid(provisioner string, now time.Time) []string {
	return s.pool.hung.of(provisioner, now)
}

// Sync brings the object's slot into line with the state of its pod.
func (s *Slots) Sync(o Owner, a Attempt) {
	switch a.Progress() {
	case Intended: // it waits for a slot, or is about to
	case Stopping:
		s.syncStopping(o, a)
	case Running, Ready:
		s.Restore(o)
		pod := a.Pod()
		switch {
		case workflow.Started(pod):
			s.pool.queue.Resume(s.key(o.Name))
			s.pool.hung.clear(o.Provisioner, pod.Spec.NodeName, workflow.StartOf(pod))
		case CannotStart(a.Now, pod):
			s.pool.queue.Suspend(s.key(o.Name))
		}
		if IsHung(a.Now, pod) {
			s.pool.hung.note(o.Provisioner, pod.Spec.NodeName, a.Now)
		}
	default:
		s.Release(o.Name)
	}
}

// syncStopping is Sync for a pod that is being deleted. If its kubelet does not confirm the end in time, the node may
// be lost: the pod keeps no slot, as it might keep it for any time. Such pods are no more than ran on that node.
func (s *Slots) syncStopping(o Owner, a Attempt) {
	pod := a.Pod()
	if stopTimeLeft(a.Now, pod) > 0 {
		s.Restore(o)
		return
	}
	s.Release(o.Name)
	if !workflow.Started(pod) {
		s.pool.hung.note(o.Provisioner, pod.Spec.NodeName, a.Now)
	}
}

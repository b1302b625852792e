package attempt

import (
	"time"

	"github.com/albertofaria/pav/internal/controller/queue"
	"github.com/albertofaria/pav/internal/workflow"
)

// Slots gives the pods of objects their slots in a queue, and remembers the nodes on which pods hung. It is safe for
// concurrent use.
type Slots struct {
	*queue.Queue

	hung hungNodes
}

// NewSlots returns the slots of an empty queue; wake is as of queue.New.
func NewSlots(limits queue.Limits, wake func(object string)) *Slots {
	return &Slots{Queue: queue.New(limits, wake)}
}

// Owner is the object that a slot is for.
type Owner struct {
	// Name is the object's, Provisioner that of its PavProvisioner, and Namespace that of the tenant for whom the
	// pod runs.
	Name, Provisioner, Namespace string
}

// Acquire reports whether the object has a slot for its pod; see queue.Queue.
func (s *Slots) Acquire(o Owner) bool { return s.Queue.Acquire(o.Name, o.Provisioner, o.Namespace) }

// Restore gives a slot to an object whose pod exists; see queue.Queue.
func (s *Slots) Restore(o Owner) { s.Queue.Restore(o.Name, o.Provisioner, o.Namespace) }

// Avoid returns the nodes that pods of a provisioner should avoid, sorted; none if there are too many.
func (s *Slots) Avoid(provisioner string, now time.Time) []string { return s.hung.of(provisioner, now) }

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
			s.Resume(o.Name)
			s.hung.clear(o.Provisioner, pod.Spec.NodeName, workflow.StartOf(pod))
		case CannotStart(a.Now, pod):
			s.Suspend(o.Name)
		}
		if IsHung(a.Now, pod) {
			s.hung.note(o.Provisioner, pod.Spec.NodeName, a.Now)
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
		s.hung.note(o.Provisioner, pod.Spec.NodeName, a.Now)
	}
}

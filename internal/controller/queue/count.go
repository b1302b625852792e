package queue

// Running returns how many slots count against the overall limit: those of running pods, and those of objects that
// are about to create one.
func (q *Queue) Running() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.running
}

// Waiting returns how many objects wait.
func (q *Queue) Waiting() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.waiting
}

// Counts are the objects of a provisioner.
type Counts struct {
	// Running are those that count against the limits, and Suspended those whose pods cannot start.
	Running, Suspended int

	// Waiting are those without a slot.
	Waiting int
}

// Of returns the counts of a provisioner.
func (q *Queue) Of(provisioner string) Counts {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.queues[provisioner]
	if l == nil {
		return Counts{}
	}
	return l.counts()
}

func (l *provisionerQueue) counts() Counts {
	return Counts{Running: l.running, Suspended: l.suspended, Waiting: l.waiting}
}

// Contended reports whether objects wait because pods cannot start, and some of these pods are the provisioner's. The
// objects may also wait for running pods, but those end.
func (q *Queue) Contended(provisioner string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	own := q.queues[provisioner]
	if own == nil || own.suspended == 0 {
		return false
	}
	crowded := !below(q.running+q.suspended, 2*q.limits.Overall)
	for element := q.roundRobin.Front(); element != nil; element = element.Next() {
		if l := element.Value.(*provisionerQueue); (crowded || l == own) && q.isHindered(l) {
			return true
		}
	}
	return false
}

// isHindered reports whether objects of a provisioner wait because of pods that cannot start.
func (q *Queue) isHindered(l *provisionerQueue) bool {
	for tenants := l.roundRobin.Front(); tenants != nil; tenants = tenants.Next() {
		if !q.mayGrow(l, tenants.Value.(*tenant)) {
			return true
		}
	}
	return false
}

// All returns the counts of all provisioners that have objects in the queue, by name.
func (q *Queue) All() map[string]Counts {
	q.mu.Lock()
	defer q.mu.Unlock()
	all := make(map[string]Counts, len(q.queues))
	for name, l := range q.queues {
		all[name] = l.counts()
	}
	return all
}

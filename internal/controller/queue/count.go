package queue

// Running returns how many places count against the overall limit: those of running pods, and those
// of volumes that are about to create one.
func (q *Queue) Running() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.running
}

// Waiting returns how many volumes wait in line.
func (q *Queue) Waiting() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.waiting
}

// Counts are the volumes of a provisioner.
type Counts struct {
	// Running are those that count against the overall limit, Lent those whose pods cannot start;
	// both count against the provisioner's own.
	Running, Lent int

	// Waiting are those in line.
	Waiting int
}

// Of returns the counts of a provisioner.
func (q *Queue) Of(provisioner string) Counts {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.lines[provisioner]
	if l == nil {
		return Counts{}
	}
	return Counts{Running: l.places - l.lent, Lent: l.lent, Waiting: l.waiting.Len()}
}

// Contended says whether volumes of the provisioner wait for no other reason than its own limit:
// there is room overall.
func (q *Queue) Contended(provisioner string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.lines[provisioner]
	return l != nil && l.waiting.Len() > 0 && below(q.running, q.limits.Overall) && !below(l.places, q.limits.PerProvisioner)
}

// All returns the counts of all provisioners of which there are volumes, by name.
func (q *Queue) All() map[string]Counts {
	q.mu.Lock()
	defer q.mu.Unlock()
	all := make(map[string]Counts, len(q.lines))
	for name, l := range q.lines {
		all[name] = Counts{Running: l.places - l.lent, Lent: l.lent, Waiting: l.waiting.Len()}
	}
	return all
}

package queue

import (
	"container/list"
	"sync"
)

// Limits are how many volumes may have a place at once. Zero, or less, is no limit.
type Limits struct {
	// Overall counts all volumes, save those whose pods cannot start.
	Overall int

	// PerProvisioner counts the volumes of one provisioner, all of them.
	PerProvisioner int
}

// Queue gives places to volumes, one for each workflow pod: in the order of their requests to those
// of one provisioner, and in turns to provisioners. It is safe for concurrent use.
//
// A volume is unknown, or waits in line, or has a place. A place is lent while the pod that it was
// given for cannot start: it then counts for its provisioner but not overall, so that a provisioner
// whose pods hang stops itself but nobody else.
type Queue struct {
	limits Limits
	wake   func(volume string)

	mu      sync.Mutex
	volumes map[string]*entry
	lines   map[string]*line

	// turns are the lines that have a waiting volume and room for it, whoever is next first.
	// While it is not empty, there is no room overall.
	turns *list.List

	running, waiting int
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
	line   *line
	state  state
	inLine *list.Element // where it waits
}

// line is a provisioner, as long as there are volumes of it.
type line struct {
	provisioner string
	places      int           // what counts against its own limit: running and lent
	lent        int           // how many of these are lent
	waiting     *list.List    // of *entry, first come first
	turn        *list.Element // in Queue.turns, or nil
}

// New returns an empty queue. Wake is called with each volume that waited and has a place now; its
// next Take is true. Wake is called by the goroutine that made the room, before its call returns,
// and must not wait for anything. It may come late: for a volume that has given its place back.
func New(limits Limits, wake func(volume string)) *Queue {
	return &Queue{limits: limits, wake: wake, volumes: map[string]*entry{}, lines: map[string]*line{}, turns: list.New()}
}

// Take says whether the volume has a place for its pod, and gives it one if it has none and it is
// its turn. Otherwise the volume waits in line. A volume keeps its place until Give, and a lent place
// is one as well: whose pod has ended, or was never created, must give it back before the next. The
// provisioner is that of the first call.
func (q *Queue) Take(volume, provisioner string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	e := q.volumes[volume]
	if e == nil {
		e = q.add(volume, provisioner)
		q.enqueue(e)
		// This can give a place to nobody else, who would have to be woken: as long as there is
		// room overall, no line has its turn yet to come.
		q.grant()
	}
	return e.state != waits
}

// Adopt gives a place to a volume whose pod runs already, also above the limits. After a restart,
// it comes before the first Take. A place that is lent stays so.
func (q *Queue) Adopt(volume, provisioner string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	e := q.volumes[volume]
	switch {
	case e == nil:
		e = q.add(volume, provisioner)
	case e.state == waits:
		q.dequeue(e)
	default:
		return
	}
	q.seat(e)
}

// Lend takes note that the pod of a volume with a place cannot start.
func (q *Queue) Lend(volume string) {
	q.change(func() {
		if e := q.volumes[volume]; e != nil && e.state == runs {
			e.state = lent
			e.line.lent++
			q.running--
		}
	})
}

// Reclaim takes note that the pod has started after all: its place counts again, also above the limit.
func (q *Queue) Reclaim(volume string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if e := q.volumes[volume]; e != nil && e.state == lent {
		e.state = runs
		e.line.lent--
		q.running++
	}
}

// Give forgets the volume: it gives back its place, whether it has used it or not, or leaves the line.
func (q *Queue) Give(volume string) {
	q.change(func() {
		e := q.volumes[volume]
		if e == nil {
			return
		}
		delete(q.volumes, volume)
		switch e.state {
		case waits:
			q.dequeue(e)
		case runs:
			e.line.places--
			q.running--
		case lent:
			e.line.places--
			e.line.lent--
		}
		q.settle(e.line)
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

// grant gives places as long as there are both room and volumes that may have it, and returns these volumes.
func (q *Queue) grant() (woken []string) {
	for q.turns.Len() > 0 && below(q.running, q.limits.Overall) {
		l := q.turns.Front().Value.(*line)
		// The line goes to the end of the turns: one place each, and all others are before it.
		q.endTurn(l)
		e := l.waiting.Front().Value.(*entry)
		q.dequeue(e)
		q.seat(e)
		woken = append(woken, e.volume)
	}
	return woken
}

func (q *Queue) add(volume, provisioner string) *entry {
	l := q.lines[provisioner]
	if l == nil {
		l = &line{provisioner: provisioner, waiting: list.New()}
		q.lines[provisioner] = l
	}
	e := &entry{volume: volume, line: l}
	q.volumes[volume] = e
	return e
}

func (q *Queue) enqueue(e *entry) {
	e.state = waits
	e.inLine = e.line.waiting.PushBack(e)
	q.waiting++
	q.settle(e.line)
}

func (q *Queue) dequeue(e *entry) {
	e.line.waiting.Remove(e.inLine)
	e.inLine = nil
	q.waiting--
}

// seat gives a place to a volume that is in no line.
func (q *Queue) seat(e *entry) {
	e.state = runs
	e.line.places++
	q.running++
	q.settle(e.line)
}

// settle has the line among the turns if and only if it can use one, and forgets it when it is empty.
func (q *Queue) settle(l *line) {
	switch can := l.waiting.Len() > 0 && below(l.places, q.limits.PerProvisioner); {
	case can && l.turn == nil:
		l.turn = q.turns.PushBack(l)
	case !can && l.turn != nil:
		q.endTurn(l)
	}
	if l.places == 0 && l.waiting.Len() == 0 {
		delete(q.lines, l.provisioner)
	}
}

func (q *Queue) endTurn(l *line) {
	q.turns.Remove(l.turn)
	l.turn = nil
}

func below(n, limit int) bool {
	return limit <= 0 || n < limit
}

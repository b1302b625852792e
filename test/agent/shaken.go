package agent

import (
	"encoding/json"
	"io"
	"math/rand/v2"
	"sync"
	"time"
)

// How often events are disturbed, and for how long an event may be delayed, so that others overtake it.
const (
	doubledOnceIn   = 3
	overtakenOnceIn = 3
	endsOnceIn      = 12
	overtakenFor    = 300 * time.Millisecond
)

// event is an event of a watch, in JSON.
type event struct {
	text json.RawMessage
	uid  string // of its object; empty if the event is about the watch itself
	due  time.Time
}

// shaken is the stream of a watch. It disturbs the events as much as Kubernetes allows: events of one object stay in
// order, and if some are lost, the watch ends and cannot be resumed.
type shaken struct {
	io.ReadCloser // what the agent reads

	source io.ReadCloser
	out    *io.PipeWriter
	strike func(func(*Strikes))
	expire func()
	events chan event
	closed chan struct{}
	once   sync.Once
}

func shake(source io.ReadCloser, strike func(func(*Strikes)), expire func()) io.ReadCloser {
	in, out := io.Pipe()
	s := &shaken{ReadCloser: in, source: source, out: out, strike: strike, expire: expire, events: make(chan event), closed: make(chan struct{})}
	go s.read()
	go s.write()
	return s
}

// Close implements io.Closer.
func (s *shaken) Close() error {
	s.once.Do(func() { close(s.closed) })
	_ = s.ReadCloser.Close()
	return s.source.Close()
}

// read reads events until the source ends.
func (s *shaken) read() {
	defer close(s.events)
	decoder := json.NewDecoder(s.source)
	for {
		var text json.RawMessage
		if decoder.Decode(&text) != nil {
			return
		}
		about := struct {
			Type   string `json:"type"`
			Object struct {
				Metadata struct {
					UID string `json:"uid"`
				} `json:"metadata"`
			} `json:"object"`
		}{}
		if json.Unmarshal(text, &about) != nil {
			return
		}
		e := event{text: text, uid: about.Object.Metadata.UID}
		if about.Type == "BOOKMARK" || about.Type == "ERROR" {
			e.uid = ""
		}
		select {
		case s.events <- e:
		case <-s.closed:
			return
		}
	}
}

// write passes events on, until the source ends, the stream is closed, or events are to be lost.
func (s *shaken) write() {
	defer func() { _ = s.out.Close() }()
	defer func() { _ = s.source.Close() }()
	var pending []event
	source := s.events
	for source != nil || len(pending) > 0 {
		var timer <-chan time.Time
		if len(pending) > 0 {
			timer = time.After(time.Until(pending[0].due))
		}
		select {
		case e, more := <-source:
			if !more {
				source = nil
				continue
			}
			if e.uid != "" && rand.IntN(endsOnceIn) == 0 { //nolint:gosec // no secret depends on it
				s.strike(func(count *Strikes) { count.Lost += 1 + len(pending) })
				s.expire()
				return
			}
			pending = s.insert(pending, e)
		case <-timer:
			if !s.pass(pending[0]) {
				return
			}
			pending = pending[1:]
		case <-s.closed:
			return
		}
	}
}

// insert puts an event among the pending ones: after the earlier events of its object and, for some time, after events
// of other objects.
func (s *shaken) insert(pending []event, e event) []event {
	e.due = time.Now()
	if e.uid != "" && rand.IntN(overtakenOnceIn) == 0 { //nolint:gosec // no secret depends on it
		e.due = e.due.Add(overtakenFor)
	}
	at := 0
	for i, before := range pending {
		if e.uid == "" || before.uid == "" || before.uid == e.uid {
			at, e.due = i+1, latest(e.due, before.due)
		}
	}
	for at < len(pending) && !pending[at].due.After(e.due) {
		at++
	}
	if at < len(pending) {
		s.strike(func(count *Strikes) { count.Overtaken++ })
	}
	pending = append(pending, event{})
	copy(pending[at+1:], pending[at:])
	pending[at] = e
	return pending
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// pass passes an event on, once or twice.
func (s *shaken) pass(e event) bool {
	times := 1
	if e.uid != "" && rand.IntN(doubledOnceIn) == 0 { //nolint:gosec // no secret depends on it
		times = 2
		s.strike(func(count *Strikes) { count.Doubled++ })
	}
	for range times {
		if _, err := s.out.Write(append(e.text, '\n')); err != nil {
			return false
		}
	}
	return true
}

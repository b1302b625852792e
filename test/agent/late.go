package agent

import (
	"io"
	"sync"
	"time"
)

// late is a stream that delays each part.
type late struct {
	source io.ReadCloser
	gate   func() <-chan struct{} // returns the channel for which a due part still has to wait; nil means none
	parts  chan part
	rest   []byte
	err    error

	once   sync.Once
	closed chan struct{}
}

type part struct {
	data []byte
	err  error
	due  time.Time
}

func delay(source io.ReadCloser, lag time.Duration, gate func() <-chan struct{}) io.ReadCloser {
	l := &late{source: source, gate: gate, parts: make(chan part), closed: make(chan struct{})}
	go l.fetch(lag)
	return l
}

// fetch reads the source and passes its parts on, until the stream is closed.
func (l *late) fetch(lag time.Duration) {
	queue := []part{}
	arrived := make(chan part)
	go func() {
		for {
			data := make([]byte, 64<<10)
			n, err := l.source.Read(data)
			select {
			case arrived <- part{data: data[:n], err: err, due: time.Now().Add(lag)}:
			case <-l.closed:
				return
			}
			if err != nil {
				return
			}
		}
	}()
	for {
		var next part
		var out chan part
		if len(queue) > 0 {
			next, out = queue[0], l.parts
		}
		select {
		case p := <-arrived:
			queue = append(queue, p)
		case out <- next:
			queue = queue[1:]
		case <-l.closed:
			return
		}
	}
}

// Read implements io.Reader.
func (l *late) Read(p []byte) (int, error) {
	for len(l.rest) == 0 && l.err == nil {
		select {
		case next := <-l.parts:
			if !l.await(next) {
				return 0, io.ErrClosedPipe
			}
			l.rest, l.err = next.data, next.err
		case <-l.closed:
			return 0, io.ErrClosedPipe
		}
	}
	if len(l.rest) == 0 {
		return 0, l.err
	}
	n := copy(p, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

// await waits until a part may arrive. It returns false if the stream is closed before that.
func (l *late) await(next part) bool {
	timer := time.NewTimer(time.Until(next.due))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-l.closed:
		return false
	}
	gate := l.gate()
	if gate == nil {
		return true
	}
	select {
	case <-gate:
		return true
	case <-l.closed:
		return false
	}
}

// Close implements io.Closer.
func (l *late) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.source.Close()
}

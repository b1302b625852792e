package agent

import (
	"context"
	"errors"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// Line is an agent's line to the API server. It counts the agent's requests and writes, and can cut
// the agent off, or do worse. The zero value does not. A Line serves one agent.
type Line struct {
	// CutAfter is the number of writes after which the line is cut and the agent ended, before the
	// agent hears of the last one's success; 0 for never.
	CutAfter int

	// StallAfter is the number of writes after which the agent stalls: its further requests are on their
	// way until Resume is called, however long ago the agent gave up waiting for them; 0 for never.
	StallAfter int

	// MayEnd says that the agent may end with an error: it can lose its leadership, or find no API server.
	MayEnd bool

	Faults

	cancel context.CancelFunc

	stalled, resumed chan struct{}

	mu       sync.Mutex
	isCut    bool
	requests int
	lists    map[string]int // by the resource
	writes   []string
	held     []string // the writes of a stalled agent
	strikes  Strikes
	gates    map[string]chan struct{} // by the resource whose watches are held
	expired  map[string]bool          // the watches that cannot go on where they were
}

// Faults are what is wrong with a line. They strike by chance.
type Faults struct {
	// Failing lets one of so many requests fail, half of these after they took effect; 0 for none.
	Failing int

	// Refusing lets one of so many requests have one of the answers by which an API server says that a
	// request may be tried again; 0 for none.
	Refusing int

	// Late lets the watches of some resources, by their plural names, be behind by a time each, or until
	// Hold lets them go on: so is the agent's cache then.
	Late map[string]time.Duration

	// Shaken lets watches tell some events twice, let events of one object overtake those of another, and
	// lose events, after which the agent has to list everything again.
	Shaken bool
}

// Strikes is how often each fault struck.
type Strikes struct {
	Failed, Refused          int // requests
	Late, Held               int // parts of watches
	Doubled, Overtaken, Lost int // events
}

var (
	errCut   = errors.New("the line is cut")
	errFails = errors.New("the line fails")
)

// Connect lets an agent with this configuration have the line. What ends the agent is nil where only its
// process does.
func (l *Line) Connect(config *rest.Config, cancel context.CancelFunc) {
	l.cancel = cancel
	l.stalled, l.resumed = make(chan struct{}), make(chan struct{})
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return way{line: l, next: next} })
	if l.Shaken {
		config.ContentType = "application/json" // so that events can be told apart
	}
}

// way is the way of requests over a line.
type way struct {
	line *Line
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (w way) RoundTrip(request *http.Request) (*http.Response, error) {
	return w.line.send(request, w.next)
}

func (l *Line) send(request *http.Request, next http.RoundTripper) (*http.Response, error) {
	if l.IsCut() {
		return nil, errCut
	}
	request = l.stall(request)
	before, after := l.fails(request)
	if before {
		return nil, errFails
	}
	if answer := l.refuses(request); answer != nil {
		return answer, nil
	}
	response, err := next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	l.disturb(request, response)
	if after {
		_ = response.Body.Close()
		return nil, errFails
	}
	if l.count(request, response) {
		_ = response.Body.Close()
		l.cancel()
		return nil, errCut
	}
	return response, nil
}

// disturb lets the faults of watches strike an answer, if it is a watch.
func (l *Line) disturb(request *http.Request, response *http.Response) {
	if !isWatch(request) || response.StatusCode != http.StatusOK {
		return
	}
	resource := path.Base(request.URL.Path)
	if lag, late := l.Late[resource]; late {
		response.Body = delay(response.Body, lag, func() <-chan struct{} { return l.gate(resource) })
	}
	if l.Shaken {
		response.Body = shake(response.Body, l.strike, func() { l.expire(request) })
	}
}

func isWatch(request *http.Request) bool { return request.URL.Query().Get("watch") != "" }

// isWrite reports whether a request changes something that matters.
func isWrite(request *http.Request) bool {
	path := request.URL.Path
	return request.Method != http.MethodGet && !strings.Contains(path, "/events") && !strings.Contains(path, "/leases")
}

// stall holds a request where the agent has stalled, which it does before a write.
func (l *Line) stall(request *http.Request) *http.Request {
	l.mu.Lock()
	if l.StallAfter > 0 && len(l.writes) >= l.StallAfter && isWrite(request) {
		if len(l.held) == 0 {
			close(l.stalled)
		}
		l.held = append(l.held, request.Method+" "+request.URL.Path)
	}
	stalled := len(l.held) > 0
	l.mu.Unlock()
	if !stalled {
		return request
	}
	<-l.resumed
	return request.WithContext(context.WithoutCancel(request.Context()))
}

// Stalled is closed when a write of a stalled agent is held.
func (l *Line) Stalled() <-chan struct{} { return l.stalled }

// Resume lets the requests of a stalled agent go on their way, and returns the writes among them.
func (l *Line) Resume() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.resumed:
	default:
		close(l.resumed)
	}
	return slices.Clone(l.held)
}

// count reports whether the line is to be cut after the request.
func (l *Line) count(request *http.Request, response *http.Response) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.requests++
	if request.Method == http.MethodGet && !isWatch(request) {
		if l.lists == nil {
			l.lists = map[string]int{}
		}
		l.lists[path.Base(request.URL.Path)]++
	}
	if !isWrite(request) || response.StatusCode >= http.StatusMultipleChoices {
		return false
	}
	l.writes = append(l.writes, request.Method+" "+request.URL.Path)
	l.isCut = l.isCut || len(l.writes) == l.CutAfter
	return l.isCut
}

// Hold lets nothing more of the watches of a resource arrive, which must be one of Late, until the function that
// it returns is called.
func (l *Line) Hold(resource string) (release func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	gate := make(chan struct{})
	if l.gates == nil {
		l.gates = map[string]chan struct{}{}
	}
	l.gates[resource] = gate
	return sync.OnceFunc(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.gates, resource)
		close(gate)
	})
}

// gate counts a part of a watch that is late, and returns what it has to wait for; nil for nothing.
func (l *Line) gate(resource string) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.strikes.Late++
	gate, held := l.gates[resource]
	if !held {
		return nil
	}
	l.strikes.Held++
	return gate
}

func (l *Line) strike(count func(*Strikes)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	count(&l.strikes)
}

// Strikes returns how often the line's faults struck so far.
func (l *Line) Strikes() Strikes {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.strikes
}

// Cut cuts the line at once and ends the agent, which can tell nobody.
func (l *Line) Cut() {
	l.mu.Lock()
	l.isCut = true
	l.mu.Unlock()
	l.cancel()
}

// IsCut reports whether the line has been cut.
func (l *Line) IsCut() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.isCut
}

// endsAgent reports whether the line is a reason for an agent to end: it was cut, or leadership was lost.
func (l *Line) endsAgent() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.isCut || l.MayEnd
}

// Writes returns the successful writes so far, each as its method and path, without those of events and leases.
func (l *Line) Writes() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.writes)
}

// Lists returns how often the agent listed a resource, by its plural name.
func (l *Line) Lists(resource string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lists[resource]
}

// Requests returns the number of requests so far that were answered.
func (l *Line) Requests() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.requests
}

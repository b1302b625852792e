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

// Line is the connection of an agent to the API server. It counts the agent's requests and writes, and can cut off the
// agent or cause other faults. The zero value causes none. A Line serves one agent.
type Line struct {
	// CutAfter is the number of writes after which the line is cut and the agent ended, before the agent gets the
	// answer to the last write; 0 means never.
	CutAfter int

	// StallAfter is the number of writes after which the agent stalls: the next write and all later requests are held
	// until Resume is called. They are sent then, even if the agent gave up waiting long ago; 0 means never.
	StallAfter int

	// MayEnd is true if the agent may end with an error: it can lose its leadership, or find no API server.
	MayEnd bool

	Faults

	cancel context.CancelFunc

	stalled, resumed chan struct{}
	stallsAt         string // the write that is held; see StallAt

	mu       sync.Mutex
	isCut    bool
	requests int
	lists    map[string]int // by resource
	writes   []string
	lost     []string // the writes that lost a race
	held     []string // the writes of a stalled agent
	strikes  Strikes
	gates    map[reads]chan struct{} // by what is held
	expired  map[string]bool         // the watches that cannot be resumed
}

// reads are the watches of a resource, or its other reads.
type reads struct {
	resource string
	watches  bool
}

// Faults are the faults of a line. They occur at random.
type Faults struct {
	// Failing is n if one of n requests is to fail, half of these after they took effect; 0 means none.
	Failing int

	// Refusing is n if one of n requests is to get an error after which the agent may retry; 0 means none.
	Refusing int

	// Late delays the watches of some resources, by their plural names, for a time each. Hold stops them for longer.
	// The agent's cache is stale meanwhile.
	Late map[string]time.Duration

	// Shaken makes watches deliver some events twice, change the order of events of different objects, and lose events.
	// After a loss, the agent has to list everything again.
	Shaken bool
}

// Strikes is how often each fault occurred.
type Strikes struct {
	Failed, Refused          int // requests
	Late, Held               int // parts of watches
	Doubled, Overtaken, Lost int // events
}

var (
	errCut   = errors.New("the line is cut")
	errFails = errors.New("the line fails")
)

// Connect makes an agent with this configuration use the line. cancel ends the agent; it is nil if only the end of its
// process does.
func (l *Line) Connect(config *rest.Config, cancel context.CancelFunc) {
	l.cancel = cancel
	l.stalled, l.resumed = make(chan struct{}), make(chan struct{})
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return way{line: l, next: next} })
}

// way is the http.RoundTripper of a line.
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
	request = l.inJSON(l.stall(request))
	if err := l.awaitReads(request); err != nil {
		return nil, err
	}
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

// inJSON makes the API server answer a watch in JSON if its events are to be read one by one, whatever the client prefers.
func (l *Line) inJSON(request *http.Request) *http.Request {
	if !l.Shaken || !isWatch(request) {
		return request
	}
	forms := slices.DeleteFunc(strings.Split(request.Header.Get("Accept"), ","), func(form string) bool { return !strings.Contains(form, "json") })
	if len(forms) == 0 {
		forms = []string{"application/json"}
	}
	request = request.Clone(request.Context())
	request.Header.Set("Accept", strings.Join(forms, ","))
	return request
}

// disturb applies the faults of watches to a response, if it is that of a watch.
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

// isWrite reports whether a request is a write, other than of events and leases.
func isWrite(request *http.Request) bool {
	path := request.URL.Path
	return request.Method != http.MethodGet && !strings.Contains(path, "/events") && !strings.Contains(path, "/leases")
}

func isDryRun(request *http.Request) bool { return request.URL.Query().Has("dryRun") }

// stall holds a request if the agent has stalled, which it does before a write.
func (l *Line) stall(request *http.Request) *http.Request {
	l.mu.Lock()
	write := request.Method + " " + request.URL.Path
	due := l.StallAfter > 0 && len(l.writes) >= l.StallAfter || len(l.held) > 0 || write == l.stallsAt && !isDryRun(request)
	if due && isWrite(request) {
		if len(l.held) == 0 {
			close(l.stalled)
		}
		l.held = append(l.held, write)
	}
	stalled := len(l.held) > 0
	l.mu.Unlock()
	if !stalled {
		return request
	}
	<-l.resumed
	return request.WithContext(context.WithoutCancel(request.Context()))
}

// StallAt makes the agent stall before the next write of a method and path, as in Writes, with StallAfter's effect. A dry run is none.
func (l *Line) StallAt(write string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stallsAt = write
}

// Stalled returns a channel that is closed when the first write of a stalled agent is held.
func (l *Line) Stalled() <-chan struct{} { return l.stalled }

// Resume sends the held requests of a stalled agent, and returns the writes among them.
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

// ResumeAndCut sends the held requests of a stalled agent, and cuts the line after the first write that succeeds: the agent makes no
// other requests.
func (l *Line) ResumeAndCut() {
	l.mu.Lock()
	l.CutAfter = len(l.writes) + 1
	l.mu.Unlock()
	l.Resume()
}

// count counts a request, and reports whether the line is to be cut after it.
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
	if isWrite(request) && response.StatusCode == http.StatusConflict {
		l.lost = append(l.lost, request.Method+" "+request.URL.Path)
	}
	if !isWrite(request) || response.StatusCode >= http.StatusMultipleChoices {
		return false
	}
	l.writes = append(l.writes, request.Method+" "+request.URL.Path)
	l.isCut = l.isCut || len(l.writes) == l.CutAfter
	return l.isCut
}

// Hold stops the watches of a resource, which must be one of Late, until the returned function is called.
func (l *Line) Hold(resource string) (release func()) {
	return l.hold(reads{resource: resource, watches: true})
}

// HoldReads stops the reads of a resource, other than watches, until the returned function is called.
func (l *Line) HoldReads(resource string) (release func()) { return l.hold(reads{resource: resource}) }

// hold adds a gate. The returned function opens and removes it.
func (l *Line) hold(what reads) (release func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	gate := make(chan struct{})
	if l.gates == nil {
		l.gates = map[reads]chan struct{}{}
	}
	l.gates[what] = gate
	return sync.OnceFunc(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.gates, what)
		close(gate)
	})
}

// awaitReads waits while reads of a request's resource are held.
func (l *Line) awaitReads(request *http.Request) error {
	if request.Method != http.MethodGet || isWatch(request) {
		return nil
	}
	for part := range strings.SplitSeq(request.URL.Path, "/") {
		l.mu.Lock()
		gate, held := l.gates[reads{resource: part}]
		l.mu.Unlock()
		if !held {
			continue
		}
		select {
		case <-gate:
		case <-request.Context().Done():
			return request.Context().Err()
		}
	}
	return nil
}

// gate counts a part of a watch that is late. It returns the channel for which the part still has to wait; nil means
// none.
func (l *Line) gate(resource string) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.strikes.Late++
	gate, held := l.gates[reads{resource: resource, watches: true}]
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

// Strikes returns how often each fault of the line has occurred so far.
func (l *Line) Strikes() Strikes {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.strikes
}

// Cut cuts the line at once and ends the agent, which can make no more requests.
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

// endsAgent reports whether the line may be the cause for the end of the agent: the line was cut, or the agent may have
// lost its leadership.
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

// Lost returns the writes so far that the API server refused because of a conflict, each as its method and path.
func (l *Line) Lost() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.lost)
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

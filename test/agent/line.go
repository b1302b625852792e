package agent

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"time"
)

// Line is an agent's line to the API server. It counts the agent's requests and writes, and can cut
// the agent off, or let requests fail. The zero value does neither. A Line serves one agent.
type Line struct {
	// CutAfter is the number of writes after which the line is cut and the agent ended, before the
	// agent hears of the last one's success; 0 for never.
	CutAfter int

	// Failing lets one of so many requests fail, by chance, half of these after they took effect; 0 for none.
	Failing int

	// Late lets the watches of some resources, by their plural names, be behind by a time each: so
	// is the agent's cache then.
	Late map[string]time.Duration

	next   http.RoundTripper
	cancel context.CancelFunc

	mu       sync.Mutex
	isCut    bool
	requests int
	writes   []string
}

var (
	errCut   = errors.New("the line is cut")
	errFails = errors.New("the line fails")
)

// RoundTrip implements http.RoundTripper.
func (l *Line) RoundTrip(request *http.Request) (*http.Response, error) {
	if l.IsCut() {
		return nil, errCut
	}
	before, after := l.fails(request)
	if before {
		return nil, errFails
	}
	response, err := l.next.RoundTrip(request)
	if lag := l.Late[path.Base(request.URL.Path)]; err == nil && lag > 0 && request.URL.Query().Get("watch") != "" {
		response.Body = delay(response.Body, lag)
	}
	if err == nil && after {
		_ = response.Body.Close()
		return nil, errFails
	}
	if err == nil && l.count(request, response) {
		_ = response.Body.Close()
		l.cancel()
		return nil, errCut
	}
	return response, err
}

// fails says whether a request is to fail, before or after it takes effect. Watches do not: they
// would only be repeated from where they were. Nor do discoveries, without which an agent ends, for
// its Deployment to start it again.
func (l *Line) fails(request *http.Request) (before, after bool) {
	if l.Failing == 0 || request.URL.Query().Get("watch") != "" || isDiscovery(request.URL.Path) {
		return false, false
	}
	// Were it every so many-th, a pass of as many requests would never come to its end.
	chance := rand.IntN(2 * l.Failing) //nolint:gosec // Nothing is kept secret by it.
	return chance == 0, chance == 1
}

// isDiscovery says whether a path is above those of resources: /api/v1 or /apis/<group>/<version>, or above.
func isDiscovery(path string) bool {
	segments := strings.Split(strings.Trim(path, "/"), "/")
	return segments[0] == "api" && len(segments) <= 2 || segments[0] == "apis" && len(segments) <= 3
}

// count says whether the line is to be cut after the request.
func (l *Line) count(request *http.Request, response *http.Response) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.requests++
	path := request.URL.Path
	switch {
	case request.Method == http.MethodGet, response.StatusCode >= http.StatusMultipleChoices:
		return false
	case strings.Contains(path, "/events"), strings.Contains(path, "/leases"):
		return false
	}
	l.writes = append(l.writes, request.Method+" "+path)
	l.isCut = l.isCut || len(l.writes) == l.CutAfter
	return l.isCut
}

// Cut cuts the line at once and ends the agent, which can tell nobody.
func (l *Line) Cut() {
	l.mu.Lock()
	l.isCut = true
	l.mu.Unlock()
	l.cancel()
}

// IsCut says whether the line has been cut.
func (l *Line) IsCut() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.isCut
}

// Writes returns the successful writes so far, each as its method and path, without those of events and leases.
func (l *Line) Writes() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.writes)
}

// Requests returns the number of requests so far that were answered.
func (l *Line) Requests() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.requests
}

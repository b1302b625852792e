package integration

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/albertofaria/pav/internal/controller"
	"github.com/albertofaria/pav/internal/observe"
)

// buffer is a bytes.Buffer for writers in several goroutines.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// agentLog has what the libraries log by themselves.
var agentLog buffer

// agent is a running controller agent.
type agent struct {
	cancel context.CancelFunc
	done   chan error
	log    *buffer
	wire   *wire
}

func options() controller.Options {
	o := controller.DefaultOptions()
	o.Namespace = namespace
	o.LeaderElect = false
	o.MetricsAddress, o.ProbeAddress = "0", "0"
	return o
}

// launch starts an agent. Its stop must be called.
func launch(t *testing.T, c *cluster, o controller.Options, w *wire) *agent {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	a := &agent{cancel: cancel, done: make(chan error, 1), log: &buffer{}, wire: w}
	w.cancel = cancel
	cfg := rest.CopyConfig(c.agent)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { w.next = next; return w })
	go func() { a.done <- controller.Run(ctx, cfg, o, observe.NewLogger(a.log, observe.LogOptions{})) }()
	return a
}

// run starts an agent for the duration of a test.
func run(t *testing.T, c *cluster) *agent {
	t.Helper()
	a := launch(t, c, options(), &wire{})
	t.Cleanup(func() {
		a.stop(t)
		checkNothingLeft(t, c)
	})
	return a
}

// stop ends an agent and waits for its end.
func (a *agent) stop(t *testing.T) {
	t.Helper()
	a.cancel()
	a.wait(t)
}

func (a *agent) wait(t *testing.T) {
	t.Helper()
	select {
	case err := <-a.done:
		if err != nil && !errors.Is(err, context.Canceled) && !a.wire.dead() {
			t.Errorf("the agent ended with: %v", err)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("the agent does not end")
	}
	if strings.Contains(a.log.String()+agentLog.String(), "forbidden") {
		t.Error("the agent's rights do not suffice")
	}
	if t.Failed() {
		t.Logf("log of the agent:\n%s", a.log)
	}
}

// checkNoGoroutines says whether an agent that has ended left goroutines of PaV's behind.
func checkNoGoroutines(t *testing.T) {
	t.Helper()
	eventually(t, "no goroutines of PaV are left", func(context.Context) (bool, string) {
		stacks := make([]byte, 4<<20)
		for stack := range strings.SplitSeq(string(stacks[:runtime.Stack(stacks, true)]), "\n\n") {
			if strings.Contains(stack, "albertofaria/pav/internal/") {
				return false, stack
			}
		}
		return true, ""
	})
}

// wire is an agent's line to the API server. It counts the writes of an agent, and can cut the
// line and end the agent right after one of them, before the agent hears of its success.
type wire struct {
	next   http.RoundTripper
	cancel context.CancelFunc

	mu       sync.Mutex
	cutAfter int // a number of writes; 0 for never
	failing  int // every one of so many requests fails, half of these after it took effect; 0 for none
	isCut    bool
	requests int
	tried    int
	writes   []string
}

var (
	errCut   = errors.New("the line is cut")
	errFails = errors.New("the line fails")
)

// fails says whether a request is to fail, before or after it takes effect. Watches do not: they
// would only be repeated from where they were.
func (w *wire) fails(request *http.Request) (before, after bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failing == 0 || request.URL.Query().Get("watch") != "" {
		return false, false
	}
	w.tried++
	return w.tried%(2*w.failing) == 0, w.tried%(2*w.failing) == w.failing
}

// RoundTrip implements http.RoundTripper.
func (w *wire) RoundTrip(request *http.Request) (*http.Response, error) {
	if w.dead() {
		return nil, errCut
	}
	before, after := w.fails(request)
	if before {
		return nil, errFails
	}
	response, err := w.next.RoundTrip(request)
	if err == nil && after {
		_ = response.Body.Close()
		return nil, errFails
	}
	if err == nil && w.count(request, response) {
		_ = response.Body.Close()
		w.cancel()
		return nil, errCut
	}
	return response, err
}

// count says whether the line is to be cut after the request.
func (w *wire) count(request *http.Request, response *http.Response) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.requests++
	path := request.URL.Path
	switch {
	case request.Method == http.MethodGet, response.StatusCode >= http.StatusMultipleChoices:
		return false
	case strings.Contains(path, "/events"), strings.Contains(path, "/leases"):
		return false
	}
	w.writes = append(w.writes, request.Method+" "+path)
	w.isCut = w.isCut || len(w.writes) == w.cutAfter
	return w.isCut
}

func (w *wire) dead() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.isCut
}

// seen returns the writes so far.
func (w *wire) seen() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.writes)
}

// sent returns the number of requests so far.
func (w *wire) sent() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.requests
}

package integration

import (
	"context"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/client-go/rest"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// relay is a way to the API server that can be cut, or fall silent: then what is sent stays on its way.
type relay struct {
	listener net.Listener
	server   string

	mu     sync.Mutex
	open   *sync.Cond // signals changes of the two below
	cut    bool
	silent bool
	conns  map[net.Conn]bool
}

// newRelay returns a relay that is there until the test ends, and a configuration that goes by way of it.
func newRelay(t *testing.T, config *rest.Config) (*relay, *rest.Config) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{listener: listener, server: server.Host, conns: map[net.Conn]bool{}}
	r.open = sync.NewCond(&r.mu)
	go r.serve()
	t.Cleanup(func() {
		_ = listener.Close()
		r.set(true, false)
	})
	config = rest.CopyConfig(config)
	config.Host = "https://" + listener.Addr().String()
	return r, config
}

// set cuts the line, lets it fall silent, or ends both.
func (r *relay) set(cut, silent bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cut, r.silent = cut, silent
	if cut {
		for conn := range r.conns {
			_ = conn.Close()
		}
		clear(r.conns)
	}
	r.open.Broadcast()
}

func (r *relay) serve() {
	for {
		near, err := r.listener.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", r.server) //nolint:noctx // It is a socket of this machine.
		if err != nil || !r.keep(near, far) {
			_ = near.Close()
			continue
		}
		go r.copy(near, far)
		go r.copy(far, near)
	}
}

// keep notes a connection, unless the line is cut.
func (r *relay) keep(near, far net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cut {
		_ = far.Close()
		return false
	}
	r.conns[near], r.conns[far] = true, true
	return true
}

func (r *relay) copy(to io.WriteCloser, from io.ReadCloser) {
	defer func() { _, _ = to.Close(), from.Close() }()
	data := make([]byte, 32<<10)
	for {
		count, err := from.Read(data)
		r.mu.Lock()
		for r.silent {
			r.open.Wait()
		}
		r.mu.Unlock()
		if _, failed := to.Write(data[:count]); failed != nil || err != nil {
			return
		}
	}
}

// notFinal are the codes after which kubelet calls again, and unstages in the end.
var notFinal = []codes.Code{codes.Canceled, codes.DeadlineExceeded, codes.Unavailable, codes.ResourceExhausted, codes.Aborted}

// While the API server does not answer, staged volumes work, and clients come and go; calls that need the API server return
// no final error, and succeed when it is back.
func TestNode_APIServerOutage(t *testing.T) {
	for name, silent := range map[string]bool{"refuses connections": false, "is silent": true} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t, workers(t, newDevices(t)))
			line, config := newRelay(t, n.agentConfig)
			n.agentConfig = config
			n.run(t)
			staged, other := n.volume(t, "served"), n.volume(t, "made")
			n.stage(t, staged)
			n.publish(t, staged, clientOf(staged, 1))

			line.set(!silent, silent)
			n.publish(t, staged, clientOf(staged, 2))
			n.wantRead(t, staged, clientOf(staged, 1))
			n.wantRead(t, staged, clientOf(staged, 2))
			n.unpublish(t, staged, clientOf(staged, 1))
			n.wantNotFinal(t, "staging", func(ctx context.Context) error { return n.Stage(ctx, other) })
			n.unpublish(t, staged, clientOf(staged, 2))
			n.wantNotFinal(t, "unstaging", func(ctx context.Context) error { return n.Unstage(ctx, staged) })

			line.set(false, false)
			n.stage(t, other)
			n.unstage(t, staged)
			n.unstage(t, other)
			once := runs(pavv1.WorkflowStaging, pavv1.WorkflowUnstaging)
			n.wantRuns(t, staged, once)
			n.wantRuns(t, other, once)
			n.checkLeft(t)
		})
	}
}

// wantNotFinal makes calls for a while, whose answers must not be final.
func (n *node) wantNotFinal(t *testing.T, what string, call func(context.Context) error) {
	t.Helper()
	for range 3 {
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		err := call(ctx)
		cancel()
		if code := status.Code(err); !slices.Contains(notFinal, code) {
			t.Errorf("%s without an API server: %s: %v", what, code, err)
		}
	}
}

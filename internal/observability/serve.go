package observability

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// ProfilingHelp describes the flag --profiling-address, which both agents have.
const ProfilingHelp = "address at which /debug/pprof/ is served, such as :6060; on the loopback interface unless the address names another one; empty to serve none"

// everywhere is a manager.Runnable that runs on each replica, the leader or not.
type everywhere func(ctx context.Context) error

// Start implements manager.Runnable.
func (run everywhere) Start(ctx context.Context) error { return run(ctx) }

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (everywhere) NeedLeaderElection() bool { return false }

// LimitProfiles keeps Go from recording who allocates memory, which takes more than 1 MiB, if the address of profiles is empty. An agent calls
// it as early as it can.
func LimitProfiles(address string) {
	if address == "" {
		runtime.MemProfileRate = 0
	}
}

// Profiling returns a Runnable that serves Go's profiles until its context ends. An address without a host means the
// loopback interface, as profiles have the contents of memory.
func Profiling(address string) manager.Runnable {
	return everywhere(func(ctx context.Context) error {
		host, port, err := net.SplitHostPort(address)
		if err != nil {
			return fmt.Errorf("--profiling-address: %w", err)
		}
		if host == "" {
			host = "127.0.0.1"
		}
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(host, port))
		if err != nil {
			return fmt.Errorf("serving profiles: %w", err)
		}
		server := &http.Server{Handler: profiles(), ReadHeaderTimeout: 10 * time.Second}
		stop := context.AfterFunc(ctx, func() { _ = server.Close() })
		defer stop()
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serving profiles: %w", err)
		}
		return nil
	})
}

// profiles is a separate mux: handlers that libraries add to Go's default one are not served.
func profiles() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return mux
}

// ValidateProfiling returns the error in an address for Profiling; "" disables profiles.
func ValidateProfiling(address string) error {
	if address == "" {
		return nil
	}
	if _, _, err := net.SplitHostPort(address); err != nil {
		return fmt.Errorf("--profiling-address: must be HOST:PORT or :PORT, not %q", address)
	}
	return nil
}

// Filled reports whether an agent's caches are filled. It is a manager.Runnable, as a manager starts these when the
// caches are filled.
type Filled struct{ filled atomic.Bool }

// Start implements manager.Runnable.
func (f *Filled) Start(context.Context) error {
	f.filled.Store(true)
	// Answers of the API server took several times the memory that their objects have in the caches, and no later work takes as much.
	debug.FreeOSMemory()
	return nil
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: a replica that waits is ready to take over.
func (*Filled) NeedLeaderElection() bool { return false }

// Check is a healthz.Checker.
func (f *Filled) Check(*http.Request) error {
	if !f.filled.Load() {
		return errors.New("the caches are being filled")
	}
	return nil
}

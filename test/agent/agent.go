package agent

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"github.com/albertofaria/pav/internal/controller"
	"github.com/albertofaria/pav/internal/observability"
)

// endsWithin is how long an agent may take to end.
const endsWithin = 2 * time.Minute

// Agent is a running controller agent.
type Agent struct {
	// Line is the agent's line to the API server.
	Line *Line

	cancel context.CancelFunc
	done   chan error    // has the result of the agent; each reader puts it back for the next one
	ended  chan struct{} // closed at the agent's end
	log    *Buffer
}

// Options returns the options of an agent without leader election, metrics, probes and webhooks.
func Options(namespace string) controller.Options {
	o := controller.DefaultOptions()
	o.Namespace = namespace
	o.LeaderElect = false
	o.MetricsAddress, o.ProbeAddress, o.WebhookAddress = "0", "0", "0"
	return o
}

// Launch starts an agent with the permissions of config. It runs until its line is cut or Stop is called. The test must
// call Stop.
func Launch(t *testing.T, config *rest.Config, o controller.Options, line *Line) *Agent {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	a := &Agent{Line: line, cancel: cancel, done: make(chan error, 1), ended: make(chan struct{}), log: &Buffer{}}
	config = rest.CopyConfig(config)
	line.Connect(config, cancel)
	go func() {
		a.done <- controller.Run(ctx, config, o, observability.NewLogger(a.log, observability.LogOptions{Verbosity: 1}))
		close(a.ended)
	}()
	return a
}

// Ended returns a channel that is closed when an agent has ended.
func (a *Agent) Ended() <-chan struct{} { return a.ended }

// Log returns the log of an agent, with debug messages.
func (a *Agent) Log() string { return a.log.String() }

// Stop ends an agent and waits for its end. The test fails if the agent returns an error that its line does not cause,
// or if it lacked a permission.
func (a *Agent) Stop(t *testing.T) {
	t.Helper()
	a.cancel()
	select {
	case err := <-a.done:
		a.done <- err // for a second Stop
		if err != nil && !errors.Is(err, context.Canceled) && !a.Line.endsAgent() {
			t.Errorf("the agent ended with: %v", err)
		}
	case <-time.After(endsWithin):
		t.Fatal("the agent does not end")
	}
	if line := forbidden(a.log.String() + libraries.String()); line != "" {
		t.Errorf("the agent's rights do not suffice: %s", line)
	}
	if t.Failed() {
		t.Logf("log of the agent:\n%s", a.log)
	}
}

// forbidden returns the first line of a log that reports a missing permission, or "". It ignores pods that are refused
// in a namespace which was opened a moment ago: the policies of the API server may not have seen that yet.
func forbidden(log string) string {
	for line := range strings.SplitSeq(log, "\n") {
		if strings.Contains(line, "forbidden") && !strings.Contains(line, "the namespace is not open to workflow pods") {
			return line
		}
	}
	return ""
}

// CheckNoGoroutines fails the test if goroutines of PaV are left after the agents have ended.
func CheckNoGoroutines(tb testing.TB) {
	tb.Helper()
	left := ""
	err := wait.PollUntilContextTimeout(context.WithoutCancel(tb.Context()), 20*time.Millisecond, endsWithin, true, func(context.Context) (bool, error) {
		left = ""
		stacks := make([]byte, 4<<20)
		for stack := range strings.SplitSeq(string(stacks[:runtime.Stack(stacks, true)]), "\n\n") {
			if strings.Contains(stack, "albertofaria/pav/internal/") {
				left = stack
			}
		}
		return left == "", nil
	})
	if err != nil {
		tb.Errorf("a goroutine of PaV's is left: %s", left)
	}
}

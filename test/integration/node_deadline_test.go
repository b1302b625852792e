package integration

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/test/kubelet"
)

// While a staging pod does not become ready, every call ends with DEADLINE_EXCEEDED, and none leaves
// anything behind in the agent. When it does become ready, the next call succeeds.
func TestNode_StagingPodIsNotReady(t *testing.T) {
	calls := 30
	if long() {
		calls = 6000 // ten minutes
	}
	ready := make(chan struct{})
	work := func(ctx context.Context, pod *kubelet.Pod) int32 {
		if pod.Workflow() == pavv1.WorkflowStaging {
			<-ready
		}
		return workers(t, nil)(ctx, pod)
	}
	n := newNode(t, work)
	a := n.run(t)
	end := sync.OnceFunc(func() { close(ready) })
	t.Cleanup(end) // while the agent runs, without which no pod ends
	v := n.volume(t, "served")
	n.succeed(t, "the staging pod", func(ctx context.Context) error {
		short, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		if err := n.Stage(short, v); len(n.Journal.Of(v.Handle)) == 0 {
			return err
		}
		return nil
	})
	call := func() {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		err := n.Stage(ctx, v)
		if code := status.Code(err); code != codes.DeadlineExceeded && code != codes.Aborted {
			t.Fatalf("staging: %s: %v", code, err) // Aborted is where the call before has not ended yet.
		}
	}
	for range 10 {
		call()
	}
	before := a.Usage(t)
	for range calls {
		call()
	}
	// A connection may still be closing.
	eventually(t, "calls have left nothing behind", func(context.Context) (bool, string) {
		after := a.Usage(t)
		return after.Goroutines <= before.Goroutines+3 && after.Descriptors <= before.Descriptors+3 && after.Heap <= before.Heap+2<<20,
			fmt.Sprintf("before %d calls: %+v; after: %+v", calls, before, after)
	})
	// A call with kubelet's timeout returns what it waits for.
	n.succeed(t, "the answer of what is waited for", func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
		defer cancel()
		err := n.Stage(ctx, v)
		switch code := status.Code(err); code {
		case codes.DeadlineExceeded, codes.Aborted:
		case codes.Unavailable: // A busy agent may take too long to accept a connection.
		default:
			t.Fatalf("staging: %s: %v", code, err)
		}
		if !strings.Contains(err.Error(), "has not completed and not created /pav/ready") {
			return fmt.Errorf("it is %w", err)
		}
		return nil
	})
	end()
	n.stage(t, v)
	n.unstage(t, v)
	n.wantRuns(t, v, runs(pavv1.WorkflowStaging, pavv1.WorkflowUnstaging))
}

package stage

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/observability"
	"github.com/albertofaria/pav/internal/workflow"
)

// reportDelay is how long something may keep a pod from starting before it is told. Kubelets and schedulers
// fix much within seconds.
const reportDelay = 4 * time.Second

// longestObstacle is how long an unstaging pod may be kept from starting before the next attempt takes its place.
const longestObstacle = 5 * time.Minute

// maxCauses is how many causes are told of one pod. Some have a time or a count in their words.
const maxCauses = 8

// attempts remembers what is not worth a place in the ledger, by the name of the stage: an agent that
// begins anew tells once more, and tries once more.
type attemptTracker struct {
	mu sync.Mutex
	of map[string]*attemptProblems
}

// problem is what a stage has met.
type attemptProblems struct {
	pod   string          // the pod that is kept from starting
	since time.Time       // since when it is known
	told  map[string]bool // the causes that were told

	holder types.UID // the PavStage of another node that has the volume, and was reported

	failures int // attempts to stage the volume anew that have failed in a row
}

func newAttemptTracker() *attemptTracker { return &attemptTracker{of: map[string]*attemptProblems{}} }

// change changes what is remembered of a stage.
func (t *attemptTracker) change(stage string, f func(*attemptProblems)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of[stage] == nil {
		t.of[stage] = &attemptProblems{}
	}
	f(t.of[stage])
}

// Forget drops what is remembered of a stage.
func (t *attemptTracker) forget(stage string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.of, stage)
}

// isNewHolder reports whether a PavStage of another node that is in the way of one was not reported yet, and notes it.
func (t *attemptTracker) isNewHolder(stage string, holder types.UID) bool {
	isNew := false
	t.change(stage, func(known *attemptProblems) { isNew, known.holder = known.holder != holder, holder })
	return isNew
}

// failures returns how many attempts to stage the volume anew have failed in a row.
func (t *attemptTracker) failures(stage string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of[stage] == nil {
		return 0
	}
	return t.of[stage].failures
}

// meets notes what keeps a pod from starting, which may be nothing, and returns whether that is to be told
// now, and if not, when, if at all.
func (t *attemptProblems) meets(pod, cause string, now time.Time) (untold bool, in time.Duration) {
	if cause == "" {
		t.since = time.Time{}
		return false, 0
	}
	if t.pod != pod {
		t.pod, t.since, t.told = pod, time.Time{}, map[string]bool{}
	}
	if t.since.IsZero() {
		t.since = now
	}
	if t.told[cause] || len(t.told) >= maxCauses {
		return false, 0
	}
	in = reportDelay - now.Sub(t.since)
	return in <= 0, max(in, 0)
}

// observeObstacle gathers whether it is to be told what keeps the stage's pod from starting.
func (t *task) observeObstacle(o *observation) {
	what, pod := t.work()
	if pod == nil {
		return
	}
	cause := ""
	if workflow.Observe(pod) == workflow.Running {
		cause = workflow.Waiting(pod)
	}
	t.attempts.change(t.stage.Name, func(known *attemptProblems) {
		o.reportDue, o.reportIn = known.meets(string(pod.UID), cause, t.now())
		o.stuck = what == unstaging && pod == t.unstagingPod && cause != "" && t.now().Sub(known.since) >= longestObstacle
	})
}

// reportObstacle tells everybody what keeps the pod from starting, or from being created, and the caller at once, for kubelet shows
// that on the client pod.
func (t *task) reportObstacle(ctx context.Context) error {
	what, pod := t.work()
	cause, kind := t.full, ErrFull
	if cause == "" {
		cause, kind = workflow.Waiting(pod), ErrPending
	}
	if err := t.update(ctx, func(*pavv1.PavStageStatus) {
		t.setReady(t.stage, metav1.ConditionFalse, "PodNotStarted", observability.Clip(cause, observability.MaxCondition))
	}); err != nil {
		return err
	}
	t.attempts.change(t.stage.Name, func(known *attemptProblems) { known.told[cause] = true })
	reason := "FailedMount"
	if what == unstaging {
		reason = "FailedUnmount"
	}
	t.eventf(ctx, corev1.EventTypeWarning, reason, "%s on node %s: provisioner %q: %s", what, t.node, t.stage.Spec.Provisioner, cause)
	return fmt.Errorf("%w: provisioner %q: %s volume %q: %s", kind, t.stage.Spec.Provisioner, what, t.stage.Spec.VolumeName, cause)
}

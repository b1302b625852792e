package stage

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/observability"
	"github.com/albertofaria/pav/internal/protocol"
	"github.com/albertofaria/pav/internal/workflow"
)

// reportDelay is how long a pod may fail to start before the cause is reported. Many causes pass within seconds.
const reportDelay = 4 * time.Second

// longestObstacle is how long an unstaging pod may fail to start before the next attempt replaces it.
const longestObstacle = 5 * time.Minute

// maxCauses limits the causes that are reported of one pod. The text of some has a time or a count.
const maxCauses = 8

// attemptTracker remembers, for each stage, what need not survive a restart of the agent: after a restart, causes are
// reported once more, and the delays between attempts start again.
type attemptTracker struct {
	mu sync.Mutex
	of map[string]*attemptProblems
}

// attemptProblems are the problems of the attempts of a stage.
type attemptProblems struct {
	pod      string          // the pod that cannot start
	since    time.Time       // when that was first seen
	reported map[string]bool // the causes that were reported

	holder types.UID // the PavStage of another node that has the volume, once it is reported

	failures int // attempts to restage the volume that have failed in a row
}

func newAttemptTracker() *attemptTracker { return &attemptTracker{of: map[string]*attemptProblems{}} }

// change changes the problems of a stage.
func (t *attemptTracker) change(stage string, f func(*attemptProblems)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of[stage] == nil {
		t.of[stage] = &attemptProblems{}
	}
	f(t.of[stage])
}

// forget removes the problems of a stage.
func (t *attemptTracker) forget(stage string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.of, stage)
}

// isNewHolder reports whether the PavStage of another node that has the volume was not reported yet, and notes it.
func (t *attemptTracker) isNewHolder(stage string, holder types.UID) bool {
	isNew := false
	t.change(stage, func(known *attemptProblems) { isNew, known.holder = known.holder != holder, holder })
	return isNew
}

// failures returns how many attempts to restage the volume have failed in a row.
func (t *attemptTracker) failures(stage string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of[stage] == nil {
		return 0
	}
	return t.of[stage].failures
}

// meets notes the cause that is to be reported of a pod after a delay, or "" if there is none. It returns whether the cause
// is to be reported now or else in what time; 0 means never.
func (t *attemptProblems) meets(pod, cause string, now time.Time) (due bool, in time.Duration) {
	if cause == "" {
		t.since = time.Time{}
		return false, 0
	}
	if t.pod != pod {
		t.pod, t.since, t.reported = pod, time.Time{}, map[string]bool{}
	}
	if t.since.IsZero() {
		t.since = now
	}
	if t.reported[cause] || len(t.reported) >= maxCauses {
		return false, 0
	}
	in = reportDelay - now.Sub(t.since)
	return in <= 0, max(in, 0)
}

// observeObstacle gathers whether it is to be reported that the stage's pod cannot start, or that it runs for long.
func (t *task) observeObstacle(o *observation) {
	t.cause = ""
	what, pod := t.work()
	if pod == nil {
		return
	}
	runs := workflow.Observe(pod) == workflow.Running
	if runs {
		t.cause = workflow.Waiting(pod)
	}
	t.attempts.change(t.stage.Name, func(known *attemptProblems) {
		o.reportDue, o.reportIn = known.meets(string(pod.UID), t.cause, t.now())
		o.stuck = what == unstaging && pod == t.unstagingPod && t.cause != "" && t.now().Sub(known.since) >= longestObstacle
	})
	if what == expanding {
		t.observeSlowExpansion(o, pod, runs)
		return
	}
	if runs && t.cause == "" {
		t.cause, o.reportIn = t.slowness(o, what, pod)
		o.reportDue = t.cause != "" && !t.hasReportedSlow()
	}
	o.reported = runs && !o.reportDue && isStoppable(&t.stage.Status) && t.isAwaited(o, what, pod)
}

// reportObstacle reports the cause that keeps the pod from starting, from being created, or from completing, in the condition,
// in events, and in the error of the call, which kubelet shows on the client pod.
func (t *task) reportObstacle(ctx context.Context) error {
	what, pod := t.work()
	cause, kind, is := t.full, ErrFull, pavv1.ReasonPodNotStarted
	if cause == "" {
		cause, kind = t.cause, ErrPending
		if workflow.Waiting(pod) == "" {
			is = pavv1.ReasonPodRunsLong
		}
	}
	if err := t.reportInStatus(ctx, what, is, cause); err != nil {
		return err
	}
	if is != pavv1.ReasonPodRunsLong || what == expanding {
		t.attempts.change(t.stage.Name, func(known *attemptProblems) { known.reported[cause] = true })
	}
	reason := map[string]string{unstaging: "FailedUnmount", expanding: protocol.VolumeResizeFailed}[what]
	t.eventf(ctx, corev1.EventTypeWarning, cmp.Or(reason, "FailedMount"), "%s on node %s: provisioner %q: %s", what, t.node, t.stage.Spec.Provisioner, cause)
	return fmt.Errorf("%w: provisioner %q: %s volume %q: %s", kind, t.stage.Spec.Provisioner, what, t.stage.Spec.VolumeName, cause)
}

// observeSlowExpansion gathers whether it is to be reported that a node expansion pod runs for long. No condition reports it, as the
// volume can be used all the time.
func (t *task) observeSlowExpansion(o *observation, pod *corev1.Pod, runs bool) {
	if !runs || t.cause != "" || !workflow.Started(pod) {
		return
	}
	if left := runDelay - t.now().Sub(workflow.StartOf(pod)); left > 0 {
		o.reportIn = min(left, runDelay)
		return
	}
	t.cause = fmt.Sprintf("%s after %s; see kubectl logs -n %s %s --all-containers, or delete it", t.unfinished(expanding, pod), runDelay, pod.Namespace, pod.Name)
	t.attempts.change(t.stage.Name, func(known *attemptProblems) {
		if known.pod != string(pod.UID) {
			known.pod, known.since, known.reported = string(pod.UID), t.now(), map[string]bool{}
		}
		o.reportDue = !known.reported[t.cause]
	})
}

// reportInStatus reports a cause in the condition of the stage. While the volume is expanded, it can be used all the time.
func (t *task) reportInStatus(ctx context.Context, what, is, cause string) error {
	if what == expanding {
		return nil
	}
	return t.update(ctx, func(status *pavv1.PavStageStatus) {
		if pavv1.IsStoppedByRetry(is) && !isStoppable(status) {
			t.handleRetry(status) // A later request stops the pod.
		}
		t.setReady(t.stage, metav1.ConditionFalse, is, observability.Clip(cause, observability.MaxCondition))
	})
}

package attempt

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/workflow"
)

const (
	// causeDelay and startDelay are how long a pod may fail to start before that is reported: with a cause that
	// Kubernetes gives, which may pass by itself, and without one. After startDelay its slot is suspended.
	causeDelay = 4 * time.Second
	startDelay = 30 * time.Second

	// nodeTimeout is how long a pod may not fit on the node that the scheduler selected for the claim's first consumer.
	nodeTimeout = 15 * time.Second

	// startTimeout is how long a pod may hang on a node, or may fail to start while others wait for its slot.
	// pullTimeout is the same for a pod whose images are being pulled.
	startTimeout = 5 * time.Minute
	pullTimeout  = 30 * time.Minute

	// runDelay is how long a pod may run before that is reported.
	runDelay = 30 * time.Second

	// LongDelay is how long a pod may wait for its slot, or may run, before that is reported.
	LongDelay = 10 * time.Minute

	// ResultDelay is how long the error text of a failed pod is waited for. Without it, the failure is recorded all
	// the same, and the text is added when it arrives. The files of a pod that succeeded are waited for as long as
	// its node exists.
	ResultDelay = 5 * time.Second
)

// Reasons of conditions: of a pod that waits for its slot, cannot start, is being deleted, or is over while its node
// has yet to report the files in /pav.
const (
	ReasonQueued       = "Queued"
	ReasonNotStarted   = pavv1.ReasonPodNotStarted
	ReasonPodStopping  = "PodStopping"
	ReasonPodReporting = "PodReporting"
)

// Action is what is to be done about a pod.
type Action string

const (
	// Wait means to do nothing except to report the message, if there is one.
	Wait Action = "Wait"

	// Run means to create the pod as soon as it has a slot.
	Run Action = "Run"

	// Stop means to delete the pod.
	Stop Action = "Stop"
)

// Decision is what is to be done about a pod, and what to report.
type Decision struct {
	Action Action

	// Reason and Message are those of the condition; the message is also the event's. Nothing is reported without one.
	Reason, Message string

	// Warning says that the administrator may have to act.
	Warning bool

	// Repeat says that the event is recorded again although the condition is unchanged.
	Repeat bool

	// After is when to decide again if nothing changes; 0 for not before that.
	After time.Duration
}

func again(after time.Duration) Decision { return Decision{Action: Wait, After: after} }

// Describe says what the pod does.
func (a Attempt) Describe() string {
	return fmt.Sprintf("pod %s/%s %s", a.Ref.Namespace, a.Ref.Name, a.Doing)
}

// DecideQueued decides about a pod that is None or Intended: it is created as soon as it has a slot.
func (a Attempt) DecideQueued() Decision {
	v := Decision{Action: Run}
	if a.Ref == nil || a.Ref.Due == nil {
		return v
	}
	if waited := a.Now.Sub(a.Ref.Due.Time); waited < LongDelay {
		v.After = min(LongDelay-waited, LongDelay) // the clock may be behind
		return v
	}
	v.Reason, v.Warning = ReasonQueued, true
	v.Message = fmt.Sprintf("pod %s/%s has waited for more than %s for a slot: other pods of PaV run, or cannot start; --max-pods and --max-pods-per-provisioner of the controller agent limit how many run at once",
		a.Ref.Namespace, a.Ref.Name, LongDelay)
	return v
}

// DecideRunning decides about a pod that is Running: it runs, or cannot start.
func (a Attempt) DecideRunning() Decision {
	pod := a.Pod()
	if a.Retried && pavv1.IsStoppedByRetry(a.Reported) {
		return Decision{Action: Stop, Warning: true, Message: fmt.Sprintf("pod %s/%s is stopped, as a retry was requested", a.Ref.Namespace, a.Ref.Name)}
	}
	cause := workflow.Waiting(pod)
	if cause == "" && workflow.Started(pod) {
		return a.decideStarted(pod)
	}
	age := unstartedFor(a.Now, pod)
	if a.isGivenUp(pod, age) {
		return a.decideGivenUp(pod)
	}
	delay := causeDelay
	if cause == "" {
		cause, delay = notStarted(pod), startDelay
	}
	if age < delay {
		return again(delay - age)
	}
	// That others wait for the slot is no event that would bring the next pass, and events expire after an hour.
	v := Decision{Action: Wait, Reason: ReasonNotStarted, Message: "waiting, as " + cause, Warning: true, After: startTimeout, Repeat: age >= startTimeout}
	for _, next := range []time.Duration{startTimeout, startDelay, nodeTimeout} {
		if age < next {
			v.After = next - age
		}
	}
	return v
}

// notStarted says that a pod has not started, and that Kubernetes gives no cause.
func notStarted(pod *corev1.Pod) string {
	text := fmt.Sprintf("pod %s/%s has not started after %s", pod.Namespace, pod.Name, startDelay)
	if workflow.ReadyToStart(pod) == corev1.ConditionTrue {
		text += ": its images are being pulled, or its containers created"
	}
	return fmt.Sprintf("%s; see kubectl describe pod -n %s %s", text, pod.Namespace, pod.Name)
}

// decideStarted withdraws the report of a pod that could not start, and reports one that has run for long.
func (a Attempt) decideStarted(pod *corev1.Pod) Decision {
	ran := a.Now.Sub(workflow.StartOf(pod))
	for _, least := range []time.Duration{LongDelay, runDelay} {
		if ran < least {
			continue
		}
		return Decision{Action: Wait, Reason: pavv1.ReasonPodRunsLong, Warning: least == LongDelay, After: max(LongDelay-ran, 0),
			Message: fmt.Sprintf("%s; it has run for more than %s; see kubectl logs -n %s %s --all-containers, or stop it with kubectl pav retry %s",
				a.Describe(), least, a.Ref.Namespace, a.Ref.Name, a.Object)}
	}
	v := again(min(runDelay-ran, runDelay)) // the clock may be behind
	if a.Reported == ReasonNotStarted {
		v.Reason, v.Message = a.Step, a.Describe()
	}
	return v
}

// decideGivenUp decides about a pod that cannot start and is not waited for any more.
func (a Attempt) decideGivenUp(pod *corev1.Pod) Decision {
	v := Decision{Action: Stop}
	if IsHung(a.Now, pod) {
		v.Warning = true
		v.Message = fmt.Sprintf("pod %s/%s has not started on node %q within %s and is given up; the next one prefers other nodes",
			pod.Namespace, pod.Name, pod.Spec.NodeName, startTimeout)
	}
	return v
}

// DecideStopping decides about a pod that is Stopping: nothing but its end matters.
func (a Attempt) DecideStopping() Decision {
	pod := a.Pod()
	if left := stopTimeLeft(a.Now, pod); left > 0 {
		return again(left)
	}
	return Decision{Action: Wait, Reason: ReasonPodStopping, Warning: true,
		Message: fmt.Sprintf("waiting for kubelet on node %q to confirm that pod %s/%s has ended; if the node is lost permanently, delete the Node",
			pod.Spec.NodeName, pod.Namespace, pod.Name)}
}

// stopTimeLeft returns how much longer a pod that is being deleted may take to end before that is reported. Its
// deletion timestamp is when its grace period ends.
func stopTimeLeft(now time.Time, pod *corev1.Pod) time.Duration {
	most := 2 * ResultDelay
	if grace := pod.DeletionGracePeriodSeconds; grace != nil {
		most += time.Duration(*grace) * time.Second
	}
	return min(pod.DeletionTimestamp.Add(2*ResultDelay).Sub(now), most)
}

// DecideReporting decides about a pod that is over, and whose files in /pav its node has yet to report.
func DecideReporting(now time.Time, pod *corev1.Pod) Decision {
	if HasEndedWithin(now, pod, 2*ResultDelay) {
		return again(ResultDelay)
	}
	v := Decision{Action: Wait, Reason: ReasonPodReporting, Warning: true,
		Message: fmt.Sprintf("waiting for the agent on node %q to report what pod %s/%s left in /pav; if the node is lost permanently, delete the Node",
			pod.Spec.NodeName, pod.Namespace, pod.Name)}
	if _, collected := workflow.Collected(pod); collected {
		v.After = min(max(LongDelay-UnreportedFor(now, pod), ResultDelay), LongDelay) // the clock may be behind
	}
	return v
}

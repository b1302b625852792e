package volume

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/workflow"
)

// The times after which a pod that does not start is reported: with a cause that Kubernetes tells, which may
// pass by itself, and without one. By then the place of such a pod is lent. After contentPatience it is given
// up: where it hangs on a node, or where others wait for its place; pullPatience is that of pods whose images
// are being pulled, which others wait for longer.
const (
	causePatience   = 4 * time.Second
	startPatience   = 30 * time.Second
	nodePatience    = 15 * time.Second
	contentPatience = 5 * time.Minute
	pullPatience    = 30 * time.Minute
)

// longPatience is how long a pod may wait for its place, or run, before that is reported.
const longPatience = 10 * time.Minute

// decideQueued decides about a pod that is recorded, and created as soon as there is a place for it.
func decideQueued(o snapshot, condition string) decision {
	d := decision{step: stepRunPod}
	ref := o.volume.Status.Pod
	if ref == nil || ref.Due == nil {
		return d
	}
	if waited := o.now.Sub(ref.Due.Time); waited < longPatience {
		d.after = min(longPatience-waited, longPatience)
		return d
	}
	d.condition, d.reason, d.warning = condition, reasonQueued, true
	d.message = fmt.Sprintf("pod %s/%s has waited for more than %s for a place: other pods of PaV run, or cannot start; how many may is a matter of --max-pods and --max-pods-per-provisioner of the controller agent",
		ref.Namespace, ref.Name, longPatience)
	return d
}

// decideRunning decides about a pod that runs, or cannot start.
func decideRunning(o snapshot, condition string) decision {
	pod := o.pod()
	cause := workflow.Waiting(pod)
	if cause == "" && workflow.Started(pod) {
		return decideStarted(o, condition)
	}
	age := unstartedFor(o.now, pod)
	if givesUp(o, pod, age) {
		return decideGivenUp(o, pod, condition)
	}
	patience := causePatience
	if cause == "" {
		cause, patience = notStarted(pod), startPatience
	}
	if age < patience {
		return again(patience - age)
	}
	d := waiting(condition, reasonNotStarted, "waiting, as "+cause, true)
	// Whether others wait by then is no event, and events are forgotten after an hour.
	d.after, d.repeat = contentPatience, age >= contentPatience
	for _, next := range []time.Duration{contentPatience, startPatience, nodePatience} {
		if age < next {
			d.after = next - age
		}
	}
	return d
}

// notStarted says that a pod has not started, of which Kubernetes tells no cause.
func notStarted(pod *corev1.Pod) string {
	text := fmt.Sprintf("pod %s/%s has not started after %s", pod.Namespace, pod.Name, startPatience)
	if workflow.ReadyToStart(pod) == corev1.ConditionTrue {
		text += ": its images are being pulled, or its containers created"
	}
	return fmt.Sprintf("%s; see kubectl describe pod -n %s %s", text, pod.Namespace, pod.Name)
}

// Reasons of conditions: of a pod that cannot start, and of one that waits for a place.
const (
	reasonNotStarted = "PodNotStarted"
	reasonQueued     = "Queued"
)

// decideStarted takes back what was reported of a pod that could not start, and reports one that runs for long.
func decideStarted(o snapshot, condition string) decision {
	step, ref := o.volume.Status.Step, o.volume.Status.Pod
	left := longPatience - o.now.Sub(workflow.StartOf(o.pod()))
	if left <= 0 {
		return waiting(condition, string(step), fmt.Sprintf("%s; it has run for more than %s; see kubectl logs -n %s %s --all-containers",
			doing(step, ref), longPatience, ref.Namespace, ref.Name), true)
	}
	d := again(min(left, longPatience))
	if c := meta.FindStatusCondition(o.volume.Status.Conditions, condition); c != nil && c.Reason == reasonNotStarted {
		d = waiting(condition, string(step), doing(step, ref), false)
		d.after = min(left, longPatience)
	}
	return d
}

// decideGivenUp ends a pod that cannot start, so that another one can be tried.
func decideGivenUp(o snapshot, pod *corev1.Pod, condition string) decision {
	d := decision{step: stepStopPod}
	if isHung(o.now, pod) {
		d.condition, d.warning = condition, true
		d.message = fmt.Sprintf("pod %s/%s has not started on node %q within %s and is given up; the next one prefers other nodes",
			pod.Namespace, pod.Name, pod.Spec.NodeName, contentPatience)
	}
	return d
}

// givesUp reports whether a pod that cannot start is not waited for any more.
func givesUp(o snapshot, pod *corev1.Pod, age time.Duration) bool {
	if workflow.Started(pod) {
		return false
	}
	status := &o.volume.Status
	// Nothing of it ever ran, so that there is nothing to revert, and the scheduler may choose another node.
	if status.Step == pavv1.StepCreating && status.SelectedNode != "" && unschedulable(pod) {
		return age >= nodePatience
	}
	switch {
	case isHung(o.now, pod):
		return age >= contentPatience
	case workflow.Waiting(pod) == "" && workflow.ReadyToStart(pod) == corev1.ConditionTrue:
		// Another pod would only begin the pull of its images again.
		return o.contended && age >= pullPatience
	default:
		// Others wait for its place, one of which may be what it waits for.
		return o.contended && age >= contentPatience
	}
}

// isHung reports whether a pod hangs on its node, for a reason that need not be there on other nodes: a
// kubelet that does not answer, or a volume that it cannot mount.
func isHung(now time.Time, pod *corev1.Pod) bool {
	if pod.Spec.NodeName == "" || workflow.Started(pod) || workflow.Waiting(pod) != "" || unstartedFor(now, pod) < startPatience {
		return false
	}
	if workflow.ReadyToStart(pod) == corev1.ConditionFalse {
		return true
	}
	// A kubelet that has seen the pod tells the condition, unless that is switched off.
	return workflow.ReadyToStart(pod) == "" && pod.Status.StartTime == nil
}

// cannotStart reports whether the place of a pod is lent meanwhile.
func cannotStart(now time.Time, pod *corev1.Pod) bool {
	return !workflow.Started(pod) && (workflow.Waiting(pod) != "" || unstartedFor(now, pod) >= startPatience)
}

// unstartedFor returns for how long a pod has not started: since it was bound to its node, or created.
func unstartedFor(now time.Time, pod *corev1.Pod) time.Duration {
	since := pod.CreationTimestamp.Time
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue && c.LastTransitionTime.After(since) {
			since = c.LastTransitionTime.Time
		}
	}
	return now.Sub(since)
}

func unschedulable(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
			return true
		}
	}
	return false
}

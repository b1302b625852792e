package status

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/kubectl/cli"
	"github.com/albertofaria/pav/internal/protocol"
	"github.com/albertofaria/pav/internal/workflow"
)

// diagnose returns the findings, the worst first. There is at least one.
func diagnose(f *Facts) []Finding {
	if f.Snapshot != nil {
		return []Finding{diagnoseSnapshot(f)}
	}
	if f.Bucket != nil {
		return worstFirst(diagnoseBuckets(f))
	}
	found := diagnoseVolume(f)
	if isProvisioned(f) {
		for i := range f.Stages {
			found = append(found, diagnoseStage(f, &f.Stages[i])...)
		}
		for i := range f.Clients {
			found = append(found, diagnoseClient(f, &f.Clients[i])...)
		}
	}
	if tooSmall := diagnoseSize(f); tooSmall != nil {
		found = append(found, *tooSmall)
	}
	if others := diagnoseAttributes(f); others != nil {
		found = append(found, *others)
	}
	found = append(found, failingSnapshots(f.Snapshots)...)
	if len(found) == 0 {
		found = append(found, healthy(f))
	}
	return worstFirst(found)
}

func worstFirst(found []Finding) []Finding {
	slices.SortStableFunc(found, func(a, b Finding) int { return cmp.Compare(severity[b.State], severity[a.State]) })
	return found
}

// diagnoseSize returns the finding about a claim that asks for more than its volume has, or nil.
func diagnoseSize(f *Facts) *Finding {
	if f.Claim == nil || f.Claim.Status.Phase != corev1.ClaimBound || f.Claim.DeletionTimestamp != nil {
		return nil
	}
	wanted, has := f.Claim.Spec.Resources.Requests[corev1.ResourceStorage], f.Claim.Status.Capacity[corev1.ResourceStorage]
	if found := diagnoseOnNodes(f); found != nil {
		return found
	}
	if has.IsZero() || wanted.Cmp(has) <= 0 || isGrown(f, wanted) {
		return nil
	}
	found := diagnoseExpansion(f, fmt.Sprintf("the claim asks for %s, and its volume has %s", wanted.String(), has.String()))
	return &found
}

// isGrown reports whether the volume has what the claim asks for, so that only its nodes have to make that available.
func isGrown(f *Facts, wanted resource.Quantity) bool {
	return f.Volume != nil && f.Volume.Status.Capacity != nil && f.Volume.Status.Capacity.Cmp(wanted) >= 0
}

// isProvisioned reports whether the volume exists and pods can use it.
func isProvisioned(f *Facts) bool {
	return f.PV != nil || len(f.Stages) > 0 || f.Claim != nil && f.Claim.Status.Phase == corev1.ClaimBound
}

// healthy is the finding about a volume without other findings.
func healthy(f *Facts) Finding {
	summary := "the volume exists"
	var nodes, pods []string
	for i := range f.Stages {
		if f.Stages[i].Status.Phase == pavv1.StageStaged {
			nodes = append(nodes, f.Stages[i].Spec.NodeName)
		}
	}
	for i := range f.Clients {
		if f.Clients[i].Status.Phase == corev1.PodRunning {
			pods = append(pods, f.Clients[i].Name)
		}
	}
	nodes = slices.Compact(nodes)
	switch {
	case len(nodes) > 0 && len(pods) > 0:
		summary = fmt.Sprintf("the volume is available on %s, and %s", list("node", nodes), use(pods))
	case len(nodes) > 0:
		summary = "the volume is available on " + list("node", nodes)
	case len(pods) > 0:
		summary = "the volume exists, and " + use(pods)
	case len(f.Clients) == 0 && !f.hides(hiddenClients):
		summary += "; no pod uses it"
	}
	return Finding{Code: "Healthy", State: Healthy, Summary: summary}
}

func use(pods []string) string {
	if len(pods) == 1 {
		return "pod " + pods[0] + " uses it"
	}
	return list("pod", pods) + " use it"
}

// list names at most three things.
func list(what string, names []string) string {
	const most = 3
	if len(names) != 1 {
		what += "s"
	}
	if len(names) > most {
		return fmt.Sprintf("%s %s and %d more", what, strings.Join(names[:most], ", "), len(names)-most)
	}
	return what + " " + strings.Join(names, ", ")
}

// describePod is the command that describes a pod.
func describePod(namespace, name string) string {
	return fmt.Sprintf("kubectl describe pod -n %s %s", namespace, name)
}

// seeLogs is the step that shows a pod's log.
func seeLogs(namespace, name string) Step {
	return Step{Text: "read its log", Command: fmt.Sprintf("kubectl logs -n %s %s --all-containers", namespace, name)}
}

// seeProvisioner is the step that shows a definition.
func seeProvisioner(name string) Step {
	return Step{Text: "fix the definition", Command: "kubectl edit pavprovisioner " + name}
}

// object is the object for a command line: the claim, if there is one, or the PersistentVolume; or what the user named of a snapshot or
// bucket.
func (f *Facts) object() string {
	if f.Claim != nil && f.Snapshot == nil {
		return Ref{Kind: Claim, Namespace: f.Claim.Namespace, Name: f.Claim.Name}.String()
	}
	return f.Subject.String()
}

// longWait is the minimum wait that is worth skipping.
const longWait = 5 * time.Second

// retryStep is the step that skips the wait before the next attempt, if the wait is long enough.
func retryStep(f *Facts, in time.Duration) []Step {
	if in < longWait {
		return nil
	}
	return []Step{{Text: "then start the next attempt now", Command: "kubectl pav retry " + f.object()}}
}

// nextAttempt returns the time until the next attempt after a failure, and a text about it that begins with a space. If the
// time is not known, as an agent of an earlier version recorded the failure, it is taken to be long.
func nextAttempt(f *Facts, failure *pavv1.WorkflowFailure) (in time.Duration, text string) {
	if failure.NextAttemptTime == nil || isFormer(failure) {
		return longWait, ""
	}
	in = max(failure.NextAttemptTime.Sub(f.Now), 0)
	if in < time.Second {
		return in, " now"
	}
	return in, " in " + cli.Duration(in)
}

// isFormer reports whether reason and time of the next attempt are those of an earlier failure: an agent of an earlier
// version, which does not know these fields, has recorded this one.
func isFormer(failure *pavv1.WorkflowFailure) bool {
	return failure.NextAttemptTime.Before(&failure.Time)
}

// causeOf returns the reason of a failure, or "" if it is not known.
func causeOf(failure *pavv1.WorkflowFailure) pavv1.FailureReason {
	if isFormer(failure) {
		return ""
	}
	return failure.Reason
}

// failed is a finding about a workflow that has failed.
func failed(f *Facts, code, summary string, failure *pavv1.WorkflowFailure, in time.Duration) Finding {
	found := Finding{Code: code, State: Failing, Summary: summary, Reason: reason(failure)}
	cause := causeOf(failure)
	if remedy := remedies[cause]; remedy != nil {
		found.Code = string(cause)
		found.Next = append(found.Next, remedy(failure.PodNamespace))
	}
	if failure.PodName != "" {
		found.Pod = &PodRef{Namespace: failure.PodNamespace, Name: failure.PodName}
		if pod := f.podNamed(failure.PodNamespace, failure.PodName); pod != nil {
			*found.Pod = refOf(pod)
			found.Next = append(found.Next, seeLogs(failure.PodNamespace, failure.PodName))
		}
	}
	if f.Class != nil && !protocol.BindsLate(f.Class) && strings.Contains(failure.Message, "selectedNode") {
		found.Next = append(found.Next, Step{Text: "if the definition needs selectedNode, create the StorageClass again with volumeBindingMode: WaitForFirstConsumer, then the claim"})
	}
	if name := f.provisionerName(); name != "" && cause != pavv1.FailureNamespaceNotOpen && cause != pavv1.FailureQuotaExceeded {
		found.Next = append(found.Next, seeProvisioner(name))
	}
	found.Next = append(found.Next, retryStep(f, in)...)
	return found
}

// reason returns the message of a failure without the part that is in the summary, and the end of the pod's log. Only
// users who may read PavVolumes and PavStages see the log.
func reason(failure *pavv1.WorkflowFailure) string {
	text := Brief(failure.Message)
	if failure.Log != "" {
		text += "; its log ends with: " + failure.Log
	}
	return text
}

// refOf returns a pod and the container with the most useful log: the first that failed, else the first in a crash
// loop, else the first that runs.
func refOf(pod *corev1.Pod) PodRef {
	ref := PodRef{Namespace: pod.Namespace, Name: pod.Name}
	rows := statuses(pod)
	for _, s := range rows {
		if over := s.State.Terminated; over != nil && over.ExitCode != 0 {
			ref.Container = s.Name
			return ref
		}
	}
	for _, s := range rows {
		if s.State.Waiting != nil && s.LastTerminationState.Terminated != nil {
			ref.Container, ref.Previous = s.Name, true
			return ref
		}
	}
	for _, s := range rows {
		if s.State.Running != nil && s.LastTerminationState.Terminated == nil || s.State.Terminated != nil {
			ref.Container = s.Name
			if s.State.Running != nil {
				return ref
			}
		}
	}
	return ref
}

// afterFailure turns the finding about the current attempt into one about the previous failure, unless the current
// attempt has a problem itself: users ask about the failure, and the attempt may fail in the same way. A failure without a
// pod is over when the pod of the current attempt exists.
func afterFailure(f *Facts, code, summary string, now Finding, failure *pavv1.WorkflowFailure) Finding {
	if failure == nil || now.State != Working && now.State != Slow || failure.PodName == "" {
		return now
	}
	found := failed(f, code, summary+"; now "+now.Summary, failure, 0)
	found.Next = append(found.Next, now.Next...) // of a pod that may hang
	return found
}

// obstructed returns a finding about a workflow pod that cannot start, or nil.
func obstructed(pod *corev1.Pod, what string) *Finding {
	cause := workflow.Waiting(pod)
	if cause == "" {
		return restarted(pod, what)
	}
	found := &Finding{Code: "PodNotStarted", State: Failing, Summary: fmt.Sprintf("the %s pod cannot start", what), Reason: cause,
		Next: []Step{{Text: "see what it waits for", Command: describePod(pod.Namespace, pod.Name)}}}
	switch code := obstacleOf(pod); code {
	case "PodUnschedulable":
		found.Code, found.Summary = code, fmt.Sprintf("the %s pod fits no node", what)
	case "ImageNotPulled":
		found.Code, found.Summary = code, fmt.Sprintf("an image of the %s pod cannot be pulled", what)
		found.Next = append(found.Next, Step{Text: "fix the image name in the definition, or the node's access to the registry"})
	case "ContainerCrashes":
		found.Code, found.Summary = code, fmt.Sprintf("a container of the %s pod fails and is restarted", what)
		ref := refOf(pod)
		found.Pod = &ref
	}
	return found
}

// restarted returns a finding about a workflow pod whose container has ended and was restarted, or nil. Kubernetes says that it
// waits only between some of its restarts.
func restarted(pod *corev1.Pod, what string) *Finding {
	for _, s := range statuses(pod) {
		last := cmp.Or(s.State.Terminated, s.LastTerminationState.Terminated)
		if s.RestartCount == 0 || last == nil {
			continue
		}
		ref := refOf(pod)
		return &Finding{Code: "ContainerCrashes", State: Failing, Summary: fmt.Sprintf("a container of the %s pod ends and is restarted", what), Pod: &ref,
			Reason: fmt.Sprintf("container %q was restarted %d times; it last ended with exit code %d", s.Name, s.RestartCount, last.ExitCode),
			Next:   []Step{seeLogs(pod.Namespace, pod.Name)}}
	}
	return nil
}

// obstacleOf returns in one word why a pod cannot run, or "".
func obstacleOf(pod *corev1.Pod) string {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return "PodUnschedulable"
		}
	}
	for _, s := range statuses(pod) {
		if s.State.Waiting == nil {
			continue
		}
		switch s.State.Waiting.Reason {
		case "ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError", "RegistryUnavailable":
			return "ImageNotPulled"
		case "CrashLoopBackOff":
			return "ContainerCrashes"
		}
	}
	return ""
}

// stoppedBy returns when a pod that is being deleted must have ended, after its grace period.
func stoppedBy(pod *corev1.Pod) metav1.Time {
	if pod.DeletionTimestamp == nil {
		return pod.CreationTimestamp
	}
	return *pod.DeletionTimestamp
}

const (
	// slowAfter is how long a pod may run before it is said what to do about it. The agents report it then, and a retry
	// stops it.
	slowAfter = 30 * time.Second

	// hungAfter is how long a pod may run before it counts as a problem. The event of a volume is a warning then.
	hungAfter = 10 * time.Minute
)

// working is a finding about a workflow pod that runs or is about to run.
func working(f *Facts, pod *corev1.Pod, what string) Finding {
	if found := obstructed(pod, what); found != nil {
		if workflow.Waiting(pod) != "" {
			found.Next = append(found.Next, Step{Text: "once the definition is right, replace the pod", Command: "kubectl pav retry " + f.object()})
		}
		return *found
	}
	found := Finding{Code: "Working", State: Working, Summary: fmt.Sprintf("the %s pod runs", what)}
	since := began(pod)
	switch state := workflow.Observe(pod); {
	case state == workflow.Stopping:
		found.Summary, since = fmt.Sprintf("the %s pod is being stopped", what), stoppedBy(pod)
	case state != workflow.Running:
		found.Summary, since = fmt.Sprintf("the %s pod has ended, and its outcome is about to be recorded", what), ended(pod)
		if since.IsZero() {
			since = pod.CreationTimestamp
		}
	case since.IsZero():
		found.Summary, since = fmt.Sprintf("the %s pod is starting", what), pod.CreationTimestamp
	}
	age := f.Now.Sub(since.Time)
	if age >= time.Second {
		found.Summary += " (for " + cli.Duration(age) + ")"
	}
	switch {
	case age < slowAfter:
		return found
	case age < hungAfter:
		found.Code, found.State = "RunsLong", Slow
	default:
		found.Code, found.State = "RunsLong", Failing
	}
	found.Next = []Step{{Text: "if that is too long, see what it does", Command: describePod(pod.Namespace, pod.Name)}}
	if workflow.Observe(pod) == workflow.Running && hasBegun(pod) {
		found.Next[0] = Step{Text: "if that is too long, see what it does", Command: fmt.Sprintf("kubectl pav logs %s -f", f.object())}
		found.Next = append(found.Next, Step{Text: "or stop it, so that the next attempt follows", Command: "kubectl pav retry " + f.object()})
		ref := refOf(pod)
		found.Pod = &ref
	}
	return found
}

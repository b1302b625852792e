package status

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/kubectl/cli"
	"github.com/albertofaria/pav/internal/protocol"
	"github.com/albertofaria/pav/internal/workflow"
)

// diagnoseStage returns the finding about a volume on a node.
func diagnoseStage(f *Facts, s *pavv1.PavStage) []Finding {
	status, node := &s.Status, s.Spec.NodeName
	found := diagnoseNode(f, node)
	if len(found) > 0 && status.Phase != pavv1.StageStaged {
		return found // everything else follows from that
	}
	switch {
	case status.Restaging:
		found = append(found, diagnoseRestaging(f, s))
	case status.Phase == pavv1.StageUnstaging:
		found = append(found, diagnoseUnstaging(f, s))
	case status.Phase == pavv1.StageFailed:
		found = append(found, diagnoseFailedStage(f, s)...)
	case status.Phase == pavv1.StageStaged:
		if c := degraded(s); c != nil {
			found = append(found, Finding{Code: c.Reason, State: Failing, Summary: "the volume does not work properly on node " + node, Reason: c.Message,
				Next: degradedSteps(f, s)})
			break
		}
		if pod := f.pod(status.StagingPod); pod != nil && workflow.Observe(pod) == workflow.Stopping && slices.ContainsFunc(f.clientsOn(node), stays) {
			found = append(found, Finding{Code: "StagingPodStopping", State: Failing, Reason: "it was deleted while pods use the volume",
				Summary: fmt.Sprintf("the staging pod on node %s is being stopped; if its process serves the volume, the volume dies with it", node)})
		}
		found = append(found, diagnoseNodeExpansion(f, s)...)
		found = append(found, diagnoseFormerClients(f, s)...)
	default:
		found = append(found, diagnoseStaging(f, s))
	}
	return found
}

// diagnoseStaging returns the finding about the staging of a volume on a node.
func diagnoseStaging(f *Facts, s *pavv1.PavStage) Finding {
	what, ref := "staging", s.Status.StagingPod
	if s.Status.Phase == pavv1.StageValidating {
		what, ref = "validation", s.Status.ValidationPod
	}
	pod := f.pod(ref)
	if pod == nil {
		return unseenStaging(f, s, what)
	}
	found := working(f, pod, what)
	found.Summary += " on node " + s.Spec.NodeName
	if what == "staging" && found.Code == "RunsLong" && hasBegun(pod) {
		found.Summary += "; it has neither completed nor created /pav/ready"
	}
	return afterFailure(f, "StagingFailed", fmt.Sprintf("%s on node %s failed, attempt %d", failedWork(&s.Status), s.Spec.NodeName, s.Status.Attempt-1), found, s.Status.StagingFailure)
}

// unseenStaging returns the finding about the staging of a volume whose pod does not exist yet, or that the user may not read.
func unseenStaging(f *Facts, s *pavv1.PavStage, what string) Finding {
	found := Finding{Code: "Working", State: Working, Summary: fmt.Sprintf("%s on node %s is about to start", what, s.Spec.NodeName)}
	c := meta.FindStatusCondition(s.Status.Conditions, pavv1.StageReady)
	if c == nil || c.Status != metav1.ConditionFalse {
		return found
	}
	switch c.Reason {
	case pavv1.ReasonPodRunsLong:
		found.Code, found.State, found.Summary = c.Reason, Slow, fmt.Sprintf("the %s pod on node %s runs for long", what, s.Spec.NodeName)
		found.Next = []Step{{Text: "if that is too long, stop it, so that the next attempt follows", Command: "kubectl pav retry " + f.object()}}
	case pavv1.ReasonPodNotStarted:
		found.Code, found.State, found.Summary = c.Reason, Failing, fmt.Sprintf("the %s pod on node %s cannot start", what, s.Spec.NodeName)
	case "PodNotAdmitted":
		found = silent(f.AgentNamespace, fmt.Sprintf("the %s pod on node %s waits until the controller agent has checked it", what, s.Spec.NodeName))
		found.Code = c.Reason
	default:
		return found
	}
	found.Reason = Brief(c.Message)
	return found
}

// stays reports whether a pod is not being deleted.
func stays(pod *corev1.Pod) bool { return pod.DeletionTimestamp == nil }

// failedWork returns which workflow has failed for a stage that is being unstaged.
func failedWork(status *pavv1.PavStageStatus) string {
	if status.StagingFailure == nil {
		return ""
	}
	return cli.Phase(status.StagingFailure.Workflow)
}

func diagnoseRestaging(f *Facts, s *pavv1.PavStage) Finding {
	if failure := s.Status.StagingFailure; failure != nil {
		return failed(f, "RestagingFailed", fmt.Sprintf("the volume is dead on node %s, and the last attempt to stage it again failed", s.Spec.NodeName), failure, longWait)
	}
	return Finding{Code: "Restaging", State: Failing, Summary: fmt.Sprintf("the volume is dead on node %s, and is being staged again while pods use it", s.Spec.NodeName)}
}

// diagnoseUnstaging returns the finding about the unstaging of a volume on a node.
func diagnoseUnstaging(f *Facts, s *pavv1.PavStage) Finding {
	status, node := &s.Status, s.Spec.NodeName
	if pod := f.pod(status.ExpansionPod()); pod != nil && !workflow.Observe(pod).IsOver() {
		found := working(f, pod, "node expansion")
		found.Summary += fmt.Sprintf(" on node %s, and the volume is unstaged when it has ended", node)
		return found
	}
	if pod := f.pod(status.StagingPod); pod != nil && workflow.Observe(pod) == workflow.Stopping {
		found := working(f, pod, "staging")
		found.Summary += " on node " + node
		return afterFailure(f, "StagingFailed", fmt.Sprintf("%s on node %s failed, and is being reverted", failedWork(status), node), found, status.StagingFailure)
	}
	if pod := f.pod(status.UnstagingPod); pod != nil && !workflow.Observe(pod).IsOver() {
		found := working(f, pod, "unstaging")
		found.Summary += " on node " + node
		found = afterFailure(f, "UnstagingFailed", fmt.Sprintf("unstaging on node %s failed, attempt %d", node, status.UnstagingAttempt-1), found, status.UnstagingFailure)
		return afterFailure(f, "StagingFailed", fmt.Sprintf("%s on node %s failed, and is being reverted", failedWork(status), node), found, status.StagingFailure)
	}
	if failure := status.UnstagingFailure; failure != nil {
		in, next := nextAttempt(f, failure)
		found := failed(f, "UnstagingFailed", fmt.Sprintf("unstaging on node %s failed, attempt %d; the next one follows%s", node, status.UnstagingAttempt-1, next), failure, in)
		if s.Spec.Exclusive {
			found.Summary += "; until then no other node can have the volume"
		}
		return found
	}
	if failure := status.StagingFailure; failure != nil {
		return failed(f, "StagingFailed", fmt.Sprintf("%s on node %s failed, and is being reverted before the next attempt", cli.Phase(failure.Workflow), node), failure, 0)
	}
	return Finding{Code: "Unstaging", State: Working, Summary: "the volume is being unstaged on node " + node}
}

// diagnoseFailedStage returns the finding about a failed attempt, if a client still needs the volume on the node.
func diagnoseFailedStage(f *Facts, s *pavv1.PavStage) []Finding {
	failure := s.Status.StagingFailure
	if failure == nil || len(f.clientsOn(s.Spec.NodeName)) == 0 {
		return nil
	}
	code := "StagingFailed"
	if failure.Workflow == pavv1.WorkflowValidation {
		code = "ValidationFailed"
	}
	return []Finding{failed(f, code, fmt.Sprintf("%s on node %s failed, attempt %d; kubelet tries again, at most two minutes later", cli.Phase(failure.Workflow), s.Spec.NodeName, max(s.Status.Attempt, 1)), failure, 0)}
}

// degradedSteps returns what to do about a volume that has lost its staging pod, or does not respond.
func degradedSteps(f *Facts, s *pavv1.PavStage) []Step {
	steps := []Step{}
	if ref := s.Status.StagingPod; ref != nil && f.pod(ref) != nil {
		steps = append(steps, seeLogs(ref.Namespace, ref.Name))
	}
	if clients := f.clientsOn(s.Spec.NodeName); len(clients) > 0 {
		steps = append(steps, Step{Text: "restart pods that get errors from its files", Command: fmt.Sprintf("kubectl delete pod -n %s %s", clients[0].Namespace, clients[0].Name)})
	}
	return steps
}

// diagnoseFormerClients returns findings about pods that had the volume before it was staged again, and do not get it: they mount
// it without propagation, or have a block device.
func diagnoseFormerClients(f *Facts, s *pavv1.PavStage) (found []Finding) {
	staging := f.pod(s.Status.StagingPod)
	if staging == nil || s.Spec.Scope != pavv1.StagingScopeNode || f.Claim == nil {
		return nil
	}
	for _, client := range f.clientsOn(s.Spec.NodeName) {
		if hasFormerMount(client, f.Claim.Name, staging.CreationTimestamp) {
			found = append(found, Finding{Code: "ClientNotRestarted", State: Failing,
				Summary: fmt.Sprintf("pod %s was started before the volume was staged again on node %s, and gets errors from it until it is restarted", client.Name, s.Spec.NodeName),
				Next:    []Step{{Text: "restart it", Command: fmt.Sprintf("kubectl delete pod -n %s %s", client.Namespace, client.Name)}}})
		}
	}
	return found
}

// hasFormerMount reports whether a container of a pod has a claim's volume as it was at its start, which was before a time.
func hasFormerMount(pod *corev1.Pod, claim string, before metav1.Time) bool {
	names := map[string]bool{}
	for i := range pod.Spec.Volumes {
		volume := &pod.Spec.Volumes[i]
		names[volume.Name] = protocol.ClaimOf(pod, volume) == claim
	}
	for _, container := range pod.Spec.Containers {
		fixed := slices.ContainsFunc(container.VolumeDevices, func(d corev1.VolumeDevice) bool { return names[d.Name] }) ||
			slices.ContainsFunc(container.VolumeMounts, func(m corev1.VolumeMount) bool {
				return names[m.Name] && (m.MountPropagation == nil || *m.MountPropagation == corev1.MountPropagationNone)
			})
		if fixed && slices.ContainsFunc(pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool {
			return s.Name == container.Name && s.State.Running != nil && s.State.Running.StartedAt.Before(&before)
		}) {
			return true
		}
	}
	return false
}

// diagnoseNode returns the finding about a node on which the volume is staged or needed.
func diagnoseNode(f *Facts, name string) []Finding {
	node := f.Nodes[name]
	if node == nil {
		return nil
	}
	if node.Gone {
		return []Finding{{Code: "NodeGone", State: Working, Summary: fmt.Sprintf("node %s does not exist any more; its record of the volume is being removed", name)}}
	}
	if c := notReady(node); c != nil {
		return []Finding{{Code: "NodeNotReady", State: Failing, Summary: fmt.Sprintf("node %s has not been ready for %s", name, cli.Duration(f.Now.Sub(c.LastTransitionTime.Time))), Reason: c.Message,
			Next: []Step{{Text: "repair the node", Command: "kubectl describe node " + name},
				{Text: "or, if it is shut down permanently, release its volumes", Command: "kubectl taint node " + name + " node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"}}}}
	}
	switch see := "kubectl -n " + f.AgentNamespace + " get pods -o wide --field-selector spec.nodeName=" + name; {
	case node.AgentMissing:
		return []Finding{{Code: "AgentNotRunning", State: Failing, Summary: "PaV's node agent is not on node " + name,
			Next: []Step{{Text: "see why: taints, or a node selector of the DaemonSet", Command: "kubectl -n " + f.AgentNamespace + " describe daemonset node-agent"}}}}
	case node.Agent != nil && !isReady(node.Agent):
		return []Finding{{Code: "AgentNotRunning", State: Failing, Summary: "PaV's node agent does not run on node " + name, Reason: workflow.Waiting(node.Agent),
			Next: []Step{{Text: "see why", Command: see}, {Text: "and see its log", Command: fmt.Sprintf("kubectl -n %s logs %s --tail=20", f.AgentNamespace, node.Agent.Name)}}}}
	}
	return nil
}

func isReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// isRegistered reports whether the driver is registered with a node's kubelet. It is true if the user may not read
// that.
func isRegistered(node *Node, driver string) bool {
	return node == nil || node.Registration == nil || protocol.IsRegistered(node.Registration, driver)
}

// clientPatience is how long a pod may wait for its volumes before there is a finding about it.
const clientPatience = 10 * time.Second

// diagnoseClient returns why a pod that uses the volume does not run, unless the finding about a stage explains it.
func diagnoseClient(f *Facts, pod *corev1.Pod) []Finding {
	if isOver(pod) || pod.DeletionTimestamp != nil || hasBegun(pod) && workflow.Waiting(pod) == "" {
		return nil
	}
	node, name := pod.Spec.NodeName, pod.Name
	see := Step{Text: "see its details", Command: describePod(pod.Namespace, name)}
	if node == "" {
		return []Finding{unscheduled(f, pod, see)}
	}
	if cause := workflow.Waiting(pod); cause != "" {
		return []Finding{{Code: "ClientNotStarted", State: Failing, Summary: fmt.Sprintf("pod %s has the volume, and does not run for another reason", name), Reason: cause, Next: []Step{see}}}
	}
	if stages := f.stagesOn(node); len(stages) > 0 && stages[0].Status.Phase != pavv1.StageStaged {
		return nil // the stage says why
	}
	if found := diagnoseNode(f, node); len(found) > 0 {
		return found
	}
	driver := f.provisionerName()
	if !isRegistered(f.Nodes[node], driver) {
		return []Finding{{Code: "DriverNotRegistered", State: Failing, Summary: fmt.Sprintf("the kubelet of node %s has not registered driver %q", node, driver),
			Next: []Step{{Text: "see the node agent's log", Command: fmt.Sprintf("kubectl -n %[1]s logs $(kubectl -n %[1]s get pods -l app.kubernetes.io/component=node-agent --field-selector spec.nodeName=%[2]s -o name)", f.AgentNamespace, node)},
				{Text: "its --kubelet-dir must be the kubelet's --root-dir", Command: "kubectl -n " + f.AgentNamespace + " get daemonset node-agent -o yaml"}}}}
	}
	if held := heldElsewhere(f, node); held != nil {
		held.Summary = fmt.Sprintf("pod %s waits: %s", name, held.Summary)
		return []Finding{*held}
	}
	return waitsForVolume(f, pod, see)
}

// unscheduled is the finding about a pod that has no node.
func unscheduled(f *Facts, pod *corev1.Pod, see Step) Finding {
	found := Finding{Code: "ClientUnscheduled", State: Working, Summary: fmt.Sprintf("pod %s is about to be scheduled", pod.Name)}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			found.State, found.Summary, found.Reason, found.Next = Failing, fmt.Sprintf("pod %s fits no node", pod.Name), c.Message, []Step{see}
		}
	}
	if f.PV != nil && f.PV.Spec.NodeAffinity != nil {
		found.Next = append(found.Next, Step{Text: "only some nodes can use the volume", Command: fmt.Sprintf("kubectl get pv %s -o jsonpath='{.spec.nodeAffinity}'", f.PV.Name)})
	}
	return found
}

// heldElsewhere returns the finding that another node has the volume, which only one node may have at a time; or nil.
func heldElsewhere(f *Facts, node string) *Finding {
	for i := range f.Stages {
		s := &f.Stages[i]
		holder := s.Spec.NodeName
		if holder == node || !s.Spec.Exclusive || s.Status.Phase == pavv1.StageFailed {
			continue
		}
		found := &Finding{Code: "HeldByNode", State: Failing, Summary: fmt.Sprintf("the volume may be on one node at a time, and is still on node %s", holder)}
		if clients := f.clientsOn(holder); len(clients) > 0 {
			found.Reason = fmt.Sprintf("pod %s uses it there", clients[0].Name)
			found.Next = []Step{{Text: "to move the volume, delete that pod", Command: fmt.Sprintf("kubectl delete pod -n %s %s", clients[0].Namespace, clients[0].Name)},
				{Text: "or use a volume with the access mode ReadWriteMany"}}
		} else {
			found.Reason = fmt.Sprintf("its stage there is %s", s.Status.Phase)
		}
		return found
	}
	return nil
}

// waitsForVolume is the finding about a pod of which only one thing is known: kubelet waits for its volumes.
func waitsForVolume(f *Facts, pod *corev1.Pod, see Step) []Finding {
	var warning *corev1.Event
	for i := range f.Events {
		e := &f.Events[i]
		if e.Type == corev1.EventTypeWarning && e.InvolvedObject.UID == pod.UID && (warning == nil || lastTime(e).After(lastTime(warning))) {
			warning = e
		}
	}
	age := f.Now.Sub(pod.CreationTimestamp.Time)
	found := Finding{Code: "ClientWaits", State: Working, Summary: fmt.Sprintf("pod %s is about to start", pod.Name)}
	if warning == nil && age < clientPatience {
		return []Finding{found}
	}
	found.State, found.Summary, found.Next = Failing, fmt.Sprintf("pod %s has not started on node %s for %s", pod.Name, pod.Spec.NodeName, cli.Duration(age)), []Step{see}
	if warning != nil {
		found.Reason = warning.Reason + ": " + Brief(warning.Message)
	}
	return []Finding{found}
}

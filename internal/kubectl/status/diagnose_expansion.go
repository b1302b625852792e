package status

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/workflow"
)

// whyUnrecorded says why a volume with a PersistentVolume has no PavVolume.
func whyUnrecorded(f *Facts) string {
	switch p := f.Provisioner; {
	case p == nil && !f.hides(hiddenProvisioners):
		return "its PavProvisioner does not exist"
	case p != nil && p.DeletionTimestamp != nil:
		return fmt.Sprintf("PavProvisioner %q is being deleted", p.Name)
	case p != nil && !p.Supports(pavv1.ProvisioningModeStatic):
		return fmt.Sprintf("spec.provisioningModes of PavProvisioner %q has no Static", p.Name)
	}
	return "the events of the PersistentVolume say why"
}

// diagnoseExpansion returns the finding about a claim that asks for more than its volume has, which the text says.
func diagnoseExpansion(f *Facts, text string) Finding {
	unsupported := Finding{Code: "ExpansionUnsupported", State: Failing, Next: []Step{{Text: "create a larger claim, and copy the data"}}}
	switch {
	case f.Volume == nil && f.hides(hiddenVolumes):
		return Finding{Code: "Expanding", State: Working, Summary: text}
	case f.Provisioner != nil && f.Provisioner.Spec.VolumeExpansion == nil:
		unsupported.Summary = fmt.Sprintf("%s: PavProvisioner %q has no spec.volumeExpansion, so that its volumes cannot grow", text, f.Provisioner.Name)
		unsupported.Next = append([]Step{{Text: "add spec.volumeExpansion to the definition", Command: "kubectl edit pavprovisioner " + f.Provisioner.Name}}, unsupported.Next...)
		return unsupported
	case f.Volume == nil:
		unsupported.Summary = text + ": PaV has no record of the volume, so that it cannot be expanded: " + whyUnrecorded(f)
		return unsupported
	}
	status := &f.Volume.Status
	expansion := status.Expansion
	if found := waitsForReaders(f, text+", and is expanded"); found != nil && status.Pod == nil {
		return *found
	}
	switch {
	case expansion == nil:
		return Finding{Code: "Expanding", State: Working, Summary: text + ", and is about to be expanded"}
	case status.Pod != nil && status.Step == pavv1.StepExpanding:
		return afterFailure(f, "ExpansionFailed", fmt.Sprintf("%s: attempt %d to expand it failed", text, expansion.Attempt-1), diagnosePod(f, pavv1.VolumeExpanded), expansion.Failure)
	case expansion.Failure != nil:
		return expansionFailed(f, text)
	case expansion.Offline:
		return expandsOffline(f, text)
	default:
		return Finding{Code: "Expanding", State: Working, Summary: text + ", and is about to be expanded"}
	}
}

// expandsOffline is the finding about a volume that grows when no node has it staged any more.
func expandsOffline(f *Facts, text string) Finding {
	found := Finding{Code: "ExpandsOffline", State: Waiting, Summary: text + ", and is expanded when no node has it staged any more; until then no other pod gets it"}
	if c := meta.FindStatusCondition(f.Volume.Status.Conditions, pavv1.VolumeExpanded); c != nil {
		found.Reason = Brief(c.Message)
	}
	if len(f.Clients) > 0 {
		found.Next = []Step{{Text: "delete the pods that use it, or scale down what makes them", Command: fmt.Sprintf("kubectl delete pod -n %s %s", f.Clients[0].Namespace, f.Clients[0].Name)}}
	}
	return found
}

// diagnoseOnNodes returns the finding about a volume that has grown, which its nodes have not made available yet, or nil.
func diagnoseOnNodes(f *Facts) *Finding {
	state := f.Claim.Status.AllocatedResourceStatuses[corev1.ResourceStorage]
	if state != corev1.PersistentVolumeClaimNodeResizePending && state != corev1.PersistentVolumeClaimNodeResizeInProgress &&
		state != corev1.PersistentVolumeClaimNodeResizeInfeasible || slices.ContainsFunc(f.Stages, func(s pavv1.PavStage) bool { return s.Status.Expansion != nil }) {
		return nil // The finding about the node says more.
	}
	has := f.Claim.Status.Capacity[corev1.ResourceStorage]
	found := Finding{Code: "ExpandsOnNode", State: Working, Summary: fmt.Sprintf("the volume has grown, and pods have %s of it until a node has made the new capacity available", has.String())}
	if !slices.ContainsFunc(f.Stages, func(s pavv1.PavStage) bool { return s.Status.Phase == pavv1.StageStaged }) {
		found.State, found.Summary = Waiting, found.Summary+": the next one that gets the volume for a pod does that"
	}
	return &found
}

// diagnoseNodeExpansion returns the finding about the expansion of a volume on a node, if it is in progress or has failed.
func diagnoseNodeExpansion(f *Facts, s *pavv1.PavStage) []Finding {
	e := s.Status.Expansion
	if e == nil || e.Recorded && e.Failure == nil {
		return nil
	}
	what := fmt.Sprintf("the expansion to %s on node %s", e.Target.String(), s.Spec.NodeName)
	if pod := f.pod(s.Status.ExpansionPod()); pod != nil {
		found := working(f, pod, "node expansion")
		found.Summary += fmt.Sprintf(" on node %s, to %s", s.Spec.NodeName, e.Target.String())
		return []Finding{afterFailure(f, "NodeExpansionFailed", fmt.Sprintf("%s failed, attempt %d", what, e.Attempt-1), found, e.Failure)}
	}
	switch {
	case e.Failure == nil:
		return []Finding{{Code: "NodeExpansion", State: Working, Summary: what + " is about to start"}}
	case e.Failure.Reason == pavv1.FailureInfeasible:
		return []Finding{failed(f, "NodeExpansionFailed", fmt.Sprintf("%s failed, attempt %d, and the pod says that it is infeasible; the next attempt follows within %s, or when the claim or the definition changes",
			what, e.Attempt, workflow.InfeasibleDelay), e.Failure, 0)}
	default:
		return []Finding{failed(f, "NodeExpansionFailed", fmt.Sprintf("%s failed, attempt %d; kubelet tries again, at most two minutes later", what, e.Attempt), e.Failure, 0)}
	}
}

// expansionFailed is the finding about an attempt to expand that has failed.
func expansionFailed(f *Facts, text string) Finding {
	expansion := f.Volume.Status.Expansion
	in, next := nextAttempt(f, expansion.Failure)
	summary := fmt.Sprintf("%s: attempt %d to expand it failed, and the next one follows%s", text, expansion.Attempt, next)
	switch {
	case expansion.Failure.Reason == pavv1.FailureInfeasible:
		summary = fmt.Sprintf("%s: the expansion pod says that this is infeasible; the next attempt follows%s, or when the claim or the definition changes", text, next)
	case expansion.Failure.PodName == "":
		summary = fmt.Sprintf("%s: the volume cannot be expanded; the next attempt follows%s", text, next)
	}
	found := failed(f, "ExpansionFailed", summary, expansion.Failure, in)
	if expansion.Failure.Reason == pavv1.FailureInfeasible {
		found.Next = append([]Step{{Text: "request less, but more than the volume has", Command: fmt.Sprintf("kubectl edit pvc -n %s %s", f.Claim.Namespace, f.Claim.Name)}}, found.Next...)
	}
	return found
}

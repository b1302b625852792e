package status

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

func lastTime(e *corev1.Event) time.Time {
	_, at := times(e)
	return at.Time
}

// stepWords maps each step to its kind of pod.
var stepWords = map[pavv1.VolumeStep]string{
	pavv1.StepValidating: "validation", pavv1.StepCreating: "creation", pavv1.StepReverting: "deletion", pavv1.StepDeleting: "deletion",
	pavv1.StepExpanding: "expansion", pavv1.StepModifying: "modification",
}

// diagnosePending returns the finding about a volume that is being provisioned.
func diagnosePending(f *Facts) Finding {
	status := &f.Volume.Status
	if c := falseCondition(f, pavv1.VolumeProvisioned); c != nil && c.Reason == "Restored" {
		return Finding{Code: c.Reason, State: Failing, Summary: "the record of the volume was restored from a backup", Reason: c.Message}
	}
	waits := waitsForSource(f)
	switch {
	case status.Step == pavv1.StepReverting:
		return diagnoseReverting(f)
	case waits != nil:
		return *waits
	case status.Pod != nil:
		return afterFailure(f, "ProvisioningFailed", fmt.Sprintf("attempt %d to provision the volume failed", status.Attempt-1), diagnosePod(f, pavv1.VolumeProvisioned), status.Failure)
	case status.Failure != nil && status.Handle == "": // else a later attempt has succeeded
		return provisioningFailed(f)
	}
	if c := falseCondition(f, pavv1.VolumeProvisioned); c != nil && (c.Reason == "Conflict" || c.Reason == "Refused") {
		return Finding{Code: "PersistentVolumeRefused", State: Failing, Summary: "the volume was created, but its PersistentVolume cannot be", Reason: c.Message,
			Next: []Step{{Text: "see the object in its place", Command: "kubectl get pv " + f.Volume.Name}}}
	}
	return Finding{Code: "Working", State: Working, Summary: "the volume is being provisioned"}
}

// falseCondition returns a condition of the PavVolume that is false, or nil.
func falseCondition(f *Facts, kind string) *metav1.Condition {
	return findFalse(f.Volume.Status.Conditions, kind)
}

func findFalse(conditions []metav1.Condition, kind string) *metav1.Condition {
	if c := meta.FindStatusCondition(conditions, kind); c != nil && c.Status == metav1.ConditionFalse {
		return c
	}
	return nil
}

// provisioningFailed is the finding about a failed attempt: why it failed, and when the next one begins.
func provisioningFailed(f *Facts) Finding {
	status := &f.Volume.Status
	in, text := nextAttempt(f, status.Failure)
	next := fmt.Sprintf("attempt %d follows%s", status.Attempt+1, text)
	validation, podless, cause := status.Failure.Workflow == pavv1.WorkflowValidation, status.Failure.PodName == "", causeOf(status.Failure)
	switch {
	case cause == pavv1.FailureHandleInUse:
		if status.Failure.NextAttemptTime == nil {
			next = "no attempt follows while that object exists"
		}
		return failed(f, "CreationFailed", "another object uses the storage with the volume's handle; "+next, status.Failure, in)
	case cause == pavv1.FailureInfeasible:
		return failed(f, "CreationFailed", fmt.Sprintf("the pod says that this is infeasible; %s, or when the claim or the definition changes", next), status.Failure, in)
	case validation && podless && remedies[cause] != nil:
		return failed(f, "ValidationFailed", fmt.Sprintf("the validation pod cannot be created; %s", next), status.Failure, in)
	case validation && podless:
		return failed(f, "ValidationFailed", fmt.Sprintf("the claim is refused; %s", next), status.Failure, in)
	case validation && cause == pavv1.FailurePodRemoved:
		return failed(f, "ValidationFailed", fmt.Sprintf("validation attempt %d failed; %s", status.Attempt, next), status.Failure, in)
	case validation:
		found := failed(f, "ValidationFailed", fmt.Sprintf("validation refuses the claim; %s", next), status.Failure, in)
		found.Next = append([]Step{{Text: "create a claim that the provisioner supports"}}, found.Next...)
		return found
	case podless:
		return failed(f, "CreationRefused", fmt.Sprintf("the creation pod cannot be created; %s", next), status.Failure, in)
	default:
		return failed(f, "CreationFailed", fmt.Sprintf("creation attempt %d failed; %s", status.Attempt, next), status.Failure, in)
	}
}

// diagnoseReverting returns the finding about a creation that is being reverted, because it failed or the claim was
// deleted.
func diagnoseReverting(f *Facts) Finding {
	status := &f.Volume.Status
	if f.Provisioner == nil && !f.hides(hiddenProvisioners) {
		return noProvisioner(f)
	}
	if failure := status.DeletionFailure; failure != nil && (status.Pod == nil || f.pod(status.Pod) == nil) {
		in, next := nextAttempt(f, failure)
		return failed(f, "RevertFailed", fmt.Sprintf("creation failed, and cannot be reverted: deletion attempt %d failed, and the next one follows%s",
			status.DeletionAttempt, next), failure, in)
	}
	if status.Failure == nil {
		return diagnosePod(f, pavv1.VolumeDeleted)
	}
	found := failed(f, "CreationFailed", fmt.Sprintf("creation attempt %d failed, and is being reverted before the next one", status.Attempt), status.Failure, 0)
	if pod := f.pod(status.Pod); pod != nil {
		if stuck := obstructed(pod, "deletion"); stuck != nil {
			stuck.Summary = "creation failed, and cannot be reverted: " + stuck.Summary
			return *stuck
		}
	}
	return found
}

// The controller agent's reasons for a pod that is not needed any more and still runs, and for one that has ended and whose
// result is not there.
const (
	reasonPodStopping  = "PodStopping"
	reasonPodReporting = "PodReporting"
)

// diagnosePod returns the finding about the pod of the volume's current step.
func diagnosePod(f *Facts, condition string) Finding {
	status := &f.Volume.Status
	return diagnoseStep(f, stepWords[status.Step], status.Pod, falseCondition(f, condition))
}

// diagnoseStep returns the finding about the recorded pod of a step, of which a condition may say what it waits for.
func diagnoseStep(f *Facts, what string, ref *pavv1.PodReference, c *metav1.Condition) Finding {
	if what == "" || ref == nil {
		return Finding{Code: "Working", State: Working, Summary: "PaV is about to take the next step"}
	}
	if pod := f.pod(ref); pod != nil {
		found := working(f, pod, what)
		if (found.State == Working || found.State == Slow) && c != nil && (c.Reason == reasonPodStopping || c.Reason == reasonPodReporting) {
			found.Code, found.State, found.Reason = c.Reason, Failing, c.Message
		}
		return found
	}
	return unseenPod(f, ref, c, what)
}

// unseenPod returns the finding about a recorded pod that does not exist yet, or that the user may not read.
func unseenPod(f *Facts, ref *pavv1.PodReference, c *metav1.Condition, what string) Finding {
	switch {
	case f.hides(hiddenPods):
		found := Finding{Code: "Working", State: Working, Summary: fmt.Sprintf("the %s pod runs or is about to run", what)}
		if c == nil {
			return found
		}
		switch c.Reason {
		case pavv1.ReasonPodNotStarted:
			found.Code, found.State, found.Summary, found.Reason = c.Reason, Failing, fmt.Sprintf("the %s pod cannot start", what), c.Message
		case pavv1.ReasonPodRunsLong:
			found.Code, found.State, found.Reason = c.Reason, Slow, c.Message
		case reasonPodStopping, reasonPodReporting:
			found.Code, found.State, found.Reason = c.Reason, Failing, c.Message
		}
		return found
	case ref.UID == "" && c != nil && c.Reason == "Queued":
		return Finding{Code: "Queued", State: Waiting, Summary: fmt.Sprintf("the %s pod waits for a slot: as many pods run as may at once", what),
			Next: []Step{{Text: "see which run", Command: fmt.Sprintf("kubectl get pods -A -l %s,%s!=stage,%s!=grow,%s!=unstage", pavv1.WorkflowLabel, pavv1.WorkflowLabel, pavv1.WorkflowLabel, pavv1.WorkflowLabel)},
				{Text: "--max-pods and --max-pods-per-provisioner of the controller agent are the limits"}}}
	}
	return Finding{Code: "Working", State: Working, Summary: fmt.Sprintf("the %s pod is about to be created", what)}
}

// diagnoseDeletion returns the finding about a volume's deletion, or why it is not deleted.
func diagnoseDeletion(f *Facts) []Finding {
	v := f.Volume
	if v == nil {
		return []Finding{released(f)}
	}
	status := &v.Status
	switch {
	case status.Phase == pavv1.VolumeRetained:
		return []Finding{retained(f)}
	case status.Step == pavv1.StepReverting:
		return []Finding{diagnoseReverting(f)}
	case f.Provisioner == nil && !f.hides(hiddenProvisioners) && status.Step != pavv1.StepDeleted:
		found := noProvisioner(f)
		found.Summary += ", which defines how to delete the volume"
		return []Finding{found}
	}
	return []Finding{deletionGoes(f)}
}

// deletionGoes is the finding about a deletion that makes progress.
func deletionGoes(f *Facts) Finding {
	status := &f.Volume.Status
	c := falseCondition(f, pavv1.VolumeDeleted)
	if found := deletionWaits(f, c); found != nil && status.Pod == nil && status.DeletionFailure == nil {
		return *found
	}
	switch {
	case status.Pod != nil && (f.pod(status.Pod) != nil || status.DeletionFailure == nil):
		return afterFailure(f, "DeletionFailed", fmt.Sprintf("deletion attempt %d failed", status.DeletionAttempt-1), diagnosePod(f, pavv1.VolumeDeleted), status.DeletionFailure)
	case status.DeletionFailure != nil:
		in, next := nextAttempt(f, status.DeletionFailure)
		return failed(f, "DeletionFailed", fmt.Sprintf("deletion attempt %d failed; the next one follows%s", status.DeletionAttempt, next), status.DeletionFailure, in)
	case c != nil && c.Reason == "StillStaged":
		return stillStaged(f, c)
	case c != nil && c.Reason == "SnapshotsExist":
		return Finding{Code: c.Reason, State: Waiting, Summary: "the volume is deleted after its snapshots, which cannot exist without it", Reason: c.Message,
			Next: []Step{{Text: "see them; delete those that are not needed", Command: "kubectl pav get snapshots " + f.provisionerName()}}}
	case c != nil && c.Reason == "Restored":
		return Finding{Code: c.Reason, State: Failing, Summary: "the volume is to be deleted, but its record was restored from a backup", Reason: c.Message}
	case c != nil && c.Reason == "Lost":
		return Finding{Code: c.Reason, State: Failing, Summary: "the PersistentVolume was removed by force while its claim was bound to it", Reason: c.Message}
	case c != nil && c.Reason == "InUse":
		return Finding{Code: c.Reason, State: Waiting, Summary: "the volume is to be deleted, but is in use", Reason: c.Message}
	}
	return Finding{Code: "Deleting", State: Working, Summary: "the volume is being deleted"}
}

// deletionWaits returns the finding about a deletion that waits for those who read the storage, or nil.
func deletionWaits(f *Facts, c *metav1.Condition) *Finding {
	if c != nil && c.Reason == reasonNeededAsSource {
		found := waitsForCopies(f, f.Volume.Spec.Provisioner, pavv1.SourceVolume(f.Volume.Status.Handle), "the storage of the volume", c)
		return &found
	}
	return waitsForReaders(f, "the volume is deleted")
}

func stillStaged(f *Facts, c *metav1.Condition) Finding {
	found := Finding{Code: "StillStaged", State: Waiting, Summary: "deletion waits until the volume is unstaged on all nodes", Reason: c.Message}
	for i := range f.Stages {
		s := &f.Stages[i]
		node := s.Spec.NodeName
		if clients := f.clientsOn(node); len(clients) > 0 {
			found.Next = append(found.Next, Step{Text: "delete the pod that uses it on node " + node, Command: fmt.Sprintf("kubectl delete pod -n %s %s", clients[0].Namespace, clients[0].Name)})
		}
		if notReady(f.Nodes[node]) != nil {
			found.Next = append(found.Next, Step{Text: "if the node is permanently lost, delete it", Command: "kubectl delete node " + node})
		}
	}
	return found
}

// released is the finding about a PersistentVolume that no claim uses any more, and for which PaV has no record.
func released(f *Facts) Finding {
	pv := f.PV
	found := Finding{Code: "Released", State: Waiting, Summary: "the claim of the PersistentVolume is gone, and the administrator decides what happens to the volume",
		Next: []Step{{Text: "to make it available to another claim", Command: fmt.Sprintf(`kubectl patch pv %s --type=merge -p '{"spec":{"claimRef":null}}'`, pv.Name)}}}
	if pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete && !f.hides(hiddenVolumes) {
		found.Code, found.State = "NoRecord", Failing
		found.Summary = "PaV has no record of the volume and cannot delete it: delete the storage by hand, then the PersistentVolume"
		found.Next = []Step{{Text: "when the storage is deleted", Command: "kubectl delete pv " + pv.Name}}
	}
	return found
}

func retained(f *Facts) Finding {
	name := f.Volume.Name
	found := Finding{Code: "Retained", State: Waiting, Summary: "the claim is gone, and the volume is retained, as its reclaim policy says: the administrator decides what happens to its storage"}
	if f.PV != nil {
		found.Next = []Step{{Text: "to delete it", Command: fmt.Sprintf(`kubectl patch pv %s --type=merge -p '{"spec":{"persistentVolumeReclaimPolicy":"Delete"}}'`, name)}}
		return found
	}
	found.Next = []Step{{Text: "to delete it", Command: fmt.Sprintf(`kubectl patch pavvol %s --type=merge -p '{"spec":{"reclaimPolicy":"Delete"}}'`, name)},
		{Text: "then", Command: "kubectl delete pavvol " + name}}
	return found
}

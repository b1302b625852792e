package status

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/protocol"
)

// diagnoseAttributes returns the finding about a claim that names a VolumeAttributesClass whose attributes its volume does not have, or
// nil.
func diagnoseAttributes(f *Facts) *Finding {
	if f.Claim == nil || f.Claim.Status.Phase != corev1.ClaimBound || f.Claim.DeletionTimestamp != nil {
		return nil
	}
	wanted := protocol.AttributesClass(f.Claim)
	modifies := f.Volume != nil && f.Volume.Status.Modification != nil && f.Volume.Status.Modification.IsOf(f.Claim.UID)
	if !modifies && (wanted == "" || wanted == protocol.CurrentAttributesClass(f.Claim)) {
		return nil
	}
	text := fmt.Sprintf("the claim asks for the attributes of VolumeAttributesClass %q", wanted)
	if wanted == "" {
		text = "the claim asks for no attributes any more"
	}
	if modifies && f.Volume.Status.Modification.Target.Class != wanted {
		text += fmt.Sprintf(", after those of %q", f.Volume.Status.Modification.Target.Class)
	}
	found := diagnoseModification(f, text)
	return &found
}

// diagnoseModification returns the finding about a volume that is to have other attributes, which the text says.
func diagnoseModification(f *Facts, text string) Finding {
	found := Finding{Code: "Modifying", State: Working, Summary: text + ", and its volume is about to be modified"}
	if f.Volume == nil {
		switch p := f.Provisioner; {
		case f.hides(hiddenVolumes):
		case p != nil && p.Spec.VolumeModification == nil:
			found = Finding{Code: "ModificationUnsupported", State: Failing, Summary: fmt.Sprintf("%s: PavProvisioner %q has no spec.volumeModification, so that its volumes cannot be modified", text, p.Name)}
			found.Next = []Step{{Text: "add spec.volumeModification to the definition", Command: "kubectl edit pavprovisioner " + p.Name}, nameAnother(f)}
		default:
			found = Finding{Code: "ModificationUnsupported", State: Failing, Summary: text + ": PaV has no record of the volume, so that it cannot be modified: " + whyUnrecorded(f)}
		}
		return found
	}
	status := &f.Volume.Status
	m := status.Modification
	c := meta.FindStatusCondition(status.Conditions, pavv1.VolumeModified)
	if waits := waitsForReaders(f, text+", and its volume is modified"); waits != nil && status.Pod == nil {
		return *waits
	}
	switch {
	case m != nil && status.Pod != nil && status.Step == pavv1.StepModifying:
		return afterFailure(f, "ModificationFailed", fmt.Sprintf("%s: attempt %d to modify its volume failed", text, m.Attempt-1), diagnosePod(f, pavv1.VolumeModified), m.Failure)
	case c != nil && (c.Reason == "NoClass" || c.Reason == "Unsupported" || c.Reason == "NoProvisioner"):
		blocked := Finding{Code: "Modification" + c.Reason, State: Failing, Summary: text + ", which its volume cannot have", Reason: c.Message}
		if c.Reason != "NoProvisioner" {
			blocked.Next = []Step{nameAnother(f)}
		}
		return blocked
	case m != nil && m.Failure != nil:
		return modificationFailed(f, text)
	default:
		return found
	}
}

func nameAnother(f *Facts) Step {
	return Step{Text: "name another class in spec.volumeAttributesClassName", Command: fmt.Sprintf("kubectl edit pvc -n %s %s", f.Claim.Namespace, f.Claim.Name)}
}

// modificationFailed is the finding about an attempt to modify that has failed.
func modificationFailed(f *Facts, text string) Finding {
	m := f.Volume.Status.Modification
	in, next := nextAttempt(f, m.Failure)
	summary := fmt.Sprintf("%s: attempt %d to modify its volume failed, and the next one follows%s", text, m.Attempt, next)
	if m.Failure.Reason == pavv1.FailureInfeasible {
		summary = fmt.Sprintf("%s: the modification pod says that this is infeasible; the next attempt follows%s, or when the claim or the definition changes", text, next)
	}
	found := failed(f, "ModificationFailed", summary, m.Failure, in)
	if m.Failure.Reason == pavv1.FailureInfeasible {
		found.Next = append([]Step{nameAnother(f)}, found.Next...)
	}
	return found
}

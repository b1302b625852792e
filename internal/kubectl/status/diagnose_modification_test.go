package status

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// wantsClass lets the claim name a VolumeAttributesClass, and show another one.
func wantsClass(name string) func(*Facts) {
	return func(f *Facts) {
		f.Claim.Spec.VolumeAttributesClassName, f.Claim.Status.CurrentVolumeAttributesClassName = &name, new("silver")
	}
}

// modifies records an attempt to modify the volume to gold, which may have failed for a reason.
func modifies(reason pavv1.FailureReason) func(*Facts) {
	return func(f *Facts) {
		m := &pavv1.VolumeModificationRecord{Target: pavv1.VolumeAttributes{Class: "gold"}}
		m.Attempt = 1
		if reason != "" {
			m.Failure = &pavv1.WorkflowFailure{Workflow: pavv1.WorkflowModification, Reason: reason, PodNamespace: "pav-pods", PodName: "modify-1", Message: "m"}
		}
		f.Volume.Status.Modification = m
	}
}

func modifiesNow(f *Facts) {
	modifies("")(f)
	f.Volume.Status.Step, f.Volume.Status.Pod = pavv1.StepModifying, &pavv1.PodReference{Namespace: "pav-pods", Name: "modify-1"}
}

// says gives the volume the condition that says why no pod modifies it.
func says(reason string) func(*Facts) {
	return func(f *Facts) {
		f.Volume.Status.Conditions = append(f.Volume.Status.Conditions, metav1.Condition{Type: pavv1.VolumeModified, Status: metav1.ConditionFalse, Reason: reason, Message: "why"})
	}
}

func unrecorded(f *Facts) { f.Volume = nil }

func TestDiagnose_OnAttributes(t *testing.T) {
	for name, test := range map[string]struct {
		facts   *world
		code    string
		state   State
		summary string
		next    string
	}{
		"the claim has what it names": {bound().with(wantsClass("silver")), "Healthy", Healthy, "", ""},
		"nothing has begun":           {bound().with(wantsClass("gold")), "Modifying", Working, `VolumeAttributesClass "gold", and its volume is about to be modified`, ""},
		"a volume that PaV has not made": {bound().with(wantsClass("gold")).with(unrecorded).with(func(f *Facts) {
			f.Provisioner.Spec.VolumeModification = &pavv1.VolumeModification{}
		}), "ModificationUnsupported", Failing, "PaV has no record of the volume, so that it cannot be modified", ""},
		"and nothing modifies its kind":   {bound().with(wantsClass("gold")).with(unrecorded), "ModificationUnsupported", Failing, "has no spec.volumeModification", "kubectl edit pavprovisioner"},
		"the class does not exist":        {bound().with(wantsClass("gold")).with(says("NoClass")), "ModificationNoClass", Failing, "which its volume cannot have", "kubectl edit pvc -n apps data"},
		"the provisioner does not exist":  {bound().with(wantsClass("gold")).with(says("NoProvisioner")), "ModificationNoProvisioner", Failing, "which its volume cannot have", ""},
		"a pod is about to be created":    {bound().with(wantsClass("gold")).with(modifiesNow), "Working", Working, "the modification pod is about to be created", ""},
		"it failed":                       {bound().with(wantsClass("gold")).with(modifies(pavv1.FailurePodFailed)), "ModificationFailed", Failing, "attempt 1 to modify its volume failed, and the next one follows", ""},
		"it is infeasible":                {bound().with(wantsClass("gold")).with(modifies(pavv1.FailureInfeasible)), "Infeasible", Failing, "says that this is infeasible", "kubectl edit pvc -n apps data"},
		"it failed, and another is named": {bound().with(wantsClass("bronze")).with(modifies(pavv1.FailurePodFailed)), "ModificationFailed", Failing, `VolumeAttributesClass "bronze", after those of "gold"`, ""},
		"it failed, and none is named":    {bound().with(wantsClass("")).with(modifies(pavv1.FailurePodFailed)), "ModificationFailed", Failing, `no attributes any more, after those of "gold"`, ""},
		"it failed for a former claim": {bound().with(wantsClass("")).with(modifies("")).with(func(f *Facts) {
			f.Volume.Status.Modification.Partial, f.Volume.Status.Modification.ClaimUID = true, "former"
		}), "Healthy", Healthy, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			found := Build(test.facts.f).Findings[0]
			next := ""
			if len(found.Next) > 0 {
				next = found.Next[0].Command
			}
			if found.Code != test.code || found.State != test.state || !strings.Contains(found.Summary, test.summary) || !strings.Contains(next, test.next) {
				t.Errorf("got %s, %s: %q, next %q", found.Code, found.State, found.Summary, next)
			}
		})
	}
}

// Tenants, who may not read PavProvisioners, are not told that there is none.
func TestWhyUnrecorded_WithoutAProvisioner(t *testing.T) {
	if got, want := whyUnrecorded(&Facts{}), "its PavProvisioner does not exist"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := whyUnrecorded(&Facts{Hidden: []string{hiddenProvisioners}}), "the events of the PersistentVolume say why"; got != want {
		t.Errorf("for a tenant: got %q, want %q", got, want)
	}
}

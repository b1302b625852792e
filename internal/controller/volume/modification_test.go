package volume

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// What a pod may have changed is recorded, and stays recorded until one has succeeded.
func TestFailModification_RecordsWhatMayHaveChanged(t *testing.T) {
	infeasible := func(f *pavv1.WorkflowFailure) { f.Reason = pavv1.FailureInfeasible }
	for name, test := range map[string]struct {
		state              *state
		failure            func(*pavv1.WorkflowFailure)
		uncertain, partial bool
	}{
		"the pod failed":                        {state: beingModified().pod(9, ended(corev1.PodFailed, 1), reported), partial: true},
		"the pod is gone":                       {state: beingModified().with(vanishedPod), uncertain: true, partial: true},
		"the pod says that it is infeasible":    {state: beingModified().pod(9, ended(corev1.PodFailed, 1), reported), failure: infeasible},
		"so does one after another that failed": {state: beingModified().with(partial).pod(9, ended(corev1.PodFailed, 1), reported), failure: infeasible, partial: true},
	} {
		t.Run(name, func(t *testing.T) {
			o := test.state.o
			r := expander(t, &o)
			failure := o.attempt().Failure(pavv1.WorkflowModification)
			if test.failure != nil {
				test.failure(failure)
			}
			if err := r.failChange(t.Context(), o, failure, nothing); err != nil {
				t.Fatal(err)
			}
			m := o.volume.Status.Modification
			if m == nil || m.Uncertain != test.uncertain || m.Partial != test.partial || o.volume.Status.Pod != nil || o.volume.Status.Step != "" {
				t.Errorf("got %+v; pod %v in the step %q", m, o.volume.Status.Pod, o.volume.Status.Step)
			}
			if err := r.modified(t.Context(), o, nothing); err != nil {
				t.Fatal(err)
			}
			if status := &o.volume.Status; status.Modification != nil || status.Attributes == nil || status.Attributes.Class != "gold" {
				t.Errorf("after a success: %+v, %+v", status.Modification, status.Attributes)
			}
		})
	}
}

// After a restore, the PersistentVolume says more of the attributes than the record.
func TestMarkReady_KeepsTheClassOfThePersistentVolume(t *testing.T) {
	for name, test := range map[string]struct {
		record string
		want   string
	}{
		"a record that was restored": {record: "another", want: "gold"},
		"the present record":         {record: "", want: "silver"},
	} {
		t.Run(name, func(t *testing.T) {
			o := modifiable("silver").with(func(o *observation) {
				o.pv.Spec.VolumeAttributesClassName = new("gold")
				o.volume.Status.Phase = pavv1.VolumeRetained
				if test.record != "" {
					o.volume.Status.RecordUID = "another"
				}
			}).o
			r := expander(t, &o)
			if err := r.markReady(t.Context(), o, decision{Step: stepMarkReady}); err != nil {
				t.Fatal(err)
			}
			if got := o.volume.Status.Attributes.Class; got != test.want {
				t.Errorf("it has the attributes of %q, want %q", got, test.want)
			}
		})
	}
}

// What a modification may have done to storage that stays matters to the next claim; what it was to do does not.
func TestModification_OutlivesItsClaim(t *testing.T) {
	kept := func(m *pavv1.VolumeModificationRecord) bool {
		return m != nil && m.Partial && m.Failure == nil && m.Target.Class == "gold"
	}
	retained := func(o *observation) { releasedPV(o); retains(o); o.volume.Status.Modification.ClaimUID = "u1" }
	for name, test := range map[string]struct {
		state *state
		act   func(*Reconciler, context.Context, observation, decision) error
		want  bool
	}{
		"the volume is retained":            {state: failedToModify("gold", pavv1.FailurePodFailed, 1).with(retained), act: (*Reconciler).retain, want: true},
		"the same, and nothing has changed": {state: failedToModify("gold", pavv1.FailureInfeasible, 1).with(retained), act: (*Reconciler).retain},
		"a later claim names no class":      {state: failedToModify("gold", pavv1.FailurePodFailed, 1).with(unnamed).with(ofFormerClaim), act: endChange(pavv1.WorkflowModification), want: true},
		"the claim names what was before":   {state: failedToModify("silver", pavv1.FailureInfeasible, 1), act: endChange(pavv1.WorkflowModification)},
	} {
		t.Run(name, func(t *testing.T) {
			o := test.state.o
			setCondition(o.volume, &o.volume.Status, pavv1.VolumeModified, "ModificationFailed", "why")
			r := expander(t, &o)
			if err := test.act(r, t.Context(), o, decide(o)); err != nil {
				t.Fatal(err)
			}
			status := &o.volume.Status
			if m := status.Modification; kept(m) != test.want || !test.want && m != nil || meta.FindStatusCondition(status.Conditions, pavv1.VolumeModified) != nil {
				t.Errorf("it is recorded: %+v, conditions %+v", m, status.Conditions)
			}
		})
	}
}

// The first attempt for a claim has nothing of those for a former one but that the volume may have changed.
func TestModifying_RecordsWhoAsked(t *testing.T) {
	for name, test := range map[string]struct {
		of                 types.UID
		attempt            int32
		uncertain, partial bool
	}{
		"the same claim":  {of: "u1", attempt: 2, uncertain: true, partial: true},
		"an older record": {attempt: 2, uncertain: true, partial: true},
		"a former claim":  {of: "u0", attempt: 1, partial: true},
	} {
		t.Run(name, func(t *testing.T) {
			o := failedToModify("gold", pavv1.FailurePodRemoved, 1).o
			o.volume.Status.Modification.ClaimUID = test.of
			modifying(o, pavv1.VolumeAttributes{Class: "gold"})(&o.volume.Status)
			m := o.volume.Status.Modification
			if m.ClaimUID != "u1" || m.Attempt != test.attempt || m.Uncertain != test.uncertain || m.Partial != test.partial || (m.Failure == nil) != (test.attempt == 1) {
				t.Errorf("recorded: %+v", m)
			}
		})
	}
}

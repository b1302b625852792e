package volume

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

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

package stage

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/observability/metrics"
	"github.com/albertofaria/pav/internal/workflow"
)

// measure counts the outcomes of pods and the failures that a write of the status has recorded. The write happens
// once, so each is counted once. The end of the last unstaging pod is counted where the PavStage is deleted.
func (t *task) measure(before *pavv1.PavStageStatus) {
	after := &t.stage.Status
	switch {
	case isNew(before.StagingFailure, after.StagingFailure):
		t.countFailure(after.StagingFailure)
		if before.Restaging {
			t.calls.Restaged(t.stage.Spec.Provisioner, false)
		}
	case isNew(before.UnstagingFailure, after.UnstagingFailure):
		t.countFailure(after.UnstagingFailure)
	case isNew(expansionFailure(before), expansionFailure(after)):
		t.countFailure(expansionFailure(after))
	case before.ExpansionPod() != nil && after.ExpansionPod() == nil:
		t.countSuccess(pavv1.WorkflowNodeExpansion, before.ExpansionPod(), t.expansionPod)
	case !before.Validated && after.Validated:
		t.countSuccess(pavv1.WorkflowValidation, before.ValidationPod, t.validationPod)
	case before.Phase == pavv1.StageStaging && after.Phase == pavv1.StageStaged:
		t.workflows.Succeeded(t.counted(pavv1.WorkflowStaging, before.StagingPod, t.stagingPod))
		if before.Restaging {
			t.calls.Restaged(t.stage.Spec.Provisioner, true)
		}
	case before.Phase == pavv1.StageUnstaging && after.Phase != pavv1.StageUnstaging:
		t.countSuccess(pavv1.WorkflowUnstaging, before.UnstagingPod, t.unstagingPod)
	}
}

// expansionFailure returns why the last expansion on the node failed, or nil.
func expansionFailure(status *pavv1.PavStageStatus) *pavv1.WorkflowFailure {
	if status.Expansion == nil {
		return nil
	}
	return status.Expansion.Failure
}

// isNew reports whether a failure was not recorded before.
func isNew(before, after *pavv1.WorkflowFailure) bool {
	return after != nil && !equality.Semantic.DeepEqual(before, after)
}

// countFailure counts a failure, with the pod that it names.
func (t *task) countFailure(failure *pavv1.WorkflowFailure) {
	p := t.counted(failure.Workflow, nil, nil)
	for _, pod := range t.pods() {
		if pod != nil && failure.PodName == pod.Name && failure.PodNamespace == pod.Namespace {
			p.Pod = pod
		}
	}
	t.workflows.Failed(p, failure)
}

// countSuccess counts a pod if it succeeded.
func (t *task) countSuccess(kind string, ref *pavv1.PodReference, pod *corev1.Pod) {
	if ref != nil && workflow.Observe(pod) == workflow.Succeeded {
		t.workflows.Succeeded(t.counted(kind, ref, pod))
	}
}

func (t *task) counted(kind string, ref *pavv1.PodReference, pod *corev1.Pod) metrics.Pod {
	return metrics.Pod{Provisioner: t.stage.Spec.Provisioner, Workflow: kind, Ref: ref, Pod: pod}
}

package monitor

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/workflow"
)

func TestNeeds_IncludesPodsWithoutARecordedOutcome(t *testing.T) {
	ref := func(name string) *pavv1.PodReference { return &pavv1.PodReference{Namespace: "pav-pods", Name: name} }
	status := &pavv1.PavStageStatus{ValidationPod: ref("validate-1"), StagingPod: ref("stage-2"), UnstagingPod: ref("unstage-3")}
	tests := map[string]struct {
		pod       string
		validated bool
		want      bool
	}{
		"the staging pod":                    {pod: "stage-2", want: true},
		"one of an earlier attempt":          {pod: "stage-1", want: false},
		"the unstaging pod":                  {pod: "unstage-3", want: true},
		"the validation pod":                 {pod: "validate-1", want: true},
		"one that has found the volume good": {pod: "validate-1", validated: true, want: false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			status.Validated = test.validated
			if got := needs(status, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "pav-pods", Name: test.pod}}); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}

// The last event of a pod with the finalizer may come while its stage still needs the pod. So the pod is also checked
// when its stage changes.
func TestOutcomes_PodIsCheckedAgainAfterItsStageHasChanged(t *testing.T) {
	n := newNode(t)
	n.PutStage(t, func(*pavv1.PavStage) {})
	stage := n.API.Stages["stage-a"]
	o := &outcomes{client: n.API, runner: n.runner, cache: n.API}
	pod := n.API.Pods["stage-1"]
	pod.Labels = map[string]string{pavv1.StageLabel: stage.Name, pavv1.WorkflowLabel: pavv1.WorkflowStaging}
	pod.OwnerReferences = []metav1.OwnerReference{{Name: stage.Name, UID: stage.UID, Controller: new(true)}}
	pod.Finalizers, pod.Status.Phase = []string{pavv1.PodFinalizer}, corev1.PodFailed
	if got := o.heldOf(t.Context(), stage); len(got) != 0 {
		t.Errorf("a pod that is not deleted is looked at: %v", got)
	}
	pod.DeletionTimestamp = &metav1.Time{}
	other := stage.DeepCopy()
	other.Name = "other"
	if got := o.heldOf(t.Context(), other); len(got) != 0 {
		t.Errorf("the pod of another stage is looked at: %v", got)
	}

	for _, needed := range []bool{true, false} {
		if !needed {
			stage.Status.StagingPod = nil
		}
		requests := o.heldOf(t.Context(), stage)
		if len(requests) != 1 {
			t.Fatalf("looks at %v", requests)
		}
		_, err := o.Reconcile(t.Context(), requests[0])
		must(t, err)
		if held := len(n.API.Pods["stage-1"].Finalizers) > 0; held != needed {
			t.Errorf("held: %t, needed: %t", held, needed)
		}
	}
}

func TestOutcomes_OfAPodWithoutAnOwnerIsNeeded_WhileItsStageKnowsIt(t *testing.T) {
	n := newNode(t)
	n.PutStage(t, func(*pavv1.PavStage) {})
	stage := n.API.Stages["stage-a"]
	pod := n.API.Pods["stage-1"].DeepCopy()
	pod.Labels[pavv1.StageLabel] = stage.Name
	pod.OwnerReferences, pod.Annotations = nil, map[string]string{pavv1.AttemptAnnotation: "1", pavv1.NodeAnnotation: "node"}
	pod.Name = workflow.Name(pavv1.WorkflowStaging, string(stage.UID), "1")
	stage.Status.StagingPod.Name = pod.Name
	recorded := func() bool {
		is, err := (&outcomes{client: n.API, runner: n.runner}).recorded(t.Context(), pod)
		must(t, err)
		return is
	}
	if recorded() {
		t.Error("the pod may go before its outcome is recorded")
	}
	stage.Status.StagingPod = nil
	if !recorded() {
		t.Error("the pod is kept, and nobody needs it")
	}
}

package stage

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/workflow"
)

func TestForget_KeepsTheRecordOfAFailure_UntilItsVolumeGoes_ButNoneOfAClient(t *testing.T) {
	v := Volume{Driver: "driver", Handle: "handle"}
	failure := &pavv1.WorkflowFailure{Message: "no"}
	tests := map[string]struct {
		failure *pavv1.WorkflowFailure
		client  *pavv1.StageClient
		kept    bool
	}{
		"unstaged":                     {},
		"unstaged for a client":        {client: &pavv1.StageClient{Target: "/target"}},
		"staging failed":               {failure: failure, kept: true},
		"staging failed, for a client": {failure: failure, client: &pavv1.StageClient{Target: "/target"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			n.withVolumes(v, "pv")
			of := subject{Volume: v}
			if test.client != nil {
				of.target = test.client.Target
			}
			stage := n.ledger(t, v, n.stager.namesOf(of)[0])
			stage.Spec.Client, stage.Status.StagingFailure = test.client, test.failure
			task := n.stager.newTask(of, "")
			task.stage = stage.DeepCopy()
			if err := task.forget(t.Context()); errors.Is(err, ErrFailed) != (test.failure != nil) || err != nil && test.failure == nil {
				t.Errorf("got %v", err)
			}
			left := n.api.stages[stage.Name]
			if (left != nil) != test.kept {
				t.Fatalf("got %v", left)
			}
			if !test.kept {
				return
			}
			want := []metav1.OwnerReference{{APIVersion: "v1", Kind: "PersistentVolume", Name: "pv", UID: "pv"}}
			if diff := cmp.Diff(want, left.OwnerReferences); diff != "" || len(left.Finalizers) > 0 || left.DeletionTimestamp != nil {
				t.Errorf("got %v with the owners (-want +got):\n%s", left.ObjectMeta, diff)
			}
		})
	}
}

// A deletion of the volume in the foreground would have the garbage collector delete the pods of its stages.
func TestMetaOf_ALiveStageHasNoOwner(t *testing.T) {
	n := newNode(t)
	v := Volume{Driver: "driver", Handle: "handle"}
	meta := n.stager.newTask(subject{Volume: v}, "").metaOf(persistentVolume(v, "pv", "pv"))
	if len(meta.OwnerReferences) > 0 || !slices.Contains(meta.Finalizers, pavv1.StageFinalizer) {
		t.Errorf("got %+v", meta)
	}
}

func TestHolder(t *testing.T) {
	v := Volume{Driver: "driver", Handle: "handle"}
	now := metav1.Now()
	tests := map[string]struct {
		change func(*pavv1.PavStage)
		want   error
	}{
		"it is staged":                        {change: func(*pavv1.PavStage) {}},
		"somebody deletes it, and it is held": {change: func(s *pavv1.PavStage) { s.DeletionTimestamp = &now }},
		"it is on its way out":                {change: func(s *pavv1.PavStage) { s.DeletionTimestamp, s.Finalizers = &now, nil }, want: ErrNotStaged},
		"it is being unstaged":                {change: func(s *pavv1.PavStage) { s.Status.Phase = pavv1.StageUnstaging }, want: ErrBusy},
		"it is for all of the node":           {change: func(s *pavv1.PavStage) { s.Spec.Scope = pavv1.StagingScopeNode }, want: ErrMismatch},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			shared, _ := n.stager.names(v)
			stage := n.ledger(t, v, shared)
			stage.Spec.Scope = pavv1.StagingScopePod
			test.change(stage)
			if _, err := n.stager.newTask(subject{Volume: v, target: "/target"}, "").holder(t.Context()); !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
		})
	}
}

// Pods that the garbage collector has taken the owner from do not go with the PavStage.
func TestForget_DeletesPodsWithoutAnOwner(t *testing.T) {
	v := Volume{Driver: "driver", Handle: "handle"}
	for name, owners := range map[string][]metav1.OwnerReference{"none": nil, "the PavStage": {{UID: "stage-uid", Controller: new(true)}}} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			n.withVolumes(v)
			shared, _ := n.stager.names(v)
			task := n.stager.newTask(subject{Volume: v}, "")
			task.stage = n.ledger(t, v, shared).DeepCopy()
			pod := n.api.pods["stage-1"]
			pod.OwnerReferences, pod.Status.Phase = owners, corev1.PodSucceeded
			task.stagingPod = pod.DeepCopy()
			must(t, task.forget(t.Context()))
			if _, left := n.api.pods["stage-1"]; left != (owners != nil) {
				t.Errorf("the pod is left: %t", left)
			}
		})
	}
}

func TestOutcomes_OfAPodWithoutAnOwnerIsNeeded_WhileItsStageKnowsIt(t *testing.T) {
	v := Volume{Driver: "driver", Handle: "handle"}
	n := newNode(t)
	n.withVolumes(v)
	shared, _ := n.stager.names(v)
	stage := n.ledger(t, v, shared)
	pod := n.api.pods["stage-1"].DeepCopy()
	pod.OwnerReferences, pod.Annotations = nil, map[string]string{pavv1.AttemptAnnotation: "1", pavv1.NodeAnnotation: "node"}
	pod.Name = workflow.Name(pavv1.WorkflowStaging, string(stage.UID), "1")
	stage.Status.StagingPod.Name = pod.Name
	recorded := func() bool {
		is, err := (&outcomes{stager: n.stager}).recorded(t.Context(), pod)
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

// The last event of a pod that is held may come while its stage still needs it, so that the stage's next one counts.
func TestOutcomes_PodIsLookedAtAgainWhenItsStageHasGoneOn(t *testing.T) {
	v := Volume{Driver: "driver", Handle: "handle"}
	n := newNode(t)
	n.withVolumes(v)
	shared, _ := n.stager.names(v)
	stage := n.ledger(t, v, shared)
	o := &outcomes{stager: n.stager, cache: n.api}
	pod := n.api.pods["stage-1"]
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
		if held := len(n.api.pods["stage-1"].Finalizers) > 0; held != needed {
			t.Errorf("held: %t, needed: %t", held, needed)
		}
	}
}

package stage

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

func TestForget_KeepsFailureRecordsUntilTheVolumeIsDeleted_ButNotThoseOfClients(t *testing.T) {
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
			of := Subject{Volume: v}
			if test.client != nil {
				of.Target = test.client.Target
			}
			stage := n.ledger(t, v, n.stager.namesOf(of)[0])
			stage.Spec.Client, stage.Status.StagingFailure = test.client, test.failure
			task := n.stager.newTask(of, "")
			task.stage = stage.DeepCopy()
			if err := task.forget(t.Context()); errors.Is(err, ErrFailed) != (test.failure != nil) || err != nil && test.failure == nil {
				t.Errorf("got %v", err)
			}
			left := n.API.Stages[stage.Name]
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

// If a stage had the volume as its owner, a foreground deletion of the volume would make the garbage collector delete
// the pods of the stage.
func TestMetaOf_ALiveStageHasNoOwner(t *testing.T) {
	n := newNode(t)
	v := Volume{Driver: "driver", Handle: "handle"}
	meta := n.stager.newTask(Subject{Volume: v}, "").metaOf(persistentVolume(v, "pv", "pv"))
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
		"it is staged":                       {change: func(*pavv1.PavStage) {}},
		"someone deletes it, and it is held": {change: func(s *pavv1.PavStage) { s.DeletionTimestamp = &now }},
		"it is on its way out":               {change: func(s *pavv1.PavStage) { s.DeletionTimestamp, s.Finalizers = &now, nil }, want: ErrNotStaged},
		"it is being unstaged":               {change: func(s *pavv1.PavStage) { s.Status.Phase = pavv1.StageUnstaging }, want: ErrBusy},
		"it is for all of the node":          {change: func(s *pavv1.PavStage) { s.Spec.Scope = pavv1.StagingScopeNode }, want: ErrMismatch},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			shared, _ := n.stager.names(v)
			stage := n.ledger(t, v, shared)
			stage.Spec.Scope = pavv1.StagingScopePod
			test.change(stage)
			if _, err := n.stager.newTask(Subject{Volume: v, Target: "/target"}, "").holder(t.Context()); !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
		})
	}
}

// If the garbage collector has removed the owner of a pod, the pod is not deleted with the PavStage.
func TestForget_DeletesPodsWithoutAnOwner(t *testing.T) {
	v := Volume{Driver: "driver", Handle: "handle"}
	for name, owners := range map[string][]metav1.OwnerReference{"none": nil, "the PavStage": {{UID: "stage-uid", Controller: new(true)}}} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			n.withVolumes(v)
			shared, _ := n.stager.names(v)
			task := n.stager.newTask(Subject{Volume: v}, "")
			task.stage = n.ledger(t, v, shared).DeepCopy()
			pod := n.API.Pods["stage-1"]
			pod.OwnerReferences, pod.Status.Phase = owners, corev1.PodSucceeded
			task.stagingPod = pod.DeepCopy()
			must(t, task.forget(t.Context()))
			if _, left := n.API.Pods["stage-1"]; left != (owners != nil) {
				t.Errorf("the pod is left: %t", left)
			}
		})
	}
}

// A record that another controller's finalizer keeps must not hide the stage: the volume would not be unstaged.
func TestStageOf_PrefersTheOneThatIsNotBeingDeleted(t *testing.T) {
	for name, test := range map[string]struct {
		terminating, standing func(shared, exclusive string) string
	}{
		"the first name":  {func(shared, _ string) string { return shared }, func(_, exclusive string) string { return exclusive }},
		"the second name": {func(_, exclusive string) string { return exclusive }, func(shared, _ string) string { return shared }},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			v := Volume{Driver: "driver", Handle: "handle"}
			going := n.ledger(t, v, test.terminating(n.stager.names(v)))
			going.DeletionTimestamp, going.Finalizers = &metav1.Time{Time: time.Now()}, []string{"example.org/other"}
			got, err := n.stager.stageOf(t.Context(), Subject{Volume: v})
			if must(t, err); got == nil || got.Name != going.Name {
				t.Errorf("alone: got %v, want %s", got, going.Name)
			}
			want := n.ledger(t, v, test.standing(n.stager.names(v)))
			got, err = n.stager.stageOf(t.Context(), Subject{Volume: v})
			if must(t, err); got == nil || got.Name != want.Name {
				t.Errorf("got %v, want %s", got, want.Name)
			}
		})
	}
}

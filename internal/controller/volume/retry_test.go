package volume

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

func TestDecide_RetryRequested(t *testing.T) {
	failed := &pavv1.WorkflowFailure{Workflow: pavv1.WorkflowDeletion, Time: metav1.NewTime(noon.Add(-10 * time.Second))}
	deleting := func(o *observation) {
		withDeletionPod(o)
		o.volume.Status.Step, o.volume.Status.DeletionAttempt, o.volume.Status.DeletionFailure = pavv1.StepDeleting, 9, failed
		o.volume.Status.ProvisionerGeneration = o.provisioner.Generation
	}
	pending := func(o *observation) { o.volume.Status.Attempt, o.volume.Status.Failure = 9, failed }
	asked := func(ago time.Duration) func(*observation) {
		return func(o *observation) { o.retry = noon.Add(-ago) }
	}
	tests := map[string]struct {
		state *state
		want  step
	}{
		"a deletion waits":                             {state: without(pavv1.VolumeDeleting, deletePolicy).with(deleting), want: stepDone},
		"but not when it is asked for":                 {state: without(pavv1.VolumeDeleting, deletePolicy).with(deleting).with(asked(time.Second)), want: stepDelete},
		"unless an attempt has failed since":           {state: without(pavv1.VolumeDeleting, deletePolicy).with(deleting).with(asked(11 * time.Second)), want: stepDone},
		"also a revert":                                {state: fresh().with(deleting).with(func(o *observation) { o.volume.Status.Step, o.volume.Status.Handle = pavv1.StepReverting, "h" }).with(asked(time.Second)), want: stepDelete},
		"a deletion waits for a stage all the same":    {state: without(pavv1.VolumeDeleting, deletePolicy).with(deleting).with(asked(0)).with(func(o *observation) { o.others = stagedOn("node") }), want: stepWait},
		"an attempt to provision waits":                {state: fresh().with(pending), want: stepDone},
		"but not when it is asked for either":          {state: fresh().with(pending).with(asked(time.Second)), want: stepBegin},
		"nothing is retried that has not failed":       {state: recorded().with(asked(0)), want: stepWritePV},
		"a volume that was made is not made once more": {state: in(pavv1.VolumeReady, "Bound", deletePolicy).with(asked(0)), want: stepDone},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := decideIn(test.state.o); got.Step != test.want {
				t.Errorf("got %s after %s, want %s", got.Step, got.After, test.want)
			}
		})
	}
}

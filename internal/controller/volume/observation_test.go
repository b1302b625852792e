package volume

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

func TestClaimState(t *testing.T) {
	now := metav1.Now()
	claim := func(change func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
		c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{UID: "u1"}}
		change(c)
		return c
	}
	tests := map[string]struct {
		claim *corev1.PersistentVolumeClaim
		want  claimState
	}{
		"no claim":             {want: claimGone},
		"another of the name":  {claim: claim(func(c *corev1.PersistentVolumeClaim) { c.UID = "u2" }), want: claimGone},
		"one under deletion":   {claim: claim(func(c *corev1.PersistentVolumeClaim) { c.DeletionTimestamp = &now }), want: claimGone},
		"one bound elsewhere":  {claim: claim(func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "pv-x" }), want: claimElsewhere},
		"one bound to this":    {claim: claim(func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "pvc-u1" }), want: claimBound},
		"one that lost this":   {claim: claim(func(c *corev1.PersistentVolumeClaim) { c.Status.Phase = corev1.ClaimLost }), want: claimBound},
		"one that still waits": {claim: claim(func(*corev1.PersistentVolumeClaim) {}), want: claimWaits},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := stateOf(test.claim, fresh().o.volume); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestDecide_ReportedErrorText(t *testing.T) {
	for step, failure := range map[pavv1.VolumeStep]func(*pavv1.PavVolumeStatus) **pavv1.WorkflowFailure{
		pavv1.StepValidating: func(status *pavv1.PavVolumeStatus) **pavv1.WorkflowFailure { return &status.Failure },
		pavv1.StepCreating:   func(status *pavv1.PavVolumeStatus) **pavv1.WorkflowFailure { return &status.Failure },
		pavv1.StepReverting:  func(status *pavv1.PavVolumeStatus) **pavv1.WorkflowFailure { return &status.DeletionFailure },
	} {
		t.Run(string(step), func(t *testing.T) {
			s := at(step).pod(9, ended(corev1.PodFailed, 6))
			status := &s.o.volume.Status
			*failure(status) = s.o.attempt().Failure(workflows[step])
			status.Pod = nil
			if got := decideIn(s.o).Step; got == stepRecordLateMessage {
				t.Error("a text is recorded before the node reports one")
			}
			s.o.pods[0].Annotations = map[string]string{pavv1.ResultAnnotation: `{"error": "no room"}`}
			if got := decideIn(s.o).Step; got != stepRecordLateMessage {
				t.Errorf("after the node has reported a text, got step %s", got)
			}
			*failure(status) = s.o.lateFailure()
			if got := decideIn(s.o).Step; got == stepRecordLateMessage {
				t.Error("the text is recorded twice")
			}
		})
	}
}

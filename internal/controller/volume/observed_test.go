package volume

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

func TestHolds(t *testing.T) {
	tests := map[string]struct {
		stage pavv1.PavStage
		want  bool
	}{
		"a new stage holds":                   {stage: pavv1.PavStage{}, want: true},
		"a staged volume holds":               {stage: pavv1.PavStage{Status: pavv1.PavStageStatus{Phase: pavv1.StageStaged}}, want: true},
		"the record of a failed one does not": {stage: pavv1.PavStage{Status: pavv1.PavStageStatus{Phase: pavv1.StageFailed}}, want: false},
		"unless it is still being reverted":   {stage: pavv1.PavStage{ObjectMeta: metav1.ObjectMeta{Finalizers: []string{pavv1.StageFinalizer}}, Status: pavv1.PavStageStatus{Phase: pavv1.StageFailed}}, want: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := holds(&test.stage); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}

func TestStateOf(t *testing.T) {
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

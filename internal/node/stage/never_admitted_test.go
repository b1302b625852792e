package stage

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// There is nothing to unstage only if the staging pod certainly was never created.
func TestNeverAdmitted(t *testing.T) {
	tests := map[string]struct {
		change func(*task)
		want   bool
	}{
		"it was recorded, and nothing more": {func(*task) {}, true},
		"it would not have been judged":     {func(t *task) { t.stage.Status.StagingPod.Judged = false }, false},
		"it is there":                       {func(t *task) { t.stagingPod = &corev1.Pod{} }, false},
		"it was admitted":                   {func(t *task) { t.stage.Annotations = map[string]string{pavv1.AdmittedAnnotation: "{}"} }, false},
		"there is none":                     {func(t *task) { t.stage.Status.StagingPod = nil }, false},
		"it was seen, and is gone": {func(t *task) {
			t.stagingPod = &corev1.Pod{}
			t.noteSeen(&t.stage.Status)
			t.stagingPod = nil
		}, false},
		"none was seen": {func(t *task) { t.noteSeen(&t.stage.Status) }, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			task := &task{stage: &pavv1.PavStage{Status: pavv1.PavStageStatus{StagingPod: &pavv1.PodReference{Judged: true}}}}
			test.change(task)
			if got := task.neverAdmitted(); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}

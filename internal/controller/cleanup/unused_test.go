package cleanup

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

func TestHasBegun(t *testing.T) {
	pod := &pavv1.PodReference{Name: "stage-1"}
	tests := map[string]struct {
		status pavv1.PavStageStatus
		want   bool
	}{
		"nothing was done":                             {pavv1.PavStageStatus{}, false},
		"its status says that staging begins":          {pavv1.PavStageStatus{Phase: pavv1.StageStaging}, false},
		"it is being validated":                        {pavv1.PavStageStatus{Phase: pavv1.StageValidating, ValidationPod: pod}, false},
		"a staging pod is recorded":                    {pavv1.PavStageStatus{Phase: pavv1.StageStaging, StagingPod: pod}, true},
		"it says that it is staged":                    {pavv1.PavStageStatus{Phase: pavv1.StageStaged}, true},
		"it is being unstaged":                         {pavv1.PavStageStatus{Phase: pavv1.StageUnstaging}, true},
		"it is the record of a failure":                {pavv1.PavStageStatus{Phase: pavv1.StageFailed}, true},
		"the volume is staged again under its clients": {pavv1.PavStageStatus{Phase: pavv1.StageStaging, Restaging: true}, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := hasBegun(&pavv1.PavStage{Status: test.status}); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}

func TestUsedBy(t *testing.T) {
	claim := func(name string) corev1.VolumeSource {
		return corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}
	}
	tests := map[string]struct {
		namespace string
		phase     corev1.PodPhase
		source    corev1.VolumeSource
		want      bool
	}{
		"a pod that waits for its volumes":    {"ns", corev1.PodPending, claim("data"), true},
		"a pod that runs":                     {"ns", corev1.PodRunning, claim("data"), true},
		"a pod whose node does not answer":    {"ns", corev1.PodUnknown, claim("data"), true},
		"a pod that has completed":            {"ns", corev1.PodSucceeded, claim("data"), false},
		"a pod that has failed":               {"ns", corev1.PodFailed, claim("data"), false},
		"a pod of another namespace":          {"other", corev1.PodRunning, claim("data"), false},
		"a pod with another claim":            {"ns", corev1.PodRunning, claim("logs"), false},
		"the claim that is bound by now":      {"ns", corev1.PodRunning, claim("handed-over"), true},
		"a claim that the pod's template has": {"ns", corev1.PodRunning, corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			pods := []corev1.Pod{{
				ObjectMeta: metav1.ObjectMeta{Namespace: test.namespace, Name: "pod"},
				Spec:       corev1.PodSpec{Volumes: []corev1.Volume{{Name: "scratch", VolumeSource: test.source}}},
				Status:     corev1.PodStatus{Phase: test.phase},
			}}
			claims := []types.NamespacedName{{Namespace: "ns", Name: "data"}, {Namespace: "ns", Name: "handed-over"}, {Namespace: "ns", Name: "pod-scratch"}}
			if got := usedBy(pods, claims); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}

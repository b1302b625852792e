package workflow

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

func TestProblems_ReturnsAllMistakes(t *testing.T) {
	template := &corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Finalizers: []string{"a/b"}, Labels: map[string]string{pavv1.StageLabel: "x"}},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyAlways,
			Volumes:       []corev1.Volume{{Name: PavVolume}},
		},
	}
	var got []string
	for _, problem := range Problems("f", template, pavv1.WorkflowDeletion) {
		got = append(got, problem.Field)
	}
	want := []string{"f.spec.containers", "f.metadata.finalizers", "f.metadata.labels[" + pavv1.StageLabel + "]", "f.spec.restartPolicy", "f.spec.volumes[0].name"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the problems (-want +got):\n%s", diff)
	}
}

func TestCheckHandle(t *testing.T) {
	for text, words := range map[string]string{
		"": "is empty", strings.Repeat("x", MaxHandle+1): "129 bytes", "\xff": "UTF-8", "a\nb": "control characters",
		strings.Repeat("x", MaxHandle): "", "a b/ü": "",
	} {
		err := CheckHandle(text)
		if words == "" && err != nil || words != "" && (err == nil || !strings.Contains(err.Error(), words)) {
			t.Errorf("%q: got %v, want %q", text, err, words)
		}
	}
}

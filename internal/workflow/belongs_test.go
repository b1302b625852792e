package workflow

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

func TestGet_ReturnsOnlyPodsThatBelongToTheOwner(t *testing.T) {
	const owner = "the-uid"
	tests := map[string]struct {
		change  func(*corev1.Pod)
		foreign bool
	}{
		"controlled by the owner":           {change: func(*corev1.Pod) {}},
		"controlled by another":             {change: func(p *corev1.Pod) { p.OwnerReferences[0].UID = "other" }, foreign: true},
		"of another node's agent":           {change: func(p *corev1.Pod) { p.Annotations[pavv1.NodeAnnotation] = "other" }, foreign: true},
		"of no node":                        {change: func(p *corev1.Pod) { delete(p.Annotations, pavv1.NodeAnnotation) }, foreign: true},
		"without PaV's label":               {change: func(p *corev1.Pod) { delete(p.Labels, pavv1.WorkflowLabel) }, foreign: true},
		"orphaned by the garbage collector": {change: func(p *corev1.Pod) { p.OwnerReferences = nil }},
		"orphaned, of another owner": {change: func(p *corev1.Pod) {
			p.OwnerReferences, p.Name = nil, Name(pavv1.WorkflowStaging, "other", "1")
		}, foreign: true},
		"orphaned, of another attempt":    {change: func(p *corev1.Pod) { p.OwnerReferences, p.Annotations = nil, nil }, foreign: true},
		"orphaned, without PaV's label":   {change: func(p *corev1.Pod) { p.OwnerReferences, p.Labels = nil, nil }, foreign: true},
		"orphaned, but not of a PavStage": {change: func(p *corev1.Pod) { p.OwnerReferences = nil; delete(p.Labels, pavv1.StageLabel) }, foreign: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			pod := mustBuild(t, least, placed())
			pod.OwnerReferences[0].UID = owner
			pod.Name = Name(pavv1.WorkflowStaging, owner, "1")
			pod.Labels = map[string]string{pavv1.WorkflowLabel: pavv1.WorkflowStaging, pavv1.StageLabel: "the-stage"}
			pod.Annotations = map[string]string{pavv1.AttemptAnnotation: "1"}
			pod.Annotations[pavv1.NodeAnnotation] = "the-node"
			test.change(pod)
			runner := newRunner(t, pod)
			runner.Node = "the-node"
			got, err := runner.Get(t.Context(), &pavv1.PodReference{Namespace: pod.Namespace, Name: pod.Name}, owner)
			if err != nil || (got == nil) != test.foreign {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
}

package e2e

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// A validation pod of a PavStage is the node agent's, although others of that workflow are the controller agent's.
func TestValidationPodOfAStage_IsHeldByTheAgentOfItsNodeOnly(t *testing.T) {
	s := setScene(t)
	node1, node2, controller := withToken(t, "node-agent", agentOn(t, "node1")), withToken(t, "node-agent", agentOn(t, "node2")), withToken(t, "controller-agent", nil)
	pod := newPod(s.pods["node1"], func(pod *corev1.Pod) {
		pod.Name = "validate-forged"
		pod.Labels[pavv1.WorkflowLabel] = pavv1.WorkflowValidation
	})
	must(t, node1.Create(t.Context(), pod))
	t.Cleanup(func() {
		ctx, cancel := cleanupContext(t)
		defer cancel()
		free := []byte(`{"metadata": {"finalizers": null}}`)
		if err := client.IgnoreNotFound(kube.Patch(ctx, pod, client.RawPatch(types.MergePatchType, free))); err != nil {
			t.Error(err)
		}
		remove(t, pod)
	})
	result := `{"metadata": {"annotations": {"` + pavv1.ResultAnnotation + `": "{}"}}}`
	ofVolume := `{"metadata": {"labels": {"` + pavv1.StageLabel + `": null}}}`
	try(t, node1, []attempt{
		{"its agent changes its finalizers", patching(pod, freePod), ""},
		{"its agent deletes it", deleting(pod), ""},
		{"its agent writes a result", patching(pod, result), finalizers},
		{"its agent makes it a PavVolume's", patching(pod, ofVolume), ownPods},
		{"its agent changes its owner", patching(pod, adopt), finalizers},
		{"its agent changes its image", imaging(pod), finalizers},
	})
	try(t, node2, []attempt{
		{"another agent changes its finalizers", patching(pod, freePod), ownPods},
		{"another agent deletes it", deleting(pod), ownPods},
		{"another agent writes a result", patching(pod, result), ownPods},
	})
	try(t, controller, []attempt{
		{"the controller agent lets it go", patching(pod, freePod), ""},
		{"the controller agent deletes it", deleting(pod), theirPods},
		{"the controller agent writes a result", patching(pod, result), finalizers},
		{"the controller agent makes one", creating(newPod(pod, func(*corev1.Pod) {})), theirPods},
	})
}

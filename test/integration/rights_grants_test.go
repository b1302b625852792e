package integration

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/workflow"
)

// accessPod returns a pod of an access that the controller agent makes.
func accessPod(kind string, annotations map[string]string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: workflow.DefaultNamespace, Name: workflow.Name(kind, "access"), Labels: map[string]string{pavv1.WorkflowLabel: kind}, Annotations: annotations,
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: pavv1.GroupVersion.String(), Kind: "PavBucketAccess", Name: "a-access", UID: "u", Controller: new(true), BlockOwnerDeletion: new(true),
			}},
		},
		Spec: corev1.PodSpec{NodeName: fakeNode, Containers: []corev1.Container{{Name: "main", Image: "none"}}},
	}
}

// The key with which credentials are sealed is the controller agent's, from the pod's creation to its end. The agent of the pod's node
// writes once what the pod left.
func TestKeyOfAGrantPod_IsTheControllerAgentsOnly(t *testing.T) {
	c := start(t)
	const finalizersOnly, onceOnly, never = "finalizers of a pod only", "only write of a pod of the controller agent, once", "only the controller agent may create pods with the annotation"
	key := map[string]string{pavv1.SealAnnotation: "key"}
	thief := stolenController(t, c)
	pod := accessPod(pavv1.WorkflowGrant, key)
	if err := thief.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { removeNow(t, c, pod) })
	stage := mustCreate(t, c, &pavv1.PavStage{ObjectMeta: metav1.ObjectMeta{Name: "policed-seal"}, Spec: stageSpec(fakeNode)})
	t.Cleanup(func() { mustDeleteLasting(t, c, stage) })
	sealed := stagingPodOf(stage)
	sealed.Annotations[pavv1.SealAnnotation] = "key"
	annotate := func(key string) string { return `{"metadata": {"annotations": {"` + key + `": "other"}}}` }

	attempts := []attempt{{"it writes another key", patching(pod, annotate(pavv1.SealAnnotation)), finalizersOnly}}
	for _, kind := range pavv1.WorkflowsOfController() {
		another := accessPod(kind, nil)
		another.Name = workflow.Name(kind, "another")
		attempts = append(attempts, attempt{"it creates a pod of the workflow " + kind, creating(another), ""})
	}
	try(t, thief, attempts)
	try(t, nodeAgent(t, c, fakeNode), []attempt{
		{"it writes the result", patching(pod, annotate(pavv1.ResultAnnotation)), ""},
		{"it writes another key", patching(pod, annotate(pavv1.SealAnnotation)), onceOnly},
		{"it writes another annotation", patching(pod, annotate("a")), onceOnly},
		{"it creates a staging pod", creating(stagingPodOf(stage)), ""},
		{"it creates a staging pod with a key", creating(sealed), never},
		{"it creates a grant pod", creating(accessPod(pavv1.WorkflowGrant, nil)), "of its own node only"},
	})
	try(t, nodeAgent(t, c, "another"), []attempt{{"another node's agent writes the result", patching(pod, annotate(pavv1.ResultAnnotation)), "of its own node only"}})
	ordinary := ordinaryPod(workflow.DefaultNamespace, "policed-seal")
	ordinary.Annotations = key
	try(t, c.Admin, []attempt{
		{"an administrator writes another key", patching(pod, annotate(pavv1.SealAnnotation)), "are PaV's"},
		{"an administrator creates a pod with a key", creating(ordinary), "are PaV's"},
	})
	const result = `{"metadata": {"annotations": {"` + pavv1.ResultAnnotation + `": "{}"}}}`
	agent := nodeAgent(t, c, fakeNode)
	if err := patching(pod, result)(t.Context(), agent); err != nil {
		t.Fatal(err)
	}
	try(t, agent, []attempt{{"it writes another result", patching(pod, annotate(pavv1.ResultAnnotation)), onceOnly}})
}

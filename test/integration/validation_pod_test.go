package integration

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/workflow"
)

// validationPodOf returns the validation pod of a stage.
func validationPodOf(stage *pavv1.PavStage) *corev1.Pod {
	pod := stagingPodOf(stage)
	pod.Name = "validation-" + pod.Name
	pod.Labels[pavv1.WorkflowLabel] = pavv1.WorkflowValidation
	return pod
}

// A node agent makes and holds validation pods of its PavStages, and none that the controller agent
// could take for one of its own.
func TestValidationPodsOfStagesAreTheNodeAgents(t *testing.T) {
	c := start(t)
	node := mustCreate(t, c, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "validating"}})
	t.Cleanup(func() { _ = c.Admin.Delete(lasting(t), node) })
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "validated"}, Spec: corev1.PersistentVolumeSpec{
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "validating"}},
	}}
	agent, another := nodeAgent(t, c, node.Name), nodeAgent(t, c, "another")
	stage := stageOf(pv, "stage-validating", node.Name)
	stage.Finalizers = nil
	if err := agent.Create(t.Context(), stage); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Admin.Delete(lasting(t), stage) })
	denied := func(what, words string, err error) {
		t.Helper()
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: got error %v, want it denied: %s", what, err, words)
		}
	}

	for what, spoil := range map[string]func(*corev1.Pod){
		"of a PavVolume":      func(p *corev1.Pod) { p.OwnerReferences[0].Kind = "PavVolume" },
		"of another PavStage": func(p *corev1.Pod) { p.OwnerReferences[0].Name = "other" },
		"of nobody":           func(p *corev1.Pod) { p.OwnerReferences = nil },
		"of two": func(p *corev1.Pod) {
			second := p.OwnerReferences[0]
			second.Kind, second.Controller = "PavVolume", nil
			p.OwnerReferences = append(p.OwnerReferences, second)
		},
	} {
		pod := validationPodOf(stage)
		spoil(pod)
		denied(what, "pods of PavStages only", client.NewDryRunClient(agent).Create(t.Context(), pod))
	}
	unlabelled := validationPodOf(stage)
	delete(unlabelled.Labels, pavv1.StageLabel)
	denied("without the stage's label", "of its own node only", client.NewDryRunClient(agent).Create(t.Context(), unlabelled))
	denied("by another agent", "of its own node only", client.NewDryRunClient(another).Create(t.Context(), validationPodOf(stage)))

	pod := validationPodOf(stage)
	if err := agent.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	patch := func(as client.Client, text string) error {
		return client.NewDryRunClient(as).Patch(t.Context(), pod.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(text)))
	}
	const free = `{"metadata": {"finalizers": null}}`
	result := `{"metadata": {"annotations": {"` + pavv1.ResultAnnotation + `": "{}"}}}`
	denied("a result", "the finalizers of", patch(agent, result))
	denied("another agent's finalizers", "of its own node only", patch(another, free))
	denied("another agent's pod", "of its own node only", client.NewDryRunClient(another).Delete(t.Context(), pod))
	if err := agent.Patch(t.Context(), pod, client.RawPatch(types.MergePatchType, []byte(free))); err != nil {
		t.Error(err)
	}
	if err := agent.Delete(t.Context(), pod, client.GracePeriodSeconds(0)); err != nil {
		t.Error(err)
	}
	gone(t, c, pod)
}

// The quota that lets critical pods run where a cluster asks for one limits nothing.
func TestCriticalPodsAreWithinTheQuota(t *testing.T) {
	c := start(t)
	for _, namespace := range []string{namespace, workflow.DefaultNamespace} {
		quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "critical-pods"}}
		exists(t, c, quota, "is in force", func(q *corev1.ResourceQuota) bool {
			hard := q.Status.Hard[corev1.ResourcePods]
			return hard.Value() == 1_000_000_000
		})
		for _, class := range []string{"system-node-critical", "system-cluster-critical"} {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "critical-"}, Spec: corev1.PodSpec{
				Containers: []corev1.Container{{Name: "main", Image: "none"}}, PriorityClassName: class,
			}}
			if err := client.NewDryRunClient(c.Admin).Create(t.Context(), pod); err != nil {
				t.Error(err)
			}
		}
	}
}

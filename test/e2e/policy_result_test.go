package e2e

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// onlyTheResult are words of the refusal of all else that a node agent may want to change of a pod of the controller agent.
const onlyTheResult = "only write of a pod of the controller agent, once"

// controllersPod creates a pod of a workflow of the controller agent's, and waits until it is on its node.
func controllersPod(t *testing.T, namespace, workflow, node string, annotations map[string]string) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: workflow + "-on-" + node,
			Labels:      map[string]string{pavv1.WorkflowLabel: workflow},
			Annotations: annotations,
			Finalizers:  []string{pavv1.PodFinalizer}, // So that nobody takes it away before the test has ended.
		},
		Spec: corev1.PodSpec{
			NodeSelector:                  map[string]string{corev1.LabelHostname: node},
			TerminationGracePeriodSeconds: new(int64(0)),
			Containers:                    []corev1.Container{{Name: "main", Image: "busybox:1.37.0", Command: []string{"sleep", "infinity"}}},
		},
	}
	agent := withToken(t, "controller-agent", nil)
	eventually(t, "the pod is created", func(ctx context.Context) error { return agent.Create(ctx, pod) })
	t.Cleanup(func() {
		ctx, cancel := cleanupContext(t)
		defer cancel()
		free := []byte(`{"metadata": {"finalizers": null}}`)
		if err := client.IgnoreNotFound(kube.Patch(ctx, pod, client.RawPatch(types.MergePatchType, free))); err != nil {
			t.Error(err)
		}
		remove(t, pod)
	})
	eventually(t, "pod "+pod.Name+" is on its node", func(ctx context.Context) error {
		if err := kube.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil {
			return err
		}
		if pod.Spec.NodeName == "" {
			return fmt.Errorf("it is on no node")
		}
		return nil
	})
	return pod
}

func TestNodeAgentToken_WritesTheResultOfPodsOnItsNode_Once(t *testing.T) {
	namespace := beside(t)
	_, err := kubectl(t.Context(), "", "label", "namespace", namespace, pavv1.AllowPodsLabel+"=true")
	must(t, err)
	own := controllersPod(t, namespace, pavv1.WorkflowCreation, "node1", map[string]string{pavv1.AttemptAnnotation: "1"})
	bare := controllersPod(t, namespace, pavv1.WorkflowValidation, "node1", nil)
	deletion := controllersPod(t, namespace, pavv1.WorkflowDeletion, "node1", nil)
	reported := controllersPod(t, namespace, pavv1.WorkflowDeletion, "node2", map[string]string{pavv1.AttemptAnnotation: "1"})
	other := controllersPod(t, namespace, pavv1.WorkflowCreation, "node2", nil)

	annotations := func(text string) string { return `{"metadata": {"annotations": ` + text + `}}` }
	result := annotations(`{"` + pavv1.ResultAnnotation + `": "{}"}`)
	besides := func(more string) string {
		return fmt.Sprintf(`{"metadata": {"annotations": {%q: "{}"}, %s}}`, pavv1.ResultAnnotation, more)
	}
	ofUID := func(uid string) string { return besides(fmt.Sprintf(`"uid": %q`, uid)) }
	node1, node2 := withToken(t, "node-agent", agentOn(t, "node1")), withToken(t, "node-agent", agentOn(t, "node2"))
	must(t, patching(reported, result)(t.Context(), node2))

	attempts := []attempt{
		{"of a creation pod", patching(own, result), ""},
		{"of that very pod", patching(own, ofUID(string(own.UID))), ""},
		{"of a pod without annotations", patching(bare, result), ""},
		{"of a deletion pod", patching(deletion, result), ""},
		{"not yet, but that it has got /pav", patching(own, annotations(`{"`+pavv1.GivenAnnotation+`": "true"}`)), ""},
		{"and that it has got /pav", patching(own, annotations(`{"`+pavv1.ResultAnnotation+`": "{}", "`+pavv1.GivenAnnotation+`": "true"}`)), onlyTheResult},
		{"of a pod on another node", patching(other, result), ownPods},
		{"and another annotation", patching(own, annotations(`{"`+pavv1.ResultAnnotation+`": "{}", "a": "b"}`)), onlyTheResult},
		{"and another value of an annotation", patching(own, annotations(`{"`+pavv1.ResultAnnotation+`": "{}", "`+pavv1.AttemptAnnotation+`": "2"}`)), onlyTheResult},
		{"in the place of an annotation", patching(own, annotations(`{"`+pavv1.ResultAnnotation+`": "{}", "`+pavv1.AttemptAnnotation+`": null}`)), onlyTheResult},
		{"and a label", patching(own, besides(`"labels": {"a": "b"}`)), finalizers},
		{"and another workflow", patching(own, besides(`"labels": {"`+pavv1.WorkflowLabel+`": "stage"}`)), ownPods},
		{"and a finalizer", patching(own, besides(`"finalizers": ["`+pavv1.PodFinalizer+`", "example.org/other"]`)), onlyTheResult},
		{"and no finalizer", patching(own, besides(`"finalizers": null`)), onlyTheResult},
		{"and an owner", patching(own, besides(`"ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "node1", "uid": "x"}]`)), finalizers},
		{"in no result at all: an annotation", patching(own, annotate), onlyTheResult},
		{"in no result at all: the finalizers", patching(own, freePod), onlyTheResult},
		{"in no result at all: the image", imaging(own), finalizers},
		{"in no result at all: the existence", deleting(own), ownPods},
	}
	try(t, node1, attempts)
	t.Run("of a pod of another UID", func(t *testing.T) {
		if err := patching(own, ofUID("other"))(t.Context(), client.NewDryRunClient(node1)); !apierrors.IsConflict(err) && !apierrors.IsInvalid(err) {
			t.Errorf("it is not refused: got error %v", err)
		}
	})
	t.Run("what is reported stays", func(t *testing.T) {
		try(t, node2, []attempt{
			{"with another value", patching(reported, annotations(`{"`+pavv1.ResultAnnotation+`": "{\"handle\": \"forged\"}"}`)), onlyTheResult},
			{"with the same value and an annotation", patching(reported, annotations(`{"`+pavv1.ResultAnnotation+`": "{}", "a": "b"}`)), onlyTheResult},
			{"without it", patching(reported, annotations(`{"`+pavv1.ResultAnnotation+`": null}`)), onlyTheResult},
			{"without any annotation", patching(reported, annotations("null")), onlyTheResult},
		})
	})
	t.Run("no pod of that kind is created", func(t *testing.T) {
		forged := newPod(own, func(pod *corev1.Pod) {
			pod.Annotations = map[string]string{pavv1.NodeAnnotation: "node1"}
			bound(pod, term("node1"))
		})
		try(t, node1, []attempt{{"a creation pod", creating(forged), ownPods}})
	})
	t.Run("without a node in the token, nothing is reported", func(t *testing.T) {
		try(t, withToken(t, "node-agent", nil), []attempt{{"of a creation pod", patching(own, result), ownPods}})
	})
	t.Run("nobody else tells anything", func(t *testing.T) {
		try(t, withToken(t, "controller-agent", nil), []attempt{{"the controller agent", patching(own, result), finalizers}})
		try(t, kube, []attempt{{"an administrator", patching(own, result), keysArePaVs}})
	})
}

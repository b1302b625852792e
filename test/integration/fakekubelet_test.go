package integration

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/workflow"
)

// fakeNode is the node on which the tests themselves play scheduler, kubelet and node agent.
const fakeNode = "by-hand"

// end takes a pod to its end: it is bound to a node, leaves a result in /pav, and ends with an exit code.
func end(t *testing.T, c *cluster, pod *corev1.Pod, result workflow.Result, exitCode int32) {
	t.Helper()
	if err := endPod(t.Context(), c.Admin, nodeAgent(t, c, fakeNode), pod, result, exitCode); err != nil {
		t.Fatal(err)
	}
}

// endPod is end for goroutines. NodeAgent has the rights of the agent of fakeNode.
func endPod(ctx context.Context, admin, nodeAgent client.Client, pod *corev1.Pod, result workflow.Result, exitCode int32) error {
	if err := endContainers(ctx, admin, pod, exitCode); err != nil {
		return err
	}
	return tellResult(ctx, nodeAgent, pod, result)
}

// endContainers is what kubelet tells of the end of a pod.
func endContainers(ctx context.Context, admin client.Client, pod *corev1.Pod, exitCode int32) error {
	binding := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}, Target: corev1.ObjectReference{Kind: "Node", Name: fakeNode}}
	if err := admin.SubResource("binding").Create(ctx, pod.DeepCopy(), binding); err != nil {
		return err
	}
	ended := pod.DeepCopy()
	ended.Status.Phase, ended.Status.StartTime = corev1.PodSucceeded, new(metav1.Now())
	if exitCode != 0 {
		ended.Status.Phase = corev1.PodFailed
	}
	ended.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: pod.Spec.Containers[0].Name, State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{ExitCode: exitCode, StartedAt: metav1.Now(), FinishedAt: metav1.Now()},
	}}}
	return admin.Status().Patch(ctx, ended, client.MergeFrom(pod))
}

// tellResult is what the agent of the node tells of a pod that has ended.
func tellResult(ctx context.Context, nodeAgent client.Client, pod *corev1.Pod, result workflow.Result) error {
	text, err := result.Encode()
	if err != nil {
		return err
	}
	reported := pod.DeepCopy()
	metav1.SetMetaDataAnnotation(&reported.ObjectMeta, pavv1.ResultAnnotation, text)
	patch, err := client.MergeFrom(pod).Data(reported)
	if err != nil {
		return err
	}
	// The result of a validation or deletion pod that succeeded is not awaited.
	return client.IgnoreNotFound(nodeAgent.Patch(ctx, reported, client.RawPatch(types.MergePatchType, patch)))
}

package integration

import (
	"context"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/kubectl/status"
	"github.com/albertofaria/pav/test/kubelet"
)

// A pod that hangs is reported, the call ends as soon as no pod needs the volume, and a retry stops the pod.
func TestNode_SlowPods_AreReported_AndStoppedByARetry(t *testing.T) {
	var hangs atomic.Bool
	works := workers(t, nil)
	n := newNode(t, func(ctx context.Context, pod *kubelet.Pod) int32 {
		if hangs.Load() {
			<-ctx.Done()
			return 1
		}
		if _, err := os.Lstat(pod.Pav + "/volume"); pod.Workflow() == pavv1.WorkflowUnstaging && os.IsNotExist(err) {
			return 0 // the staging pod was stopped before it did anything
		}
		return works(ctx, pod)
	})
	n.run(t)
	v := n.volume(t, "served-slowly")
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: v.Name}}
	exists(t, n.c, claim, "exists", func(*corev1.PersistentVolumeClaim) bool { return true })
	ref := status.Ref{Kind: status.Claim, Namespace: "default", Name: v.Name}

	hangs.Store(true)
	client := n.client(t, v)
	n.wantAnswer(t, v, "has not completed and not created /pav/ready after 30s", n.Stage)
	n.wantOneEvent(t, claim, "FailedMount", "kubectl pav retry pvc/"+v.Name+" -n default")
	mustDelete(t, n.c, client)
	n.wantAnswer(t, v, "no pod on the node needs the volume any more", n.Stage)

	n.client(t, v)
	if asked := mustRetry(t, n.c, ref); asked != 1 {
		t.Fatalf("%d objects were annotated, want the PavStage", asked)
	}
	hangs.Store(false)
	n.wantAnswer(t, v, "was stopped, as a retry was requested", n.Stage)
	if asked := mustRetry(t, n.c, ref); asked != 0 {
		t.Error("a failed attempt, which kubelet repeats, was annotated")
	}
	n.stage(t, v)

	hangs.Store(true)
	n.wantAnswer(t, v, "has not completed after 30s", n.Unstage)
	n.wantOneEvent(t, claim, "FailedUnmount", "has not completed after 30s")
	hangs.Store(false)
	if asked := mustRetry(t, n.c, ref); asked != 1 {
		t.Errorf("%d objects were annotated, want the PavStage", asked)
	}
	n.unstage(t, v)
	n.wantRuns(t, v, map[string]int{pavv1.WorkflowStaging: 2, pavv1.WorkflowUnstaging: 3})
}

// client creates a pod of the node that uses a volume.
func (n *node) client(t *testing.T, v kubelet.Volume) *corev1.Pod {
	t.Helper()
	pod := mustCreate(t, n.c, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "client-"},
		Spec: corev1.PodSpec{
			NodeName: n.Node, Containers: []corev1.Container{{Name: "main", Image: "none"}}, TerminationGracePeriodSeconds: new(int64),
			Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: v.Name}}}},
		},
	})
	t.Cleanup(func() {
		if err := n.c.Admin.Delete(lasting(t), pod); client.IgnoreNotFound(err) != nil {
			t.Error(err)
		}
	})
	return pod
}

// wantAnswer repeats a call until its error has a text. Meanwhile, pods of the node that run have done so for half a minute.
func (n *node) wantAnswer(t *testing.T, v kubelet.Volume, text string, call func(context.Context, kubelet.Volume) error) {
	t.Helper()
	n.succeed(t, "the answer "+text, func(ctx context.Context) error {
		if err := n.age(ctx); err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		err := call(ctx, v)
		if err != nil && strings.Contains(err.Error(), text) {
			return nil
		}
		return err
	})
}

// age makes the pods of the node look as if they had run for half a minute.
func (n *node) age(ctx context.Context) error {
	pods := &corev1.PodList{}
	if err := n.c.Admin.List(ctx, pods, client.HasLabels{pavv1.StageLabel}, client.MatchingFields{"spec.nodeName": n.Node}); err != nil {
		return err
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		before := client.MergeFrom(pod.DeepCopy())
		for j := range pod.Status.ContainerStatuses {
			if running := pod.Status.ContainerStatuses[j].State.Running; running != nil && time.Since(running.StartedAt.Time) < 30*time.Second {
				running.StartedAt = metav1.NewTime(running.StartedAt.Add(-31 * time.Second))
			}
		}
		if err := n.c.Admin.Status().Patch(ctx, pod, before); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

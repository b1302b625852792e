package integration

import (
	"context"
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/workflow"
	"github.com/albertofaria/pav/test/kubelet"
)

// A script that goes on after a command has failed may succeed with a volume that is not what it should be.
func TestNode_StagingPodThatSucceedsAndWritesAnError_IsReported(t *testing.T) {
	works := workers(t, nil)
	n := newNode(t, func(ctx context.Context, pod *kubelet.Pod) int32 {
		if pod.Workflow() == pavv1.WorkflowStaging {
			if err := os.WriteFile(pod.Pav+"/error", []byte("mkfs: no such device\n"), 0o600); err != nil {
				t.Error(err)
			}
		}
		return works(ctx, pod)
	})
	n.run(t)
	v := n.volume(t, "with-an-error")
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: v.Name}}
	exists(t, n.c, claim, "exists", func(*corev1.PersistentVolumeClaim) bool { return true })
	n.stage(t, v)
	n.stage(t, v)
	n.wantOneEvent(t, claim, "SucceededWithError", "succeeded, but wrote to /pav/error: mkfs: no such device")
	n.unstage(t, v)
}

func TestCreationPodThatSucceedsAndWritesAnError_IsReported(t *testing.T) {
	c := start(t)
	run(t, c)
	driver(t, c, "wordy", withCreationPod)
	claim := mustCreate(t, c, ownedClaim("wordy", "me"))
	pod, _ := podOf(t, c, claim, pavv1.WorkflowCreation)
	end(t, c, pod, workflow.Result{Error: "quota: not supported"}, 0)
	bound(t, c, claim)
	wantEvent(t, c, claim, "Warning", "Provisioning", "succeeded, but wrote to /pav/error: quota: not supported")
}

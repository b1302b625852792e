package integration

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	nodestage "github.com/albertofaria/pav/internal/node/stage"
	"github.com/albertofaria/pav/test/kubelet"
)

// inTime is as long as a call of kubelet's may take.
const inTime = 2 * time.Minute

// The claim is deleted after the agent has looked at it, and before its PavStage is written: anyone who deletes the
// volume does not see the PavStage. Then the volume must not be staged.
func TestNode_ClaimIsDeletedBeforeThePavStageIsWritten(t *testing.T) {
	n := newNode(t, workers(t, newDevices(t)))
	about, written := make(chan struct{}), make(chan struct{})
	struck := atomic.Int32{}
	n.agentConfig = gated(t, n.agentConfig, func(r *http.Request) {
		if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/pavstages") && struck.Add(1) == 1 {
			close(about)
			<-written
		}
	})
	n.run(t)
	v := n.volume(t, "served")
	answer := make(chan error, 1)
	go func() {
		answer <- n.firstAnswer(t, func(ctx context.Context) error { return n.Stage(ctx, v) })
	}()
	<-about
	mustDelete(t, n.c, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: v.Name}})
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: v.Name}}
	exists(t, n.c, pv, "is released", func(pv *corev1.PersistentVolume) bool { return pv.Status.Phase == corev1.VolumeReleased })
	close(written)
	if err := <-answer; status.Code(err) != codes.Internal || !strings.Contains(err.Error(), "no longer bound to each other") {
		t.Errorf("staging: %v", err)
	}
	n.wantRuns(t, v, map[string]int{})
	n.unstage(t, v) // It removes kubelet's own directory.
	if struck.Load() != 1 {
		t.Errorf("%d PavStages were written, want 1", struck.Load())
	}
	for _, stage := range n.stages(t) {
		if stage.Status.Phase != pavv1.StageFailed || len(stage.Finalizers) > 0 {
			t.Errorf("PavStage %s is left in phase %q, with finalizers %v", stage.Name, stage.Status.Phase, stage.Finalizers)
		}
		mustDelete(t, n.c, &stage) // It goes with the volume, by the garbage collector.
	}
}

// firstAnswer repeats a call until the agent knows the driver and the volume and is busy with nothing else
// about it, as between kubelet's calls it may be, and returns its answer.
func (n *node) firstAnswer(t *testing.T, call func(context.Context) error) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(lasting(t), inTime)
	defer cancel()
	var answer error
	n.Until(ctx, func(ctx context.Context) error {
		answer = call(ctx)
		if code := status.Code(answer); code == codes.Unavailable || code == codes.NotFound || isBusy(answer) {
			return answer
		}
		return nil
	})
	return answer
}

// isBusy reports whether a call found another operation on its volume.
func isBusy(err error) bool {
	return status.Code(err) == codes.Aborted && strings.Contains(status.Convert(err).Message(), nodestage.ErrBusy.Error())
}

// userOf makes a pod of the node that uses a volume, as the API server has it. It is there until the test ends.
func (n *node) userOf(t *testing.T, v kubelet.Volume, name string) *corev1.Pod {
	t.Helper()
	pod := mustCreate(t, n.c, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: corev1.PodSpec{
			NodeName: n.Node, Containers: []corev1.Container{{Name: "main", Image: "none"}},
			Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: v.Name},
			}}},
		},
	})
	t.Cleanup(func() { n.removeUser(t, pod) })
	return pod
}

func (n *node) removeUser(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	var now int64
	if err := n.c.Admin.Delete(lasting(t), pod, &client.DeleteOptions{GracePeriodSeconds: &now}); client.IgnoreNotFound(err) != nil {
		t.Error(err)
	}
}

func (n *node) setPhase(t *testing.T, pod *corev1.Pod, phase corev1.PodPhase) {
	t.Helper()
	before := pod.DeepCopy()
	pod.Status.Phase = phase
	if err := n.c.Admin.Status().Patch(t.Context(), pod, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

// After a restart, kubelet calls NodeUnstageVolume for a volume that a running pod has: the volume stays staged. It is
// unstaged once the pod has completed, even if kubelet never unpublished it, and while the pod object exists.
func TestNode_UnstageOfAVolumeThatAPodHas(t *testing.T) {
	for name, unpublished := range map[string]bool{"unpublished first": true, "forgotten by kubelet": false} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t, workers(t, newDevices(t)))
			n.run(t)
			v := n.volume(t, "served")
			pod := n.userOf(t, v, n.Node+"-job")
			n.setPhase(t, pod, corev1.PodRunning)
			user := kubelet.Client{Namespace: pod.Namespace, Name: pod.Name, UID: string(pod.UID)}
			n.stage(t, v)
			n.publish(t, v, user)
			for range 3 {
				if err := n.Unstage(t.Context(), v); status.Code(err) != codes.Aborted {
					t.Errorf("unstaging under a pod that runs: %v", err)
				}
			}
			n.wantRead(t, v, user)
			n.wantRuns(t, v, runs(pavv1.WorkflowStaging))
			n.wantEvent(t, pod, "FailedUnmount", "still run there and have it mounted")

			n.setPhase(t, pod, corev1.PodSucceeded)
			if unpublished {
				n.unpublish(t, v, user)
			}
			n.unstage(t, v)
			exists(t, n.c, pod, "stays", func(*corev1.Pod) bool { return true })
			n.wantRuns(t, v, runs(pavv1.WorkflowStaging, pavv1.WorkflowUnstaging))
			if !unpublished {
				n.unpublish(t, v, user) // It removes the pod's directory.
			}
		})
	}
}

// wantEvent waits for a warning of the node agent about an object.
func (n *node) wantEvent(t *testing.T, object client.Object, reason, message string) {
	t.Helper()
	eventually(t, fmt.Sprintf("there is an event %s: %s", reason, message), func(ctx context.Context) (bool, string) {
		list := &corev1.EventList{}
		if err := n.c.Admin.List(ctx, list, client.MatchingFields{"involvedObject.uid": string(object.GetUID())}); err != nil {
			return false, err.Error()
		}
		var seen []string
		for _, e := range list.Items {
			if e.Source.Component == "pav-node" && e.Type == corev1.EventTypeWarning && e.Reason == reason && strings.Contains(e.Message, message) {
				return true, ""
			}
			seen = append(seen, e.Reason+": "+e.Message)
		}
		return false, strings.Join(seen, "\n")
	})
}

// A ReadWriteOnce volume moves to another node. The call of kubelet there returns at once what it waits for; its next call
// waits until the first node has unstaged the volume, and stages it then. It acts on an event: the API server ends its watch too late.
func TestNode_VolumeMoves_WithinOneCall(t *testing.T) {
	former := newNode(t, workers(t, newDevices(t)))
	next := former.beside(t, workers(t, newDevices(t)))
	former.run(t)
	v := former.volume(t, "served")
	former.stage(t, v)
	watching := make(chan struct{}, 1)
	next.agentConfig = gated(t, next.agentConfig, func(r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/pavstages") && strings.Contains(r.URL.RawQuery, "fieldSelector=metadata.name") {
			query := r.URL.Query()
			query.Set("timeoutSeconds", strconv.Itoa(10*int(inTime.Seconds())))
			r.URL.RawQuery = query.Encode()
			select {
			case watching <- struct{}{}:
			default:
			}
		}
	})
	next.run(t)
	err := next.firstAnswer(t, func(ctx context.Context) error { return next.Stage(ctx, v) })
	if status.Code(err) != codes.Aborted || !strings.Contains(err.Error(), former.Node) {
		t.Errorf("the first call: %v", err)
	}
	answer := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(lasting(t), inTime)
		defer cancel()
		answer <- next.Stage(ctx, v)
	}()
	select {
	case <-watching:
	case err := <-answer:
		t.Errorf("the next call did not wait: %v", err)
	}
	former.unstage(t, v)
	unstaged := time.Now()
	if err := <-answer; err != nil {
		t.Errorf("the call that waited: %v", err)
	}
	t.Logf("the volume was staged %s after it had been unstaged", time.Since(unstaged).Round(time.Millisecond))
	next.publish(t, v, clientOf(v, 1))
	next.wantRead(t, v, clientOf(v, 1))
	next.unpublish(t, v, clientOf(v, 1))
	next.unstage(t, v)
}

// Kubelet's call ends before the unstaging pod, and no other call follows: the volume is unstaged anyway.
func TestNode_UnstagingContinuesBetweenCalls(t *testing.T) {
	begun, goOn := make(chan struct{}, 1), make(chan struct{})
	n := newNode(t, func(ctx context.Context, pod *kubelet.Pod) int32 {
		if pod.Workflow() == pavv1.WorkflowUnstaging {
			begun <- struct{}{}
			<-goOn
		}
		return workers(t, nil)(ctx, pod)
	})
	n.run(t)
	v := n.volume(t, "served")
	n.stage(t, v)
	ctx, cancel := context.WithCancel(t.Context())
	answer := make(chan error, 1)
	go func() { answer <- n.Unstage(ctx, v) }()
	<-begun
	cancel()
	if err := <-answer; err == nil {
		t.Error("the volume is unstaged while the unstaging pod runs")
	}
	close(goOn)
	eventually(t, "the stage is gone", func(context.Context) (bool, string) {
		stages := n.stages(t) //nolint:contextcheck // it has its own deadline
		return len(stages) == 0, fmt.Sprintf("%d PavStages", len(stages))
	})
	n.wantRuns(t, v, runs(pavv1.WorkflowStaging, pavv1.WorkflowUnstaging))
	n.unstage(t, v) // Kubelet's next call finds nothing to do.
}

// Staging failed. While the unstaging pod runs, no error is final, as kubelet would forget the volume.
func TestNode_FailedStaging_NoFinalErrorBeforeItIsReverted(t *testing.T) {
	begun, goOn := make(chan struct{}, 1), make(chan struct{})
	n := newNode(t, func(_ context.Context, pod *kubelet.Pod) int32 {
		if pod.Workflow() == pavv1.WorkflowStaging {
			return 1
		}
		select {
		case begun <- struct{}{}:
		default:
		}
		<-goOn
		return 0
	})
	n.run(t)
	v := n.volume(t, "served")
	answer := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		answer <- n.firstAnswer(t, func(context.Context) error { return n.Stage(ctx, v) }) //nolint:contextcheck // the call ends when the test ends it
	}()
	<-begun
	cancel()
	if err := <-answer; err == nil {
		t.Error("the volume is staged although its staging pod failed")
	}
	for range 20 {
		n.wantNotFinal(t, "staging while a failed attempt is reverted", func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
			defer cancel()
			return n.Stage(ctx, v)
		})
	}
	n.wantRuns(t, v, runs(pavv1.WorkflowStaging, pavv1.WorkflowUnstaging))
	go func() { answer <- n.firstAnswer(t, func(ctx context.Context) error { return n.Stage(ctx, v) }) }()
	close(goOn)
	if err := <-answer; status.Code(err) != codes.Internal {
		t.Errorf("staging when a failed attempt is reverted: %v", err)
	}
	n.unstage(t, v)
	for _, stage := range n.stages(t) {
		mustDelete(t, n.c, &stage) // the record of the failure, which goes with the volume
	}
}

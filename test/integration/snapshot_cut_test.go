package integration

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/workflow"
	"github.com/albertofaria/pav/test/agent"
)

// startPod binds a pod to a node, on which it runs from then on.
func startPod(t *testing.T, c *cluster, pod *corev1.Pod) {
	t.Helper()
	binding := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}, Target: corev1.ObjectReference{Kind: "Node", Name: fakeNode}}
	if err := c.Admin.SubResource("binding").Create(t.Context(), pod.DeepCopy(), binding); err != nil {
		t.Fatal(err)
	}
	mustPatchStatus(t, c, pod, func(p *corev1.Pod) {
		p.Status.Phase, p.Status.StartTime = corev1.PodRunning, new(metav1.Now())
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{
			Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()},
		}}}
	})
}

// tell is tellResult for a test.
func tell(t *testing.T, c *cluster, pod *corev1.Pod, result workflow.Result) {
	t.Helper()
	if err := tellResult(t.Context(), nodeAgent(t, c, fakeNode), pod, result); err != nil {
		t.Fatal(err)
	}
}

// endRunning ends a pod that runs.
func endRunning(t *testing.T, c *cluster, pod *corev1.Pod, exitCode int32) {
	t.Helper()
	mustPatchStatus(t, c, pod, func(p *corev1.Pod) {
		if p.Status.Phase = corev1.PodSucceeded; exitCode != 0 {
			p.Status.Phase = corev1.PodFailed
		}
		p.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			ExitCode: exitCode, StartedAt: metav1.Now(), FinishedAt: metav1.Now(),
		}}
	})
}

// cutSnapshot requests a snapshot of a volume, which its pod cuts.
func cutSnapshot(t *testing.T, c *cluster, pv *corev1.PersistentVolume, class, name string) (*snapshot, *corev1.Pod) {
	t.Helper()
	s := requestSnapshot(t, c, pv, class, name)
	pod := s.creation(t, 1, "none")
	startPod(t, c, pod)
	tell(t, c, pod, workflow.Result{Ready: true, SnapshotHandle: name, SnapshotSize: "2Mi"})
	s.wantSays(t, "creating: yes, "+name+", 2097152.")
	exists(t, c, s.record, "is cut", func(r *pavv1.PavSnapshot) bool {
		return r.Status.Phase == pavv1.SnapshotCut && r.Status.Step == pavv1.SnapshotCreating && r.Status.Pod != nil
	})
	return s, pod
}

// A snapshot that is cut does not need its volume any more, and can be used when its pod has completed.
func TestSnapshot_Cut_IsReadyWhenItsPodCompletes(t *testing.T) {
	c := start(t)
	run(t, c)
	_, pv, volume := snappedVolume(t, c, "cut", growable)
	s, pod := cutSnapshot(t, c, pv, "cut", "monday")
	cutAt := *s.content.Status.CreationTime
	wantReaders(t, c, volume)
	claim := ownedClaim("cut", "me")
	mustPatch(t, c, claim, requests("2Gi"))
	expansion, _ := podOf(t, c, claim, pavv1.WorkflowExpansion)
	end(t, c, expansion, workflow.Result{}, 0)
	wantSize(t, c, claim, "2Gi")
	s.wantSays(t, "creating: yes, monday, 2097152.")
	endRunning(t, c, pod, 0)
	s.wantSays(t, "monday, 2097152, ready.")
	if got := *s.content.Status.CreationTime; got != cutAt {
		t.Errorf("when it is ready, it was cut at %d, and before at %d", got, cutAt)
	}
	s.delete(t)
	end(t, c, s.deletion(t, 2, "monday"), workflow.Result{}, 0)
	s.wantGone(t)
	deleteVolume(t, c, claim, pv)
}

// deleteVolume deletes a volume with a deletion pod.
func deleteVolume(t *testing.T, c *cluster, claim *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) {
	t.Helper()
	mustDeleteLasting(t, c, claim) // a test may have deleted it before
	deletion, _ := podOf(t, c, claim, pavv1.WorkflowDeletion)
	end(t, c, deletion, workflow.Result{}, 0)
	gone(t, c, pv)
	noPodIsLeft(t, c)
}

// What is cut is not cut again: its processing is repeated.
func TestSnapshot_Cut_IsNotRevertedWhenItsPodFails(t *testing.T) {
	c := start(t)
	run(t, c)
	_, pv, volume := snappedVolume(t, c, "cut-and-lost")
	s, pod := cutSnapshot(t, c, pv, "cut-and-lost", "monday")
	endRunning(t, c, pod, 3)
	second := s.creation(t, 2, "monday")
	s.wantSays(t, "creating: yes, monday, 2097152, failed: pod pav-pods/"+pod.Name)
	wantEvent(t, c, s.object, "Warning", "SnapshotCreationFailed", "ended with exit code 3")
	wantReaders(t, c, volume)
	end(t, c, second, workflow.Result{SnapshotHandle: "another"}, 0)
	s.wantSays(t, "monday, 2097152, ready.")
	s.delete(t)
	end(t, c, s.deletion(t, 3, "monday"), workflow.Result{}, 0)
	s.wantGone(t)
}

// A pod that fails after the cut, while no agent records that, has cut the snapshot and not completed it.
func TestSnapshot_Cut_AndFailedWhileNoAgentRuns(t *testing.T) {
	c := start(t)
	current := agent.Launch(t, c.agent, agent.Options(namespace), &agent.Line{})
	t.Cleanup(func() { current.Stop(t); checkNothingLeft(t, c) })
	_, pv, volume := snappedVolume(t, c, "cut-unseen")
	s := requestSnapshot(t, c, pv, "cut-unseen", "monday")
	pod := s.creation(t, 1, "none")
	current.Stop(t)
	startPod(t, c, pod)
	tell(t, c, pod, workflow.Result{Ready: true, SnapshotHandle: "monday", SnapshotSize: "2Mi"})
	endRunning(t, c, pod, 3)
	current = agent.Launch(t, c.agent, agent.Options(namespace), &agent.Line{})
	second := s.creation(t, 2, "monday")
	s.wantSays(t, "creating: yes, monday, 2097152, failed: pod pav-pods/"+pod.Name)
	wantReaders(t, c, volume)
	end(t, c, second, workflow.Result{}, 0)
	s.wantSays(t, "monday, 2097152, ready.")
	s.delete(t)
	end(t, c, s.deletion(t, 3, "monday"), workflow.Result{}, 0)
	s.wantGone(t)
}

// A snapshot that is cut and deleted before its pod completes is deleted with its handle.
func TestSnapshot_Cut_IsDeletedBeforeItsPodCompletes(t *testing.T) {
	c := start(t)
	run(t, c)
	_, pv, _ := snappedVolume(t, c, "cut-for-nothing")
	s, pod := cutSnapshot(t, c, pv, "cut-for-nothing", "monday")
	s.delete(t)
	exists(t, c, pod, "is stopped", func(p *corev1.Pod) bool { return p.DeletionTimestamp != nil })
	endRunning(t, c, pod, 3)
	removeNow(t, c, pod)
	end(t, c, s.deletion(t, 2, "monday"), workflow.Result{}, 0)
	s.wantGone(t)
	noPodIsLeft(t, c)
}

// A pod that says it has cut the snapshot, but not which one, is stopped before what it has made is deleted.
func TestSnapshot_Cut_WithoutAValidHandle_IsReverted(t *testing.T) {
	c := start(t)
	run(t, c)
	_, pv, _ := snappedVolume(t, c, "cut-in-vain")
	s := requestSnapshot(t, c, pv, "cut-in-vain", "monday")
	pod := s.creation(t, 1, "none")
	startPod(t, c, pod)
	tell(t, c, pod, workflow.Result{Ready: true, SnapshotHandle: "two\nlines"})
	s.wantSays(t, "creating: yes, failed: ")
	exists(t, c, pod, "is stopped", func(p *corev1.Pod) bool { return p.DeletionTimestamp != nil })
	if s.record.Status.Pods != 1 {
		t.Errorf("there are %d pods already", s.record.Status.Pods)
	}
	endRunning(t, c, pod, 143)
	removeNow(t, c, pod)
	revert := s.deletion(t, 2, "none")
	s.delete(t)
	end(t, c, revert, workflow.Result{}, 0)
	s.wantGone(t)
	noPodIsLeft(t, c)
}

package workflow

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// aboutToEnd returns a pod whose containers, an init container, a sidecar and a main container, have all ended, and
// whose phase kubelet has yet to write.
func aboutToEnd() *corev1.Pod {
	always := corev1.ContainerRestartPolicyAlways
	return &corev1.Pod{
		Spec: corev1.PodSpec{
			NodeName: "node", RestartPolicy: corev1.RestartPolicyNever,
			InitContainers: []corev1.Container{{Name: "init"}, {Name: "sidecar", RestartPolicy: &always}},
			Containers:     []corev1.Container{{Name: "main"}},
		},
		Status: corev1.PodStatus{
			Phase:                 corev1.PodRunning,
			InitContainerStatuses: []corev1.ContainerStatus{ended("init", 0, "Completed", ""), ended("sidecar", 137, "Error", "")},
			ContainerStatuses:     []corev1.ContainerStatus{ended("main", 0, "Completed", "")},
		},
	}
}

func TestJudge(t *testing.T) {
	main := func(p *corev1.Pod) *corev1.ContainerStatus { return &p.Status.ContainerStatuses[0] }
	for name, test := range map[string]struct {
		change func(p *corev1.Pod)
		want   State
	}{
		"all containers have ended well":      {change: func(*corev1.Pod) {}, want: Succeeded},
		"before the pod was seen to run":      {change: func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending }, want: Succeeded},
		"a container has failed":              {change: func(p *corev1.Pod) { main(p).State.Terminated.ExitCode = 3 }, want: Failed},
		"a container that is restarted, well": {change: func(p *corev1.Pod) { p.Spec.RestartPolicy = corev1.RestartPolicyOnFailure }, want: Succeeded},
		"it fails, and is restarted": {change: func(p *corev1.Pod) {
			p.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
			main(p).State.Terminated.ExitCode = 3
		}, want: Running},
		"it is restarted when it ends well": {change: func(p *corev1.Pod) { p.Spec.RestartPolicy = corev1.RestartPolicyAlways }, want: Running},
		"a policy that is not known":        {change: func(p *corev1.Pod) { p.Spec.RestartPolicy = "" }, want: Running},
		"a container with a policy":         {change: func(p *corev1.Pod) { p.Spec.Containers[0].RestartPolicy = new(corev1.ContainerRestartPolicyNever) }, want: Running},
		"a container with rules":            {change: func(p *corev1.Pod) { p.Spec.Containers[0].RestartPolicyRules = []corev1.ContainerRestartRule{{}} }, want: Running},
		"an init container with a policy": {change: func(p *corev1.Pod) {
			p.Spec.InitContainers[0].RestartPolicy = new(corev1.ContainerRestartPolicyOnFailure)
		}, want: Running},
		"a sidecar with rules":    {change: func(p *corev1.Pod) { p.Spec.InitContainers[1].RestartPolicyRules = []corev1.ContainerRestartRule{{}} }, want: Running},
		"the main container runs": {change: func(p *corev1.Pod) { main(p).State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}} }, want: Running},
		"it has run before": {change: func(p *corev1.Pod) {
			main(p).LastTerminationState, main(p).State = main(p).State, corev1.ContainerState{}
		}, want: Running},
		"the sidecar runs":               {change: func(p *corev1.Pod) { p.Status.InitContainerStatuses[1].State = corev1.ContainerState{} }, want: Running},
		"an init container has failed":   {change: func(p *corev1.Pod) { p.Status.InitContainerStatuses[0].State.Terminated.ExitCode = 1 }, want: Running},
		"there is a second container":    {change: func(p *corev1.Pod) { p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "other"}) }, want: Running},
		"an ephemeral container runs":    {change: func(p *corev1.Pod) { p.Status.EphemeralContainerStatuses = []corev1.ContainerStatus{{Name: "debug"}} }, want: Succeeded},
		"kubelet has lost the container": {change: func(p *corev1.Pod) { main(p).State.Terminated.Reason = statusUnknown }, want: Running},
		"nothing is known of containers": {change: func(p *corev1.Pod) {
			p.Spec, p.Status = corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever}, corev1.PodStatus{}
		}, want: Running},
		"the pod is being deleted":              {change: func(p *corev1.Pod) { p.DeletionTimestamp = new(metav1.Now()) }, want: Stopping},
		"the node is lost":                      {change: func(p *corev1.Pod) { p.Status.Phase = corev1.PodUnknown }, want: Running},
		"it was evicted after that":             {change: func(p *corev1.Pod) { p.Status.Phase, p.Status.Reason = corev1.PodFailed, "Evicted" }, want: Failed},
		"kubelet says so":                       {change: func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }, want: Succeeded},
		"kubelet says so, and it was deleted":   {change: func(p *corev1.Pod) { p.Status.Phase, p.DeletionTimestamp = corev1.PodSucceeded, new(metav1.Now()) }, want: Failed},
		"kubelet says so of what was restarted": {change: func(p *corev1.Pod) { p.Status.Phase, main(p).RestartCount = corev1.PodSucceeded, 3 }, want: Succeeded},
	} {
		t.Run(name, func(t *testing.T) {
			pod := aboutToEnd()
			test.change(pod)
			if got := Judge(pod); got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
			pod.Spec = KeepForJudge(&pod.Spec)
			if got := Judge(pod); got != test.want {
				t.Errorf("of what caches keep, got %d, want %d", got, test.want)
			}
		})
	}
	if got := Judge(nil); got != Absent {
		t.Errorf("a pod that does not exist is %d, want %d", got, Absent)
	}
}

// A container that kubelet stops at the pod's deadline may end with any exit code.
func TestJudge_AtTheDeadline(t *testing.T) {
	began := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	for after, want := range map[time.Duration]State{
		8 * time.Second: Succeeded, 9 * time.Second: Running, 10 * time.Second: Running, 40 * time.Second: Running,
	} {
		pod := aboutToEnd()
		pod.Spec.ActiveDeadlineSeconds = new(int64(10))
		pod.Status.StartTime = new(metav1.NewTime(began))
		pod.Status.ContainerStatuses[0].State.Terminated.FinishedAt = metav1.NewTime(began.Add(after))
		if got := Judge(pod); got != want {
			t.Errorf("a container that ended %s after the start of a pod that has ten seconds: got %d, want %d", after, got, want)
		}
		pod.Status.StartTime = nil
		if got := Judge(pod); got != Running {
			t.Errorf("without a start: got %d, want %d", got, Running)
		}
	}
}

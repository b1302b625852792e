package workflow

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// grantPolicy is the policy of a grant pod.
func grantPolicy() PodPolicy {
	f := fence()
	f.Workflow, f.Node = pavv1.WorkflowGrant, ""
	return f
}

// Kubelet puts what is in the termination log, or the end of the log, into the status of a pod.
func TestBuild_OfPodsThatPrintSecrets_LeavesNoWayIntoTheirStatusByHabit(t *testing.T) {
	f := grantPolicy()
	for _, f.Workflow = range []string{pavv1.WorkflowGrant, pavv1.WorkflowRevocation} {
		pod := mustBuild(t, `
spec:
  initContainers:
    - {name: init}
    - {name: sidecar, restartPolicy: Always, terminationMessagePath: /pav/credentials/accessKeyId}
  containers:
    - {name: main, terminationMessagePolicy: FallbackToLogsOnError}
    - {name: other, terminationMessagePath: /dev/termination-log, terminationMessagePolicy: File}
`, f)
		for _, c := range append(pod.Spec.InitContainers, pod.Spec.Containers...) {
			if c.TerminationMessagePolicy != corev1.TerminationMessageReadFile || c.TerminationMessagePath != "/dev/pav-termination-log" {
				t.Errorf("%s: container %s has the termination log %q, with the policy %s", f.Workflow, c.Name, c.TerminationMessagePath, c.TerminationMessagePolicy)
			}
		}
	}
	f.Workflow = pavv1.WorkflowBucketDeletion
	pod := mustBuild(t, `{spec: {containers: [{name: main}]}}`, f)
	if c := pod.Spec.Containers[0]; c.TerminationMessagePolicy != corev1.TerminationMessageFallbackToLogsOnError || c.TerminationMessagePath != "" {
		t.Errorf("of a deletion pod: %q, %s", c.TerminationMessagePath, c.TerminationMessagePolicy)
	}
}

func TestProblems_OfGrantPods(t *testing.T) {
	template := func(mountPath string, annotation int) *corev1.PodTemplateSpec {
		return &corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"a": strings.Repeat("x", annotation)}},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", VolumeMounts: []corev1.VolumeMount{{MountPath: mountPath}}}}},
		}
	}
	const mountField, annotations = "f.spec.containers[0].volumeMounts[0].mountPath", "f.metadata.annotations"
	for name, test := range map[string]struct {
		template *corev1.PodTemplateSpec
		workflow string
		want     string
	}{
		"a mount over the credentials":         {template("/pav/credentials", 0), pavv1.WorkflowGrant, mountField},
		"the same, in other words":             {template("pav//x/../credentials/", 0), pavv1.WorkflowGrant, mountField},
		"a mount among the credentials":        {template("/pav/credentials/extra", 0), pavv1.WorkflowGrant, mountField},
		"a mount beside the credentials":       {template("/pav/credentials2", 0), pavv1.WorkflowGrant, ""},
		"a mount at /pav":                      {template("/pav", 0), pavv1.WorkflowGrant, mountField},
		"a pod without credentials":            {template("/pav/credentials", 0), pavv1.WorkflowRevocation, ""},
		"large annotations":                    {template("/x", 65<<10), pavv1.WorkflowGrant, annotations},
		"large annotations of bucket creation": {template("/x", 65<<10), pavv1.WorkflowBucketCreation, annotations},
		"large annotations of other pods":      {template("/x", 65<<10), pavv1.WorkflowBucketDeletion, ""},
		"annotations that are too large":       {template("/x", 193<<10), pavv1.WorkflowBucketDeletion, annotations},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, problem := range Problems("f", test.template, test.workflow) {
				got = append(got, problem.Field)
			}
			if strings.Join(got, " ") != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// Kubelet writes what the commands of probes and hooks print into events of the pod, or into its own log.
func TestProblems_OfPodsThatPrintSecrets_RefusesCommandsOfProbesAndHooks(t *testing.T) {
	exec, request := &corev1.ExecAction{Command: []string{"true"}}, &corev1.HTTPGetAction{}
	with := func(probe corev1.ProbeHandler, hook corev1.LifecycleHandler) corev1.Container {
		return corev1.Container{
			LivenessProbe: &corev1.Probe{ProbeHandler: probe}, ReadinessProbe: &corev1.Probe{ProbeHandler: probe}, StartupProbe: &corev1.Probe{ProbeHandler: probe},
			Lifecycle: &corev1.Lifecycle{PostStart: &hook, PreStop: &hook},
		}
	}
	commands := with(corev1.ProbeHandler{Exec: exec}, corev1.LifecycleHandler{Exec: exec})
	requests := with(corev1.ProbeHandler{HTTPGet: request}, corev1.LifecycleHandler{HTTPGet: request})
	template := &corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		InitContainers: []corev1.Container{requests, commands}, Containers: []corev1.Container{commands, requests, {Lifecycle: &corev1.Lifecycle{}}},
	}}
	var want []string
	for _, container := range []string{"initContainers[1]", "containers[0]"} {
		for _, command := range []string{"livenessProbe", "readinessProbe", "startupProbe", "lifecycle.postStart", "lifecycle.preStop"} {
			want = append(want, "f.spec."+container+"."+command+".exec")
		}
	}
	for workflow, want := range map[string][]string{pavv1.WorkflowGrant: want, pavv1.WorkflowRevocation: want, pavv1.WorkflowStaging: nil, pavv1.WorkflowBucketCreation: nil} {
		var got []string
		for _, problem := range Problems("f", template, workflow) {
			got = append(got, problem.Field)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: the problems (-want +got):\n%s", workflow, diff)
		}
	}
}

// What the containers of a grant or revocation pod have printed may be in many places of its status. None of it is repeated.
func TestFailureAndWaiting_OfPodsThatPrintSecrets_QuoteNothingOfIt(t *testing.T) {
	for _, kind := range []string{pavv1.WorkflowGrant, pavv1.WorkflowRevocation} {
		t.Run(kind, func(t *testing.T) { quotesNothing(t, kind) })
	}
}

func quotesNothing(t *testing.T, kind string) {
	t.Helper()
	const canary = "canary"
	pod := func(status corev1.PodStatus) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "grant-1", Labels: map[string]string{pavv1.WorkflowLabel: kind}}, Status: status}
	}
	failed := pod(corev1.PodStatus{Phase: corev1.PodFailed, ContainerStatuses: []corev1.ContainerStatus{ended("main", 3, "Error", canary)}})
	want := &pavv1.WorkflowFailure{
		Workflow: kind, Reason: pavv1.FailurePodFailed, PodNamespace: "ns", PodName: "grant-1", ExitCode: new(int32(3)),
		Message: `pod ns/grant-1 failed: container "main" ended with exit code 3: the store is down; see kubectl logs -n ns grant-1 --all-containers`,
	}
	if diff := cmp.Diff(want, Failure(kind, failed, "the store is down")); diff != "" {
		t.Errorf("the failure (-want +got):\n%s", diff)
	}
	for reason, quoted := range map[string]bool{
		"PostStartHookError": false, "PreStartHookError": false, "OfTheFuture": false,
		"ErrImagePull": true, "ImagePullBackOff": true, "CreateContainerConfigError": true, "RunContainerError": true, "CrashLoopBackOff": true,
	} {
		want := `pod ns/grant-1, container "main": ` + reason
		if quoted {
			want += ": " + canary
		}
		if got := Waiting(pod(corev1.PodStatus{ContainerStatuses: waiting(reason, canary)})); got != want {
			t.Errorf("%s: got %q, want %q", reason, got, want)
		}
	}
	again := again("back-off 10s", ended("", 3, "Error", canary))
	if got := Waiting(pod(corev1.PodStatus{ContainerStatuses: again})); strings.Contains(got, canary) || !strings.Contains(got, "back-off 10s; it ended with exit code 3") {
		t.Errorf("of a container that is restarted: got %q", got)
	}
}

func TestMayBeReady(t *testing.T) {
	for _, kind := range append(pavv1.WorkflowsOfController(), "") {
		want := kind == "create" || kind == "snapshot" || kind == "create-bucket" || kind == "grant"
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{pavv1.WorkflowLabel: kind}},
			Spec:       corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main"}}},
		}
		if got := MayBeReady(pod); got != want {
			t.Errorf("%q: %t", kind, got)
		}
		pod.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
		if MayBeReady(pod) {
			t.Errorf("%q, whose containers may be restarted, may be ready", kind)
		}
	}
}

func TestFilesOf(t *testing.T) {
	for kind, want := range map[string]string{
		"create": "handle capacity snapshotHandle snapshotSize error infeasible", "delete": "handle capacity snapshotHandle snapshotSize error infeasible",
		"unsnapshot": "handle capacity snapshotHandle snapshotSize error infeasible", "": "handle capacity snapshotHandle snapshotSize error infeasible",
		"validate-bucket": "error infeasible", "create-bucket": "bucketId created info error infeasible", "update-bucket": "error infeasible",
		"delete-bucket": "error infeasible", "grant": "accountId expires credentials error infeasible", "revoke": "error infeasible",
	} {
		if got := strings.Join(FilesOf(kind), " "); got != want {
			t.Errorf("%q: got %q, want %q", kind, got, want)
		}
	}
}

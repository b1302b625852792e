package status

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// said returns a timeline as text.
func said(entries []Entry) []string {
	var lines []string
	for _, e := range entries {
		line := fmt.Sprintf("%+d %s: %s", int(e.Time.Sub(noon).Seconds()), e.Object, e.What)
		if e.Duration != nil {
			line += fmt.Sprintf(" [%s %s]", e.Duration.Duration, e.Of)
		}
		if e.Count > 1 {
			line += fmt.Sprintf(" x%d since %+d", e.Count, int(e.First.Sub(noon).Seconds()))
		}
		if e.State != "" {
			line += " " + string(e.State)
		}
		lines = append(lines, line)
	}
	return lines
}

func TestEntries_WholeLife(t *testing.T) {
	w := bound().stage("n1", func(s *pavv1.PavStage) { s.CreationTimestamp = *at(2 * time.Second) })
	w.pod("create-1", pavv1.WorkflowCreation, func(p *corev1.Pod) {
		failedWith(0)(p)
		p.Status.Phase = corev1.PodSucceeded
		p.Status.ContainerStatuses[0].State.Terminated.FinishedAt = *at(3 * time.Second)
	})
	w.client("web", "n1").with(clientsRun).with(func(f *Facts) {
		f.Clients[0].CreationTimestamp = *at(time.Second)
		f.Clients[0].Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: *at(2 * time.Second)}}
		f.Clients[0].Status.ContainerStatuses[0].State.Running.StartedAt = *at(8 * time.Second)
		// The claim was made larger later.
		f.Volume.Status.ProvisionedClaim = &apiextensionsv1.JSON{Raw: []byte(`{"spec":{"resources":{"requests":{"storage":"1Gi"}}}}`)}
		f.Claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("2Gi")}
	})
	want := []string{
		"-2 claim: created: 1Gi, ReadWriteOnce",
		"-2 volume: provisioning began, by demo",
		"-1 pod create-1: creation pod created [1s queue]",
		"-1 pod create-1: started on node n1 [0s start]",
		"-1 pv: created: 1Gi, reclaim policy Delete",
		"-1 volume: provisioned [1s in all] Healthy",
		"+1 pod web: created; it uses the claim",
		"+2 pod web: scheduled to node n1 [1s wait]",
		"+2 node n1: staging began",
		"+3 pod create-1: creation succeeded [4s run] Healthy",
		"+8 pod web: started with the volume [6s volumes and images] Healthy",
	}
	if diff := cmp.Diff(want, said(entries(w.f))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A staging pod that completes without a volume has not succeeded.
func TestEntries_OfAPodThatCompletedAndFailed(t *testing.T) {
	w := bound().stage("n1", func(s *pavv1.PavStage) {
		s.Status.StagingFailure = &pavv1.WorkflowFailure{Workflow: pavv1.WorkflowStaging, PodNamespace: "pav-pods", PodName: "stage-1", Message: "there is no /pav/volume", Time: *at(4 * time.Second)}
	})
	w.pod("stage-1", pavv1.WorkflowStaging, func(p *corev1.Pod) {
		failedWith(0)(p)
		p.Status.Phase = corev1.PodSucceeded
		p.Status.ContainerStatuses[0].State.Terminated.FinishedAt = *at(3 * time.Second)
	})
	for _, line := range said(entries(w.f)) {
		if strings.Contains(line, "succeeded") {
			t.Errorf("it says %q", line)
		}
	}
	if got := said(podEntries(w.f, &w.f.Pods[0])); !strings.Contains(got[len(got)-1], "pod stage-1: staging pod completed") {
		t.Errorf("it says %q", got)
	}
}

func TestEventEntries_EachCauseOnce(t *testing.T) {
	w := bound().client("web", "n1")
	repeat := func(kind, reason, message string, first, last time.Duration, count int32) {
		w.event(kind, reason, message)
		e := &w.f.Events[len(w.f.Events)-1]
		e.FirstTimestamp, e.LastTimestamp, e.Count = *at(first), *at(last), count
	}
	repeat("PersistentVolumeClaim", "ProvisioningFailed", "pod pav-pods/create-0123456789abcdef0123 failed: no such user; see kubectl logs -n pav-pods create-0123456789abcdef0123 --all-containers; attempt 2 follows in 1s", 0, 0, 1)
	repeat("PersistentVolumeClaim", "ProvisioningFailed", "pod pav-pods/create-abcdef0123456789abcd failed: no such user; see kubectl logs -n pav-pods create-abcdef0123456789abcd --all-containers; attempt 3 follows in 2s", 5*time.Second, 5*time.Second, 1)
	repeat("PersistentVolumeClaim", "FailedMount", `staging on node n1 failed: provisioner "demo": pod pav-pods/stage-0123456789abcdef0123 failed: no device`, 6*time.Second, 6*time.Second, 1)
	repeat("PavStage", "FailedMount", `staging on node n1 failed: provisioner "demo": pod pav-pods/stage-0123456789abcdef0123 failed: no device`, 6*time.Second, 6*time.Second, 1)
	w.f.Events[len(w.f.Events)-1].InvolvedObject.UID = "s1"
	repeat("Pod", "FailedMount", `MountVolume.MountDevice failed for volume "pvc-u1" : rpc error: code = Internal desc = staging failed: provisioner "demo": pod pav-pods/stage-0123456789abcdef0123 failed: no device`, 7*time.Second, 9*time.Second, 3)
	repeat("Pod", "FailedMount", "MountVolume.SetUp failed: permission denied", 10*time.Second, 30*time.Second, 4)
	repeat("Pod", "FailedScheduling", "0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims", 0, 0, 1)
	repeat("Pod", "MissingClusterDNS", "no DNS", 0, 0, 1)
	want := []string{
		"+5 claim: ProvisioningFailed: pod pav-pods/create-abcdef0123456789abcd failed: no such user; attempt 3 follows in 2s x2 since +0 Failing",
		"+6 claim: FailedMount: staging on node n1 failed: provisioner \"demo\": pod pav-pods/stage-0123456789abcdef0123 failed: no device Failing",
		"+30 pod web: FailedMount: MountVolume.SetUp failed: permission denied x4 since +10 Failing",
	}
	if diff := cmp.Diff(want, said(eventEntries(w.f))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// What has passed is no alarm.
	w.with(clientsRun).with(func(f *Facts) { f.Clients[0].Status.ContainerStatuses[0].State.Running.StartedAt = *at(time.Minute) })
	if got := eventEntries(w.f); got[2].State != "" {
		t.Errorf("a warning that a pod has overcome is %s", got[2].State)
	}
}

func TestBrief(t *testing.T) {
	for message, want := range map[string]string{
		"failed: x": "failed: x",
		"failed: x; see kubectl logs -n p c --all-containers":                       "failed: x",
		"failed: x; see kubectl logs -n p c --all-containers; attempt 2 follows in": "failed: x; attempt 2 follows in",
	} {
		if got := Brief(message); got != want {
			t.Errorf("Brief(%q) = %q, want %q", message, got, want)
		}
	}
}

package stage

import (
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// A staging pod that was removed by force, with its finalizer, may still run. A second one would write to the same
// storage, and clients would get what the first one has mounted.
func TestStagingPodRemovedByForce_HasFailed_AndIsNotCreatedAgain(t *testing.T) {
	n := newNode(t)
	v := Volume{Driver: "driver", Handle: "handle"}
	name, _ := n.stager.names(v)
	n.withVolumes(v, "pv")
	n.ledger(t, v, name).Status.Phase = pavv1.StageStaging
	must(t, n.stager.keepRecord(t.Context(), n.API.Stages[name]))
	must(t, n.Dirs.Prepare(t.Context(), name))
	target := filepath.Join(n.PodDirectory(t, "pod-uid"), "mount")
	must(t, n.Dirs.Publish(t.Context(), name, target))
	if _, err := n.Dirs.Unpublish(t.Context(), target); err != nil { // kubelet has cleaned up
		t.Fatal(err)
	}
	delete(n.API.Pods, "stage-1")

	task := n.stager.newTask(Subject{Volume: v}, corev1.PersistentVolumeFilesystem)
	o, err := task.observe(t.Context())
	must(t, err)
	if got := stageTable.decide(o).step; got != stepFail {
		t.Fatalf("the next step is %s, want that the pod has failed; it sees %+v", got, o)
	}
	must(t, task.fail(t.Context()))
	status := n.API.Stages[name].Status
	if failure := status.StagingFailure; status.Phase != pavv1.StageUnstaging || failure == nil || failure.Reason != pavv1.FailurePodRemoved || !strings.Contains(failure.Message, "removed by force") {
		t.Errorf("the phase is %s, failure %+v", status.Phase, failure)
	}
}

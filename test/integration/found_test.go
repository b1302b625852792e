package integration

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/workflow"
)

// The creation pods of several volumes use the same storage, as its name does not depend on the volume.
var sameStorage = workflow.Result{Handle: "shared"}

// givesWay waits until a volume whose creation pod found deleted storage is created again and bound; then it deletes the
// volume.
func givesWay(t *testing.T, c *cluster, claim *corev1.PersistentVolumeClaim, first *corev1.Pod) {
	t.Helper()
	end(t, c, first, sameStorage, 0)
	wantEvent(t, c, claim, "Warning", "ProvisioningFailed", `wrote "shared" to /pav/handle, which is the storage of PavVolume "`)
	exists(t, c, volumeOf(claim), "has another creation pod", func(v *pavv1.PavVolume) bool {
		return v.Status.Step == pavv1.StepCreating && v.Status.Pod != nil && v.Status.Pod.UID != "" && v.Status.Pod.Name != first.Name
	})
	next, _ := podOf(t, c, claim, pavv1.WorkflowCreation)
	end(t, c, next, sameStorage, 0)
	_, volume := bound(t, c, claim)
	mustDelete(t, c, claim)
	deletion, _ := podOf(t, c, claim, pavv1.WorkflowDeletion)
	end(t, c, deletion, workflow.Result{}, 0)
	gone(t, c, volume)
}

// A creation pod finds existing storage, which is then deleted with its volume: the volume of the creation pod does not get
// the storage that is gone.
func TestStorageFoundWhileItIsDeleted_IsMadeAgain(t *testing.T) {
	c := start(t)
	run(t, c)
	driver(t, c, "found-deleted", withPods)
	former := mustCreate(t, c, claimOf("found-deleted", "former"))
	creation, _ := podOf(t, c, former, pavv1.WorkflowCreation)
	end(t, c, creation, sameStorage, 0)
	pv, volume := bound(t, c, former)
	mustDelete(t, c, former)
	deletion, _ := podOf(t, c, former, pavv1.WorkflowDeletion)

	latter := mustCreate(t, c, claimOf("found-deleted", "latter"))
	finder, _ := podOf(t, c, latter, pavv1.WorkflowCreation)
	end(t, c, deletion, workflow.Result{}, 0)
	gone(t, c, pv)
	exists(t, c, volume, "holds the handle", func(v *pavv1.PavVolume) bool {
		held := meta.FindStatusCondition(v.Status.Conditions, pavv1.VolumeDeleted)
		return held != nil && held.Reason == "HandleHeld" && strings.Contains(held.Message, `until the handle of PavVolume "`+volumeOf(latter).Name+`" is known`)
	})
	givesWay(t, c, latter, finder)
	gone(t, c, volume)
}

// The same with storage that is reverted, while the next attempt of its volume runs.
func TestStorageFoundWhileItIsReverted_IsMadeAgain(t *testing.T) {
	c := start(t)
	run(t, c)
	driver(t, c, "found-reverted", withPods)
	former := mustCreate(t, c, claimOf("found-reverted", "former"))
	creation, _ := podOf(t, c, former, pavv1.WorkflowCreation)
	end(t, c, creation, sameStorage, 3)
	deletion, volume := podOf(t, c, former, pavv1.WorkflowDeletion)

	latter := mustCreate(t, c, claimOf("found-reverted", "latter"))
	finder, _ := podOf(t, c, latter, pavv1.WorkflowCreation)
	end(t, c, deletion, workflow.Result{}, 0)
	exists(t, c, volume, "is tried again, and holds the handle", func(v *pavv1.PavVolume) bool {
		return v.Status.FormerHandle == "shared" && v.Status.Handle == "" && v.Status.Step == pavv1.StepCreating
	})
	mustDelete(t, c, former)
	exists(t, c, volume, "holds the handle although nobody wants it", func(v *pavv1.PavVolume) bool {
		held := meta.FindStatusCondition(v.Status.Conditions, pavv1.VolumeProvisioned)
		return v.Status.Step == "" && held != nil && held.Reason == "HandleHeld"
	})
	givesWay(t, c, latter, finder)
	gone(t, c, volume)
}

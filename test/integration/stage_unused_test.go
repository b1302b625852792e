package integration

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/podplan"
)

// With a node agent's token, someone creates PavStages that reserve volumes for that node, so that no other node can have
// them and they cannot be deleted. A stage without a staging pod is released, unless a pod of that node uses the claim; one
// that is staged is not.
func TestStagesWithoutUsersAreReleased(t *testing.T) {
	c := start(t)
	run(t, c)
	driver(t, c, "taken")
	thief := mustCreate(t, c, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "thief"}})
	t.Cleanup(func() {
		if err := c.Admin.Delete(lasting(t), thief); err != nil {
			t.Error(err)
		}
	})
	token := nodeAgent(t, c, thief.Name)
	take := func(name string, status pavv1.PavStageStatus) (*corev1.PersistentVolumeClaim, *corev1.PersistentVolume, *pavv1.PavStage) {
		claim := mustCreate(t, c, claimOf("taken", name))
		pv, _ := bound(t, c, claim)
		_, exclusive := podplan.StageNames(pv.Spec.CSI.Driver, pv.Spec.CSI.VolumeHandle, thief.Name)
		stage := stageOf(pv, exclusive, thief.Name)
		stage.Spec.VolumeHandle, stage.Spec.Exclusive = pv.Spec.CSI.VolumeHandle, true
		stage.Spec.ClaimRef = pavv1.ClaimReference{Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID}
		if err := token.Create(t.Context(), stage); err != nil {
			t.Fatal(err)
		}
		stage.Status = status
		if err := token.Status().Update(t.Context(), stage); err != nil {
			t.Fatal(err)
		}
		return claim, pv, stage
	}
	_, _, staged := take("says-that-it-is-staged", pavv1.PavStageStatus{Phase: pavv1.StageStaged})
	usedClaim, _, used := take("has-a-client", pavv1.PavStageStatus{Phase: pavv1.StageStaging})
	user := mustCreate(t, c, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: usedClaim.Namespace, Name: "client-of-thief"},
		Spec: corev1.PodSpec{
			NodeName: thief.Name, Containers: []corev1.Container{{Name: "main", Image: "none"}},
			Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: usedClaim.Name},
			}}},
		},
	})
	t.Cleanup(func() {
		var now int64
		if err := c.Admin.Delete(lasting(t), user, &client.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
			t.Error(err)
		}
		for _, stage := range []*pavv1.PavStage{staged, used} {
			release := client.RawPatch("application/merge-patch+json", []byte(`{"metadata": {"finalizers": null}}`))
			if err := c.Admin.Patch(lasting(t), stage, release); err != nil {
				t.Error(err)
			}
			mustDeleteLasting(t, c, stage)
		}
	})
	// These are newer than the others: when they are gone, the others were checked.
	_, _, empty := take("keeps-it-from-others", pavv1.PavStageStatus{})
	deletedClaim, deletedPV, deleted := take("keeps-it-from-deletion", pavv1.PavStageStatus{Phase: pavv1.StageStaging})
	mustDelete(t, c, deletedClaim)
	gone(t, c, empty)
	gone(t, c, deleted)
	gone(t, c, deletedPV)
	for _, stage := range []*pavv1.PavStage{staged, used} {
		exists(t, c, stage, "is kept", func(s *pavv1.PavStage) bool { return s.DeletionTimestamp == nil && len(s.Finalizers) == 1 })
	}
}

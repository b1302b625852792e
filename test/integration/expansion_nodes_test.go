package integration

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/workflow"
)

// grownByKubelet does what kubelet does when a node has made the new capacity of a claim available.
func grownByKubelet(t *testing.T, c *cluster, claim *corev1.PersistentVolumeClaim) {
	t.Helper()
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: claim.Spec.VolumeName}}
	if err := c.Admin.Get(t.Context(), client.ObjectKeyFromObject(pv), pv); err != nil {
		t.Fatal(err)
	}
	mustPatchStatus(t, c, claim, func(claim *corev1.PersistentVolumeClaim) {
		if claim.Status.Capacity = claim.Status.AllocatedResources.DeepCopy(); !hasAllocations(c) {
			claim.Status.Capacity = pv.Spec.Capacity
		}
		claim.Status.AllocatedResourceStatuses, claim.Status.Conditions = nil, nil
	})
}

// Where nodes have to make a new capacity available, the claim is left to kubelet, whose part the test plays. After one has said
// that it is infeasible, the nodes are asked again when the definition has changed, and once for that.
func TestExpansion_OnNodes_IsLeftToKubelet(t *testing.T) {
	c := start(t)
	run(t, c)
	provisioner := driver(t, c, "growing-on-nodes", growable, func(p *pavv1.PavProvisioner, _ *storagev1.StorageClass) {
		p.Spec.VolumeDeletion, p.Spec.VolumeExpansion.NodePodTemplate = nil, field(workerTemplate)
	})
	claim := mustCreate(t, c, ownedClaim("growing-on-nodes", "me"))
	pv, _ := bound(t, c, claim)

	mustPatch(t, c, claim, requests("2Gi"))
	pod, _ := podOf(t, c, claim, pavv1.WorkflowExpansion)
	end(t, c, pod, workflow.Result{Capacity: "3Gi"}, 0) // more than requested
	const pending = "1Gi, allocated 3Gi, NodeResizePending, FileSystemResizePending"
	wantSize(t, c, claim, pending)
	wantEvent(t, c, claim, "Normal", "FileSystemResizeRequired", "has grown to 3Gi")
	exists(t, c, pv, "has grown", func(pv *corev1.PersistentVolume) bool { return pv.Spec.Capacity.Storage().String() == "3Gi" })

	says := func(state corev1.ClaimResourceStatus) {
		t.Helper()
		mustPatchStatus(t, c, claim, func(claim *corev1.PersistentVolumeClaim) {
			claim.Status.AllocatedResourceStatuses[corev1.ResourceStorage] = state
			if state == corev1.PersistentVolumeClaimNodeResizeInfeasible && len(claim.Status.Conditions) == 1 {
				claim.Status.Conditions = append(claim.Status.Conditions, corev1.PersistentVolumeClaimCondition{
					Type: corev1.PersistentVolumeClaimNodeResizeError, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now(), Message: "at most 2Gi",
				})
			}
		})
	}
	if hasAllocations(c) { // otherwise, nodes cannot say what fails
		says(corev1.PersistentVolumeClaimNodeResizeInProgress)
		says(corev1.PersistentVolumeClaimNodeResizeInfeasible)
		for _, size := range []string{"1Mi", "2Mi"} { // that the definition changes is all that matters
			wantSize(t, c, claim, "1Gi, allocated 3Gi, NodeResizeInfeasible, FileSystemResizePending")
			mustPatch(t, c, provisioner, func(p *pavv1.PavProvisioner) {
				p.Spec.VolumeValidation = &pavv1.VolumeValidation{MinCapacity: field(`"` + size + `"`)}
			})
			wantSize(t, c, claim, pending)
			says(corev1.PersistentVolumeClaimNodeResizeInfeasible)
		}
	}

	grownByKubelet(t, c, claim)
	wantSize(t, c, claim, "3Gi, allocated 3Gi")
	if says := claimSays(claim); says != kept(c, "3Gi, allocated 3Gi") {
		t.Errorf("the claim says %s", says)
	}
	mustDelete(t, c, claim)
	gone(t, c, pv)
	noPodIsLeft(t, c)
}

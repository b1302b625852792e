package integration

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

func retain(_ *pavv1.PavProvisioner, class *storagev1.StorageClass) {
	class.ReclaimPolicy = new(corev1.PersistentVolumeReclaimRetain)
}

func TestDynamicClaimIsBound(t *testing.T) {
	c := start(t)
	run(t, c)
	driver(t, c, "dynamic", func(p *pavv1.PavProvisioner, class *storagev1.StorageClass) {
		p.Spec.VolumeCreation.Handle = field(`"{{ params.pool }}/{{ pvc.metadata.name }}"`)
		p.Spec.VolumeCreation.Capacity = field(`"2Gi"`)
		class.Parameters = map[string]string{"pool": "gold", "csi.storage.k8s.io/fstype": "xfs"}
		class.MountOptions = []string{"noatime"}
	})
	began := time.Now()
	claim := mustCreate(t, c, claimOf("dynamic", "data"))
	pv, volume := bound(t, c, claim)
	t.Logf("bound after %s", time.Since(began).Round(time.Millisecond))

	want := corev1.PersistentVolumeSpec{
		Capacity:                      corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("2Gi")},
		AccessModes:                   []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		VolumeMode:                    new(corev1.PersistentVolumeFilesystem),
		MountOptions:                  []string{"noatime"},
		StorageClassName:              "dynamic",
		PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
		ClaimRef:                      &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: "default", Name: "data", UID: claim.UID},
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
			Driver: "dynamic", VolumeHandle: "gold/data", FSType: "xfs", VolumeAttributes: map[string]string{"pool": "gold"},
		}},
	}
	got := pv.Spec.DeepCopy()
	got.ClaimRef.ResourceVersion = ""
	if diff := cmp.Diff(want, *got); diff != "" {
		t.Errorf("PersistentVolume (-want +got):\n%s", diff)
	}
	if volume.Status.Handle != "gold/data" || volume.Status.Capacity.String() != "2Gi" || !meta.IsStatusConditionTrue(volume.Status.Conditions, pavv1.VolumeProvisioned) {
		t.Errorf("status of the PavVolume: %+v", volume.Status)
	}
	wantEvent(t, c, claim, "Normal", "Provisioning", `PavProvisioner "dynamic" is provisioning a volume for claim "default/data"`)
	wantEvent(t, c, claim, "Normal", "ProvisioningSucceeded", "Successfully provisioned volume "+pv.Name)

	mustPatch(t, c, claim, func(claim *corev1.PersistentVolumeClaim) { claim.Labels = map[string]string{"tier": "db"} })
	exists(t, c, volume, "follows the claim", func(v *pavv1.PavVolume) bool {
		copied := copyOf(t, v)
		return copied.Labels["tier"] == "db" && copied.Spec.VolumeName == pv.Name && copied.ManagedFields == nil
	})

	mustDelete(t, c, classOf("dynamic")) // deletion does without it
	mustDelete(t, c, claim)
	gone(t, c, claim)
	gone(t, c, pv)
	gone(t, c, volume)
}

func TestWaitForFirstConsumer(t *testing.T) {
	c := start(t)
	run(t, c)
	driver(t, c, "consumer", func(_ *pavv1.PavProvisioner, class *storagev1.StorageClass) {
		class.VolumeBindingMode = new(storagev1.VolumeBindingWaitForFirstConsumer)
	})
	driver(t, c, "immediate")
	nodeIn(t, c, "n1", "a")
	waits := mustCreate(t, c, claimOf("consumer", "waits"))
	bound(t, c, mustCreate(t, c, claimOf("immediate", "does-not"))) // so there was time for the other, too
	noVolume(t, c, waits)
	mustPatch(t, c, waits, func(claim *corev1.PersistentVolumeClaim) {
		metav1.SetMetaDataAnnotation(&claim.ObjectMeta, "volume.kubernetes.io/selected-node", "n1")
	})
	bound(t, c, waits)
}

func noVolume(t *testing.T, c *cluster, claim *corev1.PersistentVolumeClaim) {
	t.Helper()
	err := c.Admin.Get(t.Context(), client.ObjectKey{Name: "pvc-" + string(claim.UID)}, &pavv1.PavVolume{})
	if client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("claim %s has a PavVolume (%v)", claim.Name, err)
	}
}

func TestOtherProvisionersClaimIsIgnored(t *testing.T) {
	c := start(t)
	run(t, c)
	driver(t, c, "ours")
	class := mustCreate(t, c, &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "theirs"}, Provisioner: "theirs.example.com"})
	t.Cleanup(func() { _ = c.Admin.Delete(lasting(t), class) })
	theirs := mustCreate(t, c, claimOf("theirs", "theirs"))
	exists(t, c, theirs, "has its annotation", func(claim *corev1.PersistentVolumeClaim) bool {
		return claim.Annotations["volume.kubernetes.io/storage-provisioner"] != ""
	})
	forged := claimOf("theirs", "forged")
	forged.Annotations = map[string]string{"volume.beta.kubernetes.io/storage-provisioner": "ours"}
	mustCreate(t, c, forged)
	bound(t, c, mustCreate(t, c, claimOf("ours", "data")))
	for _, claim := range []*corev1.PersistentVolumeClaim{theirs, forged} {
		noVolume(t, c, claim)
		if events := eventsOf(t.Context(), t, c, claim); len(events) > 0 {
			t.Errorf("claim %s has events of PaV's: %+v", claim.Name, events)
		}
		mustDelete(t, c, claim)
		gone(t, c, claim)
	}
}

func TestRetainedVolumeStaysAndHoldsNothing(t *testing.T) {
	c := start(t)
	run(t, c)
	provisioner := driver(t, c, "retain", retain)
	claim := mustCreate(t, c, claimOf("retain", "data"))
	pv, volume := bound(t, c, claim)
	exists(t, c, pv, "holds nothing of PaV's", func(pv *corev1.PersistentVolume) bool {
		return cmp.Equal(pv.Finalizers, []string{"kubernetes.io/pv-protection"})
	})
	mustDelete(t, c, claim)
	exists(t, c, volume, "is retained", func(v *pavv1.PavVolume) bool {
		return v.Status.Phase == pavv1.VolumeRetained && len(v.Finalizers) == 0
	})
	exists(t, c, pv, "is released", func(pv *corev1.PersistentVolume) bool { return pv.Status.Phase == corev1.VolumeReleased })
	mustDelete(t, c, provisioner)
	gone(t, c, provisioner) // although the volume is there
	mustDelete(t, c, pv)
	gone(t, c, pv)
	exists(t, c, volume, "stays as a record", func(v *pavv1.PavVolume) bool { return v.DeletionTimestamp == nil })
}

func TestReclaimPolicyFollowsThePersistentVolume(t *testing.T) {
	c := start(t)
	run(t, c)
	driver(t, c, "policy", retain)
	claim := mustCreate(t, c, claimOf("policy", "data"))
	pv, volume := bound(t, c, claim)
	for _, policy := range []corev1.PersistentVolumeReclaimPolicy{corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRetain} {
		mustPatch(t, c, pv, func(pv *corev1.PersistentVolume) { pv.Spec.PersistentVolumeReclaimPolicy = policy })
		exists(t, c, volume, "follows", func(v *pavv1.PavVolume) bool { return v.Spec.ReclaimPolicy == policy })
		exists(t, c, pv, "follows", func(pv *corev1.PersistentVolume) bool {
			return (len(pv.Finalizers) == 2) == (policy == corev1.PersistentVolumeReclaimDelete)
		})
	}
	mustDelete(t, c, claim)
	exists(t, c, volume, "is retained", func(v *pavv1.PavVolume) bool { return v.Status.Phase == pavv1.VolumeRetained })
	mustPatch(t, c, pv, func(pv *corev1.PersistentVolume) {
		pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
	})
	gone(t, c, pv)
	gone(t, c, volume)
}

func TestPersistentVolumeDeletedByHandIsProtected(t *testing.T) {
	c := start(t)
	run(t, c)
	driver(t, c, "byhand")
	claim := mustCreate(t, c, claimOf("byhand", "data"))
	pv, volume := bound(t, c, claim)
	mustDelete(t, c, pv)
	mustDelete(t, c, volume)
	exists(t, c, volume, "says that it waits", func(v *pavv1.PavVolume) bool {
		c := meta.FindStatusCondition(v.Status.Conditions, pavv1.VolumeDeleted)
		return c != nil && c.Reason == "InUse"
	})
	mustDelete(t, c, claim)
	gone(t, c, pv)
	gone(t, c, volume)
}

// Its PavVolume was removed by force: PaV cannot delete the storage, and must not keep the object forever.
func TestPersistentVolumeWithoutPavVolume_GoesWhenItIsDeleted(t *testing.T) {
	c := start(t)
	run(t, c)
	claim, pv, volume, stage := staged(t, c, "forced")
	wipe(t, c, volume)

	mustDelete(t, c, pv)
	mustDelete(t, c, claim)
	wantEvent(t, c, pv, "Normal", "VolumeDeletionWaiting", "waiting for the volume to be unstaged on node forced-node")
	mustPatch(t, c, stage, func(s *pavv1.PavStage) { s.Finalizers = nil })
	mustDelete(t, c, stage)
	wantEvent(t, c, pv, "Warning", "VolumeFailedDelete", fmt.Sprintf("PaV has not deleted the storage of handle %q", pv.Spec.CSI.VolumeHandle))
	gone(t, c, pv)
}

// It is a copy that was made by hand: its storage belongs to another PersistentVolume, so no event may advise to delete it.
func TestPersistentVolumeWithoutPavVolume_StorageOfOthersIsNotReportedAsLeft(t *testing.T) {
	c := start(t)
	run(t, c)
	driver(t, c, "copied")
	pv, _ := bound(t, c, mustCreate(t, c, claimOf("copied", "data")))
	second := asBackedUp(pv)
	second.Name, second.Spec.ClaimRef = "second", &corev1.ObjectReference{Namespace: "default", Name: "nobody", UID: "nobody"}
	mustCreate(t, c, second)
	wantEvent(t, c, second, "Warning", "VolumeFailedDelete", fmt.Sprintf("but not the storage of handle %q, which PersistentVolume %q has, too", pv.Spec.CSI.VolumeHandle, pv.Name))
	mustDelete(t, c, second)
	gone(t, c, second)
	for _, e := range eventsOf(t.Context(), t, c, second) {
		if strings.Contains(e.Message, "PaV has not deleted the storage") {
			t.Errorf("it has the event: %s", e.Message)
		}
	}
}

// Without its provisioner it is unknown whether it is PaV's.
func TestPersistentVolumeWithoutPavVolume_WaitsForItsProvisioner(t *testing.T) {
	const name = "recreated"
	c := start(t)
	run(t, c)
	provisioner := driver(t, c, name)
	claim := mustCreate(t, c, claimOf(name, "data"))
	pv, volume := bound(t, c, claim)
	wipe(t, c, volume)
	mustDelete(t, c, provisioner)
	gone(t, c, provisioner)
	mustDelete(t, c, pv)
	mustDelete(t, c, claim)
	exists(t, c, pv, "has PaV's finalizer only", func(pv *corev1.PersistentVolume) bool {
		return cmp.Equal(pv.Finalizers, []string{pavv1.PVFinalizer})
	})
	mustCreate(t, c, provisionerOf(name))
	gone(t, c, pv)
}

func TestClaimDeletedBeforeItIsProvisioned(t *testing.T) {
	c := start(t)
	run(t, c)
	driver(t, c, "unfinished", func(p *pavv1.PavProvisioner, _ *storagev1.StorageClass) { p.Spec.VolumeCreation = nil })
	claim := mustCreate(t, c, claimOf("unfinished", "data"))
	wantEvent(t, c, claim, "Warning", "ProvisioningFailed", "spec.volumeCreation.capacity: is required")
	volume := &pavv1.PavVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-" + string(claim.UID)}}
	exists(t, c, volume, "says why it is not provisioned", func(v *pavv1.PavVolume) bool {
		return meta.IsStatusConditionFalse(v.Status.Conditions, pavv1.VolumeProvisioned) && v.Status.Phase == pavv1.VolumePending
	})
	mustDelete(t, c, claim)
	gone(t, c, claim)
	gone(t, c, volume)
}

func TestEditedProvisioner_ClaimsRecover(t *testing.T) {
	c := start(t)
	run(t, c)
	provisioner := driver(t, c, "healing", func(p *pavv1.PavProvisioner, _ *storagev1.StorageClass) { p.Spec.VolumeCreation = nil })
	claim := mustCreate(t, c, claimOf("healing", "data"))
	wantEvent(t, c, claim, "Warning", "ProvisioningFailed", "spec.volumeCreation.capacity: is required")
	mustPatch(t, c, provisioner, func(p *pavv1.PavProvisioner) {
		p.Spec.VolumeCreation = &pavv1.VolumeCreation{Capacity: field(`"1Gi"`)}
	})
	bound(t, c, claim)
}

// staged returns a claim of a new driver and its volume, which is staged on the node NAME-node.
func staged(t *testing.T, c *cluster, name string) (*corev1.PersistentVolumeClaim, *corev1.PersistentVolume, *pavv1.PavVolume, *pavv1.PavStage) {
	t.Helper()
	driver(t, c, name)
	node := name + "-node"
	nodeIn(t, c, node, "none")
	claim := mustCreate(t, c, claimOf(name, "data"))
	pv, volume := bound(t, c, claim)
	return claim, pv, volume, createStaged(t, c, stageOf(pv, "stage-"+name, node))
}

func TestDeletionWaitsForTheLastStage(t *testing.T) {
	c := start(t)
	run(t, c)
	claim, pv, volume, stage := staged(t, c, "staged")

	mustDelete(t, c, claim)
	gone(t, c, claim)
	exists(t, c, volume, "waits", func(v *pavv1.PavVolume) bool {
		c := meta.FindStatusCondition(v.Status.Conditions, pavv1.VolumeDeleted)
		return v.Status.Phase == pavv1.VolumeDeleting && c != nil && c.Reason == "StillStaged"
	})
	wantEvent(t, c, pv, "Normal", "VolumeDeletionWaiting", "waiting for the volume to be unstaged on node staged-node")
	exists(t, c, pv, "is kept", func(pv *corev1.PersistentVolume) bool {
		return pv.DeletionTimestamp == nil && pv.Status.Phase == corev1.VolumeReleased
	})
	mustPatch(t, c, stage, func(s *pavv1.PavStage) { s.Finalizers = nil })
	mustDelete(t, c, stage)
	gone(t, c, pv)
	gone(t, c, volume)
}

func TestHandleInUse(t *testing.T) {
	c := start(t)
	run(t, c)
	driver(t, c, "duplicates", func(p *pavv1.PavProvisioner, _ *storagev1.StorageClass) {
		p.Spec.VolumeCreation.Handle = field(`"the only one"`)
	})
	first := mustCreate(t, c, claimOf("duplicates", "first"))
	pv, _ := bound(t, c, first)
	second := mustCreate(t, c, claimOf("duplicates", "second"))
	wantEvent(t, c, second, "Warning", "ProvisioningFailed",
		`PavProvisioner "duplicates": spec.volumeCreation.handle: the handle "the only one" is already in use by PersistentVolume "`+pv.Name+`"`)
	exists(t, c, volumeOf(second), "has failed for that reason", func(v *pavv1.PavVolume) bool {
		return v.Status.Failure != nil && v.Status.Failure.Reason == pavv1.FailureHandleInUse && v.Status.Failure.NextAttemptTime != nil
	})
	mustDelete(t, c, first)
	bound(t, c, second) // with backoff, as soon as the handle is free
}

// Also while the first is still being provisioned, the second is refused with a reason, and not tried all the time.
func TestHandleInUse_WhileItsPodRuns(t *testing.T) {
	c := start(t)
	run(t, c)
	driver(t, c, "slow-duplicates", withPods, func(p *pavv1.PavProvisioner, _ *storagev1.StorageClass) {
		p.Spec.VolumeCreation.Handle = field(`"the only one"`)
	})
	first := mustCreate(t, c, claimOf("slow-duplicates", "first"))
	podOf(t, c, first, pavv1.WorkflowCreation)
	second := mustCreate(t, c, claimOf("slow-duplicates", "second"))
	wantEvent(t, c, second, "Warning", "ProvisioningFailed", `the handle "the only one" is already in use by PavVolume "`+volumeOf(first).Name+`"`)
}

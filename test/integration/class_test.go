package integration

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// needsPool makes a provisioner fail unless the StorageClass has the parameter pool.
func needsPool(p *pavv1.PavProvisioner, _ *storagev1.StorageClass) {
	p.Spec.VolumeCreation.Handle = field(`"{{ params.pool }}/{{ pvc.metadata.uid }}"`)
}

// replaced replaces a StorageClass by one of the same name.
func replaced(t *testing.T, c *cluster, class string, change func(*storagev1.StorageClass)) {
	t.Helper()
	mustDelete(t, c, classOf(class))
	other := classOf(class)
	change(other)
	mustCreate(t, c, other)
}

func TestStorageClassReplaced_WhileItsClaimFails_IsThatOfTheNextAttempt(t *testing.T) {
	c := start(t)
	run(t, c)
	driver(t, c, "reclassed", needsPool)
	claim := mustCreate(t, c, claimOf("reclassed", "data"))
	wantEvent(t, c, claim, "Warning", "ProvisioningFailed", "spec.volumeCreation.handle: ")
	replaced(t, c, "reclassed", func(s *storagev1.StorageClass) {
		s.Parameters = map[string]string{"pool": "gold"}
		s.ReclaimPolicy = new(corev1.PersistentVolumeReclaimRetain)
		s.MountOptions = []string{"noatime"}
	})
	pv, volume := bound(t, c, claim)
	if spec := pv.Spec; spec.CSI.VolumeHandle != "gold/"+string(claim.UID) || spec.CSI.VolumeAttributes["pool"] != "gold" ||
		spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain || len(spec.MountOptions) != 1 {
		t.Errorf("the PersistentVolume is not of the new class: %+v", spec)
	}
	if volume.Spec.ReclaimPolicy != corev1.PersistentVolumeReclaimRetain {
		t.Errorf("the reclaim policy of the PavVolume is %s", volume.Spec.ReclaimPolicy)
	}
	mustDelete(t, c, claim)
	exists(t, c, volume, "is retained", func(v *pavv1.PavVolume) bool { return v.Status.Phase == pavv1.VolumeRetained })
}

// The class may even have another provisioner by then.
func TestStorageClassReplaced_ByOneOfAnotherProvisioner(t *testing.T) {
	c := start(t)
	run(t, c)
	driver(t, c, "hired")
	driver(t, c, "fired", needsPool)
	claim := mustCreate(t, c, claimOf("fired", "data"))
	wantEvent(t, c, claim, "Warning", "ProvisioningFailed", `PavProvisioner "fired": spec.volumeCreation.handle: `)
	replaced(t, c, "fired", func(s *storagev1.StorageClass) { s.Provisioner = "hired" })
	if pv, volume := bound(t, c, claim); pv.Spec.CSI.Driver != "hired" || volume.Spec.Provisioner != "hired" {
		t.Errorf("the volume is of %q, its record of %q", pv.Spec.CSI.Driver, volume.Spec.Provisioner)
	}
	mustDelete(t, c, claim)
	gone(t, c, volumeOf(claim))
}

func TestStorageClassDeleted_WhileItsClaimFails_IsRemembered(t *testing.T) {
	c := start(t)
	run(t, c)
	provisioner := driver(t, c, "declassed", func(p *pavv1.PavProvisioner, s *storagev1.StorageClass) {
		p.Spec.VolumeCreation.Handle = field(`"{{ params.pool.name }}"`)
		s.Parameters = map[string]string{"pool": "gold"}
	})
	claim := mustCreate(t, c, claimOf("declassed", "data"))
	wantEvent(t, c, claim, "Warning", "ProvisioningFailed", "spec.volumeCreation.handle: ")
	mustDelete(t, c, classOf("declassed"))
	failed := volumeOf(claim)
	exists(t, c, failed, "fails on", func(v *pavv1.PavVolume) bool { return v.Status.Attempt >= 3 && v.Status.Failure != nil })
	mustPatch(t, c, provisioner, func(p *pavv1.PavProvisioner) { needsPool(p, nil) })
	if pv, _ := bound(t, c, claim); pv.Spec.StorageClassName != "declassed" || pv.Spec.CSI.VolumeAttributes["pool"] != "gold" {
		t.Errorf("the PersistentVolume is not of the class that is gone: %+v", pv.Spec)
	}
}

func TestClassThatAllowsExpansion_EventSaysThatVolumesCannotBeExpanded(t *testing.T) {
	c := start(t)
	run(t, c)
	driver(t, c, "growing", func(_ *pavv1.PavProvisioner, s *storagev1.StorageClass) { s.AllowVolumeExpansion = new(true) })
	claim := mustCreate(t, c, claimOf("growing", "data"))
	bound(t, c, claim)
	wantEvent(t, c, claim, "Warning", "VolumeExpansionUnsupported",
		`allowVolumeExpansion of StorageClass "growing" is true, but volumes of PavProvisioner "growing" cannot grow: request what is needed now`)
}

// Old claims name their class in an annotation.
func TestOlderAnnotation_NamesTheStorageClass(t *testing.T) {
	c := start(t)
	run(t, c)
	driver(t, c, "old")
	claim := claimOf("", "data")
	claim.Spec.StorageClassName = nil
	claim.Annotations = map[string]string{corev1.BetaStorageClassAnnotation: "old"}
	mustCreate(t, c, claim)
	pv, _ := bound(t, c, claim)
	if pv.Spec.StorageClassName != "old" || pv.Annotations[corev1.BetaStorageClassAnnotation] != "" {
		t.Errorf("the PersistentVolume's class is %q, its annotations are %v", pv.Spec.StorageClassName, pv.Annotations)
	}
	mustDelete(t, c, claim)
	gone(t, c, pv)
}

func TestBoundClaim_IsIgnored(t *testing.T) {
	c := start(t)
	run(t, c)
	driver(t, c, "taken")
	claim := claimOf("taken", "bound")
	claim.Spec.VolumeName = "elsewhere"
	claim.Annotations = map[string]string{"volume.kubernetes.io/storage-provisioner": "taken"}
	mustCreate(t, c, claim)
	bound(t, c, mustCreate(t, c, claimOf("taken", "unbound"))) // so there was time for the other, too
	noVolume(t, c, claim)
	if events := eventsOf(t.Context(), t, c, claim); len(events) > 0 {
		t.Errorf("the claim has events of PaV's: %+v", events)
	}
}

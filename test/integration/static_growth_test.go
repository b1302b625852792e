package integration

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/workflow"
)

// withStatic lets administrators write volumes of a provisioner.
func withStatic(p *pavv1.PavProvisioner, _ *storagev1.StorageClass) {
	p.Spec.ProvisioningModes = []pavv1.ProvisioningMode{pavv1.ProvisioningModeDynamic, pavv1.ProvisioningModeStatic}
}

// boundStatic returns a volume that an administrator wrote, of a provisioner and a class of the same name, its claim, and its record, once
// PaV has written what it is.
func boundStatic(t *testing.T, c *cluster, provisioner, name string, changes ...func(*corev1.PersistentVolume)) (*corev1.PersistentVolumeClaim, *corev1.PersistentVolume, *pavv1.PavVolume) {
	t.Helper()
	claim := claimOf(provisioner, name)
	claim.Spec.VolumeName = name
	mustCreate(t, c, claim)
	pv := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: claim.Spec.Resources.Requests, AccessModes: claim.Spec.AccessModes, StorageClassName: provisioner,
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
				Driver: provisioner, VolumeHandle: "made by hand", VolumeAttributes: map[string]string{"pool": "silver"},
			}},
		},
	}
	for _, change := range changes {
		change(pv)
	}
	mustCreate(t, c, pv)
	t.Cleanup(func() { mustDeleteLasting(t, c, claim); mustDeleteLasting(t, c, pv) })
	// The record may be complete before that, and only a bound claim may request more.
	awaitBound(t, c, claim)
	record := &pavv1.PavVolume{ObjectMeta: metav1.ObjectMeta{Name: name}}
	exists(t, c, record, "is complete", func(v *pavv1.PavVolume) bool {
		return v.Spec.Static && v.Status.Phase == pavv1.VolumeReady && v.Status.Handle == "made by hand"
	})
	return claim, pv, record
}

// A volume that an administrator wrote grows as one that PaV provisioned does, and is the administrator's after that: its storage is not
// deleted, whatever its reclaim policy.
func TestStaticVolume_Grows(t *testing.T) {
	c := start(t)
	a := run(t, c)
	driver(t, c, "static-growing", growable, withStatic)
	claim, pv, record := boundStatic(t, c, "static-growing", "static-growing")

	mustPatch(t, c, claim, requests("2Gi"))
	failing := podOfVolume(t, c, record, pavv1.WorkflowExpansion)
	if got, want := failing.Annotations["sees"], "True 1073741824 2147483648 True silver static-growing"; got != want {
		t.Errorf("the expansion pod sees %q, want %q", got, want)
	}
	end(t, c, failing, workflow.Result{Error: "the pool is full"}, 1)
	wantEvent(t, c, claim, "Warning", "VolumeResizeFailed", "the pool is full")
	exists(t, c, record, "has another pod", func(v *pavv1.PavVolume) bool {
		return v.Status.Pod != nil && v.Status.Pod.UID != "" && v.Status.Pod.UID != failing.UID
	})
	end(t, c, podOfVolume(t, c, record, pavv1.WorkflowExpansion), workflow.Result{Capacity: "3Gi"}, 0)
	wantSize(t, c, claim, "3Gi, allocated 2Gi")
	exists(t, c, pv, "has grown", func(pv *corev1.PersistentVolume) bool { return pv.Spec.Capacity.Storage().String() == "3Gi" })
	exists(t, c, record, "has no expansion", func(v *pavv1.PavVolume) bool {
		return v.Status.Capacity.String() == "3Gi" && v.Status.Expansion == nil && meta.FindStatusCondition(v.Status.Conditions, pavv1.VolumeExpanded) == nil
	})

	mustPatch(t, c, pv, func(pv *corev1.PersistentVolume) {
		pv.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("5Gi")}
	})
	exists(t, c, record, "has what the administrator wrote", func(v *pavv1.PavVolume) bool { return v.Status.Capacity.String() == "5Gi" })

	mustDelete(t, c, claim)
	gone(t, c, record)
	exists(t, c, pv, "is let go", func(pv *corev1.PersistentVolume) bool {
		return pv.Status.Phase == corev1.VolumeReleased || pv.Status.Phase == corev1.VolumeFailed
	})
	isKept(t, c, pv)
	if n := podsMade(a); n != 2 {
		t.Errorf("%d pods were made, want 2 expansion pods", n)
	}
	noPodIsLeft(t, c)
}

// The record of a static volume comes when the definition says that its volumes can change, and again when someone deletes it. No record
// is made of a volume of which PaV cannot tell where it is.
func TestStaticVolume_IsRecordedWhenItCanChange(t *testing.T) {
	c := start(t)
	run(t, c)
	provisioner := driver(t, c, "static-later", withStatic)
	claim := claimOf("static-later", "static-elsewhere")
	claim.Spec.VolumeName = "static-elsewhere"
	mustCreate(t, c, claim)
	elsewhere := mustCreate(t, c, &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "static-elsewhere"},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: claim.Spec.Resources.Requests, AccessModes: claim.Spec.AccessModes, StorageClassName: "static-later",
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
				{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "pool", Operator: corev1.NodeSelectorOpExists}}},
			}}},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "static-later", VolumeHandle: "elsewhere"}},
		},
	})
	t.Cleanup(func() { mustDeleteLasting(t, c, claim); mustDeleteLasting(t, c, elsewhere) })
	awaitBound(t, c, claim)

	mustPatch(t, c, provisioner, func(p *pavv1.PavProvisioner) { p.Spec.VolumeExpansion = &pavv1.VolumeExpansion{} })
	wantEvent(t, c, elsewhere, "Warning", "VolumeExpansionUnsupported", "only matchExpressions with the operator In")
	gone(t, c, &pavv1.PavVolume{ObjectMeta: metav1.ObjectMeta{Name: elsewhere.Name}})

	_, _, record := boundStatic(t, c, "static-later", "static-later", func(pv *corev1.PersistentVolume) {
		pv.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
			{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "pool", Operator: corev1.NodeSelectorOpIn, Values: []string{"silver"}}}},
		}}}
	})
	if within := record.Status.AccessibleTopology; len(within) != 1 || within[0]["pool"] != "silver" {
		t.Errorf("pods run within %v", within)
	}
	former := record.UID
	mustDelete(t, c, record)
	exists(t, c, record, "is written again", func(v *pavv1.PavVolume) bool { return v.UID != former && v.Status.Phase == pavv1.VolumeReady })
}

// What an expansion that failed may have done to a static volume outlives the claim that asked for it: a copy for the next claim must be as
// large as the storage may be.
func TestStaticVolume_NextClaimIsToldWhatAFailedExpansionReached(t *testing.T) {
	c := start(t)
	run(t, c)
	driver(t, c, "static-handed-on", growable, withStatic)
	claim, pv, record := boundStatic(t, c, "static-handed-on", "static-handed-on", func(pv *corev1.PersistentVolume) {
		pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	})
	mustPatch(t, c, claim, requests("2Gi"))
	end(t, c, podOfVolume(t, c, record, pavv1.WorkflowExpansion), workflow.Result{Error: "the pool is full"}, 1)
	reached := func(v *pavv1.PavVolume) bool {
		return v.Status.AttemptedCapacity != nil && v.Status.AttemptedCapacity.String() == "2Gi"
	}
	exists(t, c, record, "has failed to grow", reached)

	mustDelete(t, c, claim)
	exists(t, c, pv, "is released", func(pv *corev1.PersistentVolume) bool { return pv.Status.Phase == corev1.VolumeReleased })
	mustPatch(t, c, pv, func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef = nil })
	next := claimOf("static-handed-on", "static-handed-on-next")
	next.Spec.VolumeName = pv.Name
	mustCreate(t, c, next)
	t.Cleanup(func() { mustDeleteLasting(t, c, next) })
	former := record.UID
	exists(t, c, record, "is the next claim's", func(v *pavv1.PavVolume) bool { return v.Spec.ClaimRef.UID == next.UID && reached(v) })
	if record.UID != former {
		t.Error("the record is another one")
	}
	mustDelete(t, c, next)
	mustDelete(t, c, pv)
	gone(t, c, record)
}

// The record of a static volume does not keep its provisioner from being deleted, and is written again when there is one.
func TestStaticVolume_RecordGoesWithItsProvisioner(t *testing.T) {
	c := start(t)
	run(t, c)
	provisioner := driver(t, c, "static-leaving", growable, withStatic)
	_, pv, record := boundStatic(t, c, "static-leaving", "static-leaving")
	mustDelete(t, c, provisioner)
	gone(t, c, record)
	gone(t, c, provisioner)
	isKept(t, c, pv)
}

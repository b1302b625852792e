package integration

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

func csiDriver(name string) *storagev1.CSIDriver {
	return &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func TestProvisionerHasACSIDriver(t *testing.T) {
	c := start(t)
	run(t, c)
	provisioner := driver(t, c, "registered")
	csi := csiDriver("registered")
	exists(t, c, csi, "is PaV's", func(d *storagev1.CSIDriver) bool {
		return metav1.IsControlledBy(d, provisioner) && d.Labels[pavv1.ProvisionerLabel] == "registered" && !*d.Spec.AttachRequired && *d.Spec.PodInfoOnMount
	})
	exists(t, c, provisioner, "is ready", func(p *pavv1.PavProvisioner) bool {
		return meta.IsStatusConditionTrue(p.Status.Conditions, pavv1.ProvisionerAccepted) && meta.IsStatusConditionTrue(p.Status.Conditions, pavv1.ProvisionerReady)
	})
	mustPatch(t, c, csi, func(d *storagev1.CSIDriver) { d.Spec.PodInfoOnMount = new(false) })
	exists(t, c, csi, "is put right", func(d *storagev1.CSIDriver) bool { return *d.Spec.PodInfoOnMount })
	mustDelete(t, c, csi)
	exists(t, c, csi, "is back", func(d *storagev1.CSIDriver) bool { return d.DeletionTimestamp == nil })
	mustDelete(t, c, provisioner)
	gone(t, c, provisioner)
	gone(t, c, csi)
}

// A definition that was written without the webhook.
func TestProvisionerWithMistakes_SaysSo_AndServes(t *testing.T) {
	c := start(t)
	run(t, c)
	provisioner := driver(t, c, "mistaken", func(p *pavv1.PavProvisioner, _ *storagev1.StorageClass) {
		p.Spec.VolumeUnstaging = &pavv1.VolumeUnstaging{PodTemplate: field(`{"spec": {"contaners": []}}`)}
	})
	exists(t, c, provisioner, "says so", func(p *pavv1.PavProvisioner) bool {
		accepted := meta.FindStatusCondition(p.Status.Conditions, pavv1.ProvisionerAccepted)
		return accepted != nil && accepted.Reason == pavv1.ProvisionerInvalid && strings.Contains(accepted.Message, "spec.volumeUnstaging.podTemplate.spec.contaners: ") &&
			meta.IsStatusConditionTrue(p.Status.Conditions, pavv1.ProvisionerReady)
	})
	bound(t, c, mustCreate(t, c, claimOf("mistaken", "data")))
	mustPatch(t, c, provisioner, func(p *pavv1.PavProvisioner) { p.Spec.VolumeUnstaging = nil })
	exists(t, c, provisioner, "is accepted", func(p *pavv1.PavProvisioner) bool {
		return meta.IsStatusConditionTrue(p.Status.Conditions, pavv1.ProvisionerAccepted)
	})
}

func TestProvisionerCounts(t *testing.T) {
	c := start(t)
	run(t, c)
	provisioner := driver(t, c, "counting")
	counts := func(what, nodes string, volumes int32) {
		t.Helper()
		exists(t, c, provisioner, what, func(p *pavv1.PavProvisioner) bool {
			s := p.Status
			return s.Nodes != nil && s.Nodes.Summary == nodes && *s.Volumes == pavv1.ProvisionerCount{Total: volumes} && s.Stages.Total == 0
		})
	}
	counts("has nothing", "0/0", 0)
	csiNode := func(name string, drivers ...string) *storagev1.CSINode {
		node := &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: name}}
		for _, driver := range drivers {
			node.Spec.Drivers = append(node.Spec.Drivers, storagev1.CSINodeDriver{Name: driver, NodeID: name})
		}
		t.Cleanup(func() { _ = c.Admin.Delete(lasting(t), node) })
		return mustCreate(t, c, node)
	}
	csiNode("other", "another.example.com")
	first := csiNode("first", pavv1.Driver, "counting")
	second := csiNode("second", pavv1.Driver)
	counts("is on one of two nodes", "1/2", 0)
	mustPatch(t, c, second, func(n *storagev1.CSINode) {
		n.Spec.Drivers = append(n.Spec.Drivers, storagev1.CSINodeDriver{Name: "counting", NodeID: "second"})
	})
	counts("is on both", "2/2", 0)
	mustDelete(t, c, first)
	counts("is on the one that is left", "1/1", 0)
	claim := mustCreate(t, c, claimOf("counting", "data"))
	bound(t, c, claim)
	counts("has a volume", "1/1", 1)
	mustDelete(t, c, claim)
	counts("has none", "1/1", 0)
}

func TestProvisionerDeletionWaitsForItsVolumes(t *testing.T) {
	c := start(t)
	run(t, c)
	provisioner := driver(t, c, "leaving")
	claim := mustCreate(t, c, claimOf("leaving", "data"))
	pv, volume := bound(t, c, claim)
	mustDelete(t, c, provisioner)
	exists(t, c, provisioner, "says what it waits for", func(p *pavv1.PavProvisioner) bool {
		c := meta.FindStatusCondition(p.Status.Conditions, pavv1.ProvisionerDeleting)
		return c != nil && c.Message == `waiting for 1 PavVolume(s), for example "`+volume.Name+`": delete the claims and pods that use them`
	})
	late := mustCreate(t, c, claimOf("leaving", "late"))
	wantEvent(t, c, late, "Warning", "ProvisioningFailed", `PavProvisioner "leaving" is being deleted`)
	mustDelete(t, c, late)
	mustDelete(t, c, claim)
	gone(t, c, pv)
	gone(t, c, volume)
	gone(t, c, provisioner)
	gone(t, c, csiDriver("leaving"))
}

func TestProvisionerDeletionWaitsForItsStages(t *testing.T) {
	c := start(t)
	run(t, c)
	provisioner := driver(t, c, "static")
	exists(t, c, csiDriver("static"), "exists", func(*storagev1.CSIDriver) bool { return true })
	node := mustCreate(t, c, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "static-node"}})
	t.Cleanup(func() { _ = c.Admin.Delete(lasting(t), node) })
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "static-pv"}, Spec: corev1.PersistentVolumeSpec{
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "static"}},
	}}
	stage := createStaged(t, c, stageOf(pv, "stage-static", node.Name))
	failed := stageOf(pv, "stage-static-failed", node.Name)
	failed.Finalizers = nil // the record of a failure, which holds nothing
	mustCreate(t, c, failed)
	t.Cleanup(func() { _ = c.Admin.Delete(lasting(t), failed) })
	mustDelete(t, c, provisioner)
	exists(t, c, provisioner, "says what it waits for", func(p *pavv1.PavProvisioner) bool {
		c := meta.FindStatusCondition(p.Status.Conditions, pavv1.ProvisionerDeleting)
		return c != nil && c.Message == `waiting for 1 PavStage(s), for example "stage-static": delete the claims and pods that use them`
	})
	mustPatch(t, c, stage, func(s *pavv1.PavStage) { s.Finalizers = nil })
	mustDelete(t, c, stage)
	gone(t, c, provisioner)
}

func TestForeignCSIDriverIsNotTouched(t *testing.T) {
	c := start(t)
	run(t, c)
	foreign := csiDriver("foreign")
	foreign.Spec.AttachRequired = new(true)
	mustCreate(t, c, foreign)
	t.Cleanup(func() { _ = c.Admin.Delete(lasting(t), foreign) })
	provisioner := driver(t, c, "foreign")
	exists(t, c, provisioner, "is not accepted", func(p *pavv1.PavProvisioner) bool {
		c := meta.FindStatusCondition(p.Status.Conditions, pavv1.ProvisionerAccepted)
		return c != nil && c.Status == metav1.ConditionFalse && c.Reason == "ForeignCSIDriver"
	})
	claim := mustCreate(t, c, claimOf("foreign", "data"))
	wantEvent(t, c, claim, "Warning", "ProvisioningFailed", `PavProvisioner "foreign" cannot be used: CSIDriver "foreign" exists and is not PaV's`)
	mustDelete(t, c, claim)
	mustDelete(t, c, provisioner)
	gone(t, c, provisioner)
	version := foreign.ResourceVersion
	exists(t, c, foreign, "is untouched", func(d *storagev1.CSIDriver) bool { return d.ResourceVersion == version })
}

func TestProvisionerDeletion_DeletesUnfinishedVolumes(t *testing.T) {
	c := start(t)
	run(t, c)
	provisioner := driver(t, c, "hopeless", func(p *pavv1.PavProvisioner, _ *storagev1.StorageClass) { p.Spec.VolumeCreation = nil })
	claim := mustCreate(t, c, claimOf("hopeless", "data"))
	wantEvent(t, c, claim, "Warning", "ProvisioningFailed", "spec.volumeCreation.capacity: is required")
	mustDelete(t, c, provisioner)
	gone(t, c, provisioner)
	noVolume(t, c, claim)
}

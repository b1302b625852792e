package snapshot

import (
	"fmt"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/reading"
	"github.com/albertofaria/pav/internal/controller/rule"
	"github.com/albertofaria/pav/internal/reconcile"
)

// refusal returns why no pod can create the snapshot, or nil.
func (o observation) refusal() *rule.Decision {
	reason, message := o.whyRefused()
	if message == "" {
		return nil
	}
	d := rule.Waiting(pavv1.SnapshotCreated, reason, message, true)
	return &d
}

// obstacle decides about a volume that must not be read yet; nil if it may.
func (o observation) obstacle() *rule.Decision { return o.reading().Obstacle(pavv1.SnapshotCreated) }

// givenAway reports whether the PersistentVolume is not bound any more to the claim for which the snapshot was requested: another tenant may
// have the storage.
func (o observation) givenAway() bool {
	uid := o.record.Spec.ClaimUID
	return uid != "" && o.pv != nil && (o.pv.Spec.ClaimRef == nil || o.pv.Spec.ClaimRef.UID != uid) // one that is released keeps its claim
}

func (o observation) whyRefused() (reason, message string) {
	name := o.record.Spec.Provisioner
	switch {
	case o.provisioner == nil:
		return "NoProvisioner", fmt.Sprintf("PavProvisioner %q does not exist, and only it defines how to create snapshots: create it again", name)
	case o.provisioner.DeletionTimestamp != nil:
		return "NoProvisioner", fmt.Sprintf("PavProvisioner %q is being deleted", name)
	case o.provisioner.Refusal() != "":
		return "NoProvisioner", fmt.Sprintf("PavProvisioner %q cannot be used: %s", name, o.provisioner.Refusal())
	case o.provisioner.Spec.SnapshotCreation == nil:
		return "Unsupported", fmt.Sprintf("PavProvisioner %q has no spec.snapshotCreation, so that its volumes cannot be snapshotted", name)
	}
	if !o.pending() {
		return "", ""
	}
	switch {
	case o.pv == nil || o.pv.DeletionTimestamp != nil:
		return "NoVolume", fmt.Sprintf("the PersistentVolume %q, of which the snapshot is to be made, does not exist any more", o.record.Spec.VolumeName)
	case o.givenAway():
		return "NoVolume", fmt.Sprintf("the PersistentVolume %q, of which the snapshot is to be made, is not bound any more to the claim that VolumeSnapshot %q names", o.record.Spec.VolumeName, o.record.Spec.SnapshotRef.Namespace+"/"+o.record.Spec.SnapshotRef.Name)
	case o.volume == nil && !o.nameTaken && reconcile.IsStaticInUse(o.pv) && o.provisioner.Supports(pavv1.ProvisioningModeStatic):
		return "NoVolume", reading.NoRecord(o.pv.Name)
	case o.volume == nil && reading.WhileStaged(o.provisioner) == pavv1.SnapshotWait:
		return "Unsupported", fmt.Sprintf("PersistentVolume %q was not provisioned by PaV, which cannot keep nodes from staging it; spec.snapshotCreation.whileStaged of PavProvisioner %q is Wait", o.record.Spec.VolumeName, name)
	case o.volume != nil && o.volume.Status.Phase != pavv1.VolumeReady || o.volume != nil && o.volume.DeletionTimestamp != nil:
		return "NoVolume", fmt.Sprintf("PavVolume %q is not in use: only a volume with a claim can be snapshotted", o.volume.Name)
	}
	return "", ""
}

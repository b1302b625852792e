package protocol

import (
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"k8s.io/apimachinery/pkg/types"
)

// What a driver's part of the snapshot protocol writes to VolumeSnapshotContents, as the sidecar csi-snapshotter does.
const (
	// SnapshotBeingCreated is an annotation: something may still run that creates the snapshot.
	SnapshotBeingCreated = "snapshot.storage.kubernetes.io/volumesnapshot-being-created"

	// SnapshotContentFinalizer keeps a VolumeSnapshotContent until the driver has deleted the snapshot. The snapshot-controller
	// adds it, and the driver removes it.
	SnapshotContentFinalizer = "snapshot.storage.kubernetes.io/volumesnapshotcontent-bound-protection"

	// groupHandle is an annotation of the members of a VolumeGroupSnapshot.
	groupHandle = "groupsnapshot.storage.k8s.io/volumeGroupSnapshotHandle"
)

// Reasons of events about snapshots.
const (
	SnapshotCreationFailed  = "SnapshotCreationFailed"
	SnapshotCreationWaiting = "SnapshotCreationWaiting"
	SnapshotDeleteError     = "SnapshotDeleteError"
	SnapshotDeletionWaiting = "SnapshotDeletionWaiting"
)

// SnapshotCRDs are the names of the definitions of the kinds of snapshots.
var SnapshotCRDs = []string{
	"volumesnapshotcontents.snapshot.storage.k8s.io", "volumesnapshots.snapshot.storage.k8s.io", "volumesnapshotclasses.snapshot.storage.k8s.io",
}

// SnapshotName returns the name of the PavSnapshot of a VolumeSnapshotContent, which is also the default handle of its snapshot; "" if
// the VolumeSnapshotContent is a member of a group, or is not for a snapshot yet.
func SnapshotName(content *snapshotv1.VolumeSnapshotContent) string {
	if _, member := content.Annotations[groupHandle]; member || content.Status != nil && content.Status.VolumeGroupSnapshotHandle != nil {
		return ""
	}
	switch source := content.Spec.Source; {
	case source.VolumeHandle != nil && content.Spec.VolumeSnapshotRef.UID != "":
		return SnapshotNameOf(content.Spec.VolumeSnapshotRef.UID)
	case source.SnapshotHandle != nil:
		return "snapshotcontent-" + string(content.UID)
	default:
		return ""
	}
}

// SnapshotNameOf returns the name of the PavSnapshot of a VolumeSnapshot of a claim.
func SnapshotNameOf(snapshot types.UID) string { return "snapshot-" + string(snapshot) }

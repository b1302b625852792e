package protocol

import (
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Names of the snapshot protocol, of which the snapshot-controller has the cluster's part, and csi-snapshotter, or PaV, a driver's.
const (
	// SnapshotBeingCreated is an annotation: something may still run that creates the snapshot.
	SnapshotBeingCreated = "snapshot.storage.kubernetes.io/volumesnapshot-being-created"

	// SnapshotContentFinalizer keeps a VolumeSnapshotContent until the driver has deleted the snapshot. The snapshot-controller
	// adds it, and the driver removes it.
	SnapshotContentFinalizer = "snapshot.storage.kubernetes.io/volumesnapshotcontent-bound-protection"

	// DefaultSnapshotClass is the annotation, "true", of the VolumeSnapshotClass of a driver for VolumeSnapshots that name none.
	DefaultSnapshotClass = "snapshot.storage.kubernetes.io/is-default-class"

	// SourceProtection is the finalizer that holds a claim while VolumeSnapshots of it are being made.
	SourceProtection = "snapshot.storage.kubernetes.io/pvc-as-source-protection"

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

// SnapshotContentCRD is the name of the definition of VolumeSnapshotContents.
const SnapshotContentCRD = "volumesnapshotcontents.snapshot.storage.k8s.io"

// SnapshotOf returns the name of the PavSnapshot of a VolumeSnapshotContent, which is also the default handle of its snapshot; "" if
// the VolumeSnapshotContent is a member of a group, or is not for a snapshot yet.
func SnapshotOf(content *snapshotv1.VolumeSnapshotContent) string {
	if _, member := content.Annotations[groupHandle]; member || content.Status != nil && content.Status.VolumeGroupSnapshotHandle != nil {
		return ""
	}
	switch source := content.Spec.Source; {
	case source.VolumeHandle != nil && content.Spec.VolumeSnapshotRef.UID != "":
		return SnapshotName(content.Spec.VolumeSnapshotRef.UID)
	case source.SnapshotHandle != nil:
		return SnapshotNameOfContent(content.UID)
	default:
		return ""
	}
}

// SnapshotName returns the name of the PavSnapshot of a VolumeSnapshot of a claim.
func SnapshotName(snapshot types.UID) string { return "snapshot-" + string(snapshot) }

// SnapshotNameOfContent returns the name of the PavSnapshot of a VolumeSnapshotContent that an administrator wrote.
func SnapshotNameOfContent(content types.UID) string { return "snapshotcontent-" + string(content) }

// SnapshotContentName returns the name of the VolumeSnapshotContent that the snapshot-controller makes for a VolumeSnapshot.
func SnapshotContentName(snapshot types.UID) string { return "snapcontent-" + string(snapshot) }

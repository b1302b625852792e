package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
)

// DataSourceKind is the kind of an object that volumes can be created from.
//
// +kubebuilder:validation:Enum=VolumeSnapshot;PersistentVolumeClaim
type DataSourceKind string

// The kinds of sources.
const (
	DataSourceSnapshot DataSourceKind = "VolumeSnapshot"
	DataSourceClaim    DataSourceKind = "PersistentVolumeClaim"
)

// DataSource is what a volume is created from: a snapshot, or a volume. The object that the claim names may be deleted; the storage is
// kept until the volume is created.
type DataSource struct {
	// kind is that of the object that the claim names: VolumeSnapshot or PersistentVolumeClaim.
	Kind DataSourceKind `json:"kind"`

	// namespace of that object.
	Namespace string `json:"namespace"`

	// name of that object.
	Name string `json:"name"`

	// uid of that object.
	UID types.UID `json:"uid"`

	// snapshotName is the name of the PavSnapshot; only for a VolumeSnapshot.
	// +optional
	SnapshotName string `json:"snapshotName,omitempty"`

	// volumeName is the name of the PersistentVolume; only for a PersistentVolumeClaim.
	// +optional
	VolumeName string `json:"volumeName,omitempty"`

	// handle is the handle of the snapshot or the volume.
	Handle string `json:"handle"`

	// capacity is the least capacity of a volume that can be made from the snapshot, or the capacity of the volume; absent if it is not
	// known.
	// +optional
	Capacity *resource.Quantity `json:"capacity,omitempty"`

	// parameters are those of the VolumeSnapshotClass, or the volumeAttributes of the PersistentVolume.
	// +optional
	// +mapType=atomic
	Parameters map[string]string `json:"parameters,omitempty"`

	// accessibleTopology are the labels of the nodes from which the storage can be reached, any of them; empty for all nodes.
	// +optional
	// +listType=atomic
	AccessibleTopology []TopologyLabels `json:"accessibleTopology,omitempty"`
}

// Key returns the key of the storage within its provisioner: see SourceSnapshot and SourceVolume.
func (s *DataSource) Key() string {
	if s.Kind == DataSourceSnapshot {
		return SourceSnapshot(s.Handle)
	}
	return SourceVolume(s.Handle)
}

// SourceSnapshot returns the key of the snapshot with a handle, as the source of volumes. Handles of snapshots and of volumes may be the
// same.
func SourceSnapshot(handle string) string { return string(DataSourceSnapshot) + "/" + handle }

// SourceVolume returns the key of the volume with a handle, as the source of volumes.
func SourceVolume(handle string) string { return string(DataSourceClaim) + "/" + handle }

// IsFrom reports whether the volume is created from the storage with a key, see DataSource.Key, of a provisioner.
func (v *PavVolume) IsFrom(provisioner, key string) bool {
	return v.Spec.Source != nil && v.Spec.Provisioner == provisioner && v.Spec.Source.Key() == key
}

// NeedsSource reports whether the volume needs that storage: it is being created from it, or was and depends on it.
func (v *PavVolume) NeedsSource(provisioner, key string) bool {
	return v.IsFrom(provisioner, key) && v.Status.Step != StepDeleted && (v.Status.DependsOnSource || v.IsInTheMaking())
}

// IsInTheMaking reports whether the volume is not provisioned yet.
func (v *PavVolume) IsInTheMaking() bool {
	return v.Status.Phase == "" || v.Status.Phase == VolumePending
}

// Reader is an object for which a pod reads the storage of a volume or a snapshot.
type Reader struct {
	// kind is PavSnapshot, or PavVolume for a volume that is created from the storage.
	Kind string `json:"kind"`

	// name of the object.
	Name string `json:"name"`

	// unstaged says that no node may begin to stage the volume meanwhile.
	// +optional
	Unstaged bool `json:"unstaged,omitempty"`
}

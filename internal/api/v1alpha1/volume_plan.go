package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
)

// VolumePlan has the values of a definition for a volume.
type VolumePlan struct {
	// handle is the value of volumeCreation.handle; empty if the creation pod may choose the handle.
	// +optional
	Handle string `json:"handle,omitempty"`

	// capacity is the value of volumeCreation.capacity; absent if the creation pod must write the capacity.
	// +optional
	Capacity *resource.Quantity `json:"capacity,omitempty"`

	// accessibleTopology is the value of volumeCreation.accessibleTopology.
	// +optional
	// +listType=atomic
	AccessibleTopology []TopologyLabels `json:"accessibleTopology,omitempty"`
}

// VolumeDefinition is the part of a PavProvisioner that provisions a volume.
type VolumeDefinition struct {
	// uid and Generation are those of the PavProvisioner.
	UID        types.UID `json:"uid"`
	Generation int64     `json:"generation"`

	// volumeValidation is its spec.volumeValidation.
	// +optional
	VolumeValidation *VolumeValidation `json:"volumeValidation,omitempty"`

	// volumeCreation is its spec.volumeCreation.
	// +optional
	VolumeCreation *VolumeCreation `json:"volumeCreation,omitempty"`
}

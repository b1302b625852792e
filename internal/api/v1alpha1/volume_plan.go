package v1alpha1

import "k8s.io/apimachinery/pkg/api/resource"

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

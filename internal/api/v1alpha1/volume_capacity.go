package v1alpha1

import "k8s.io/apimachinery/pkg/api/resource"

// LargestCapacity returns the largest capacity that the volume may have, also after expansions that failed; nil if it is not known.
func (s *PavVolumeStatus) LargestCapacity() *resource.Quantity {
	if s.Capacity == nil || s.AttemptedCapacity == nil || s.Capacity.Cmp(*s.AttemptedCapacity) >= 0 {
		return s.Capacity
	}
	return s.AttemptedCapacity
}

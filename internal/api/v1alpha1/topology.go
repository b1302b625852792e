package v1alpha1

import (
	"encoding/json"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"
)

// TopologyLabels are labels. A node must have all of them.
type TopologyLabels map[string]string

// TopologyKeys returns the keys of the labels that spec.volumeCreation.accessibleTopology names as they
// are, sorted. What a template would have to be evaluated for has no keys: the whole field, an element
// of its list, or a key.
func (p *PavProvisioner) TopologyKeys() []string {
	if p.Spec.VolumeCreation == nil || p.Spec.VolumeCreation.AccessibleTopology == nil {
		return nil
	}
	var alternatives []json.RawMessage
	if json.Unmarshal(p.Spec.VolumeCreation.AccessibleTopology.Raw, &alternatives) != nil {
		return nil
	}
	keys := map[string]bool{}
	for _, alternative := range alternatives {
		var labels map[string]json.RawMessage
		if json.Unmarshal(alternative, &labels) != nil {
			continue
		}
		for key := range labels {
			// A template is never a valid key, for the sake of its braces.
			if len(validation.IsQualifiedName(key)) == 0 {
				keys[key] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(keys))
}

package podplan

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/podplan/topology"
	"github.com/albertofaria/pav/internal/template"
)

// CanCreateFrom reports whether a definition creates volumes from sources of a kind.
func CanCreateFrom(creation *pavv1.VolumeCreation, kind pavv1.DataSourceKind) bool {
	return creation != nil && slices.Contains(creation.DataSources, kind)
}

// SourceOf returns what a volume is created from; nil if it is created empty. Capacity is that of the source volume when the attempt
// began, or nil to take the one that the source had when provisioning began.
func SourceOf(volume *pavv1.PavVolume, capacity *resource.Quantity) *pavv1.DataSource {
	if volume.Spec.Source == nil || capacity == nil {
		return volume.Spec.Source
	}
	source := volume.Spec.Source.DeepCopy()
	source.Capacity = capacity
	return source
}

// checkSource returns why the definition cannot create a volume from its source, or nil. It may have changed since the claim was accepted.
func (r VolumeRequest) checkSource(c *pavv1.VolumeCreation) error {
	if r.Source == nil {
		return nil
	}
	if !CanCreateFrom(c, r.Source.Kind) {
		return refuse("spec.volumeCreation.dataSources: lacks %s, which the claim names as its source", r.Source.Kind)
	}
	if c.PodTemplate == nil {
		return refuse("%s: is missing; only a creation pod can copy the data of the source that the claim names", CreationPod)
	}
	return nil
}

// within returns the nodes that the creation pod is limited to: those that reach the source and, if no node is selected, those that the
// StorageClass allows; nil for all.
func (r VolumeRequest) within(allowed []corev1.TopologySelectorTerm) (*corev1.NodeSelector, error) {
	if r.Node != nil {
		allowed = nil // it is checked
	}
	if r.Source == nil {
		return topology.NodeSelector(allowed), nil
	}
	reachable := r.Source.AccessibleTopology
	if !topology.Overlaps(reachable, allowed) {
		return nil, refuse("%s %q can be reached from nodes with %s, none of which the allowedTopologies of the StorageClass allow",
			r.Source.Kind, r.Source.Namespace+"/"+r.Source.Name, topology.Describe(reachable))
	}
	return topology.Both(reachable, allowed), nil
}

// sourceVariable returns the variable source of templates; nil if the volume is created empty.
func sourceVariable(s *pavv1.DataSource) map[string]any {
	if s == nil {
		return nil
	}
	var capacity *int64
	if s.Capacity != nil {
		capacity = new(s.Capacity.Value())
	}
	reachable := make([]map[string]string, len(s.AccessibleTopology))
	for i, labels := range s.AccessibleTopology {
		reachable[i] = labels
	}
	return template.SourceVariable(string(s.Kind), s.Namespace, s.Name, s.Handle, capacity, s.Parameters, reachable)
}

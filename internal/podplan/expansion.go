package podplan

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/podplan/topology"
	"github.com/albertofaria/pav/internal/template"
	"github.com/albertofaria/pav/internal/workflow"
)

// expandedCapacityField is the field of volumeExpansion, for errors.
const expandedCapacityField = "spec.volumeExpansion.capacity"

// Expansion is how a volume is to grow.
type Expansion struct {
	// Target is the capacity that the volume is to have at least, in bytes. Capacity is the one in the definition, or 0.
	Target, Capacity int64

	// Pod is the evaluated template of the expansion pod; nil if there is none.
	Pod map[string]any
}

// errNoExpansion says that volumes of a definition cannot grow.
var errNoExpansion = errors.New("spec.volumeExpansion: is missing, so that volumes cannot grow")

// Expand evaluates spec.volumeExpansion for a target capacity, in bytes.
func (r VolumeRequest) Expand(ctx context.Context, e *pavv1.VolumeExpansion, target int64) (*Expansion, error) {
	if e == nil {
		return nil, &Error{errNoExpansion}
	}
	vars, err := template.ExpansionVariables(r.Volume, r.Claim, r.Class, target, r.StagedOn)
	if err != nil {
		return nil, &Error{err}
	}
	expansion := &Expansion{Target: target}
	capacity, found, err := quantity(ctx, r.evaluate, expandedCapacityField, e.Capacity, vars)
	if err != nil {
		return nil, err
	}
	if found {
		if expansion.Capacity = capacity; capacity < target {
			return nil, tooSmall(expandedCapacityField, capacity, target)
		}
	}
	expansion.Pod, err = r.pod(ctx, ExpansionPod, e.PodTemplate, vars)
	return expansion, err
}

// ExpandWithin is Expand, and checks the target against spec.volumeValidation.maxCapacity.
func (r VolumeRequest) ExpandWithin(ctx context.Context, definition *pavv1.PavProvisionerSpec, target int64) (*Expansion, error) {
	expansion, err := r.Expand(ctx, definition.VolumeExpansion, target)
	if err == nil {
		err = r.checkLargest(ctx, definition.VolumeValidation, target)
	}
	return expansion, err
}

// WithinReach returns the nodes from which a volume can be used; nil for all. Pods about a volume that exists run there.
func WithinReach(volume *pavv1.PavVolume) *corev1.NodeSelector {
	if affinity := topology.NodeAffinity(volume.Status.AccessibleTopology); affinity != nil {
		return affinity.Required
	}
	return nil
}

// checkLargest checks a capacity, in bytes, against spec.volumeValidation.maxCapacity, as that of a claim that requests so much
// from the beginning.
func (r VolumeRequest) checkLargest(ctx context.Context, v *pavv1.VolumeValidation, capacity int64) error {
	if v == nil {
		return nil
	}
	vars, err := r.validationVariables(capacity)
	if err != nil {
		return &Error{err}
	}
	return (&check{evaluate: r.evaluate, definition: v, vars: vars, who: ForClaim}).maxCapacity(ctx)
}

// validationVariables returns the context in which the volume would be validated if it had a capacity, in bytes.
func (r VolumeRequest) validationVariables(capacity int64) (vars template.Variables, err error) {
	if r.Class == nil { // the volume is static
		if vars, err = template.StaticValidationVariables(r.Volume); err == nil {
			vars["requestedMaxCapacity"] = capacity
		}
	} else {
		vars, err = template.DynamicValidationVariables(template.Request{Claim: r.Claim, Class: r.Class, Attributes: r.Attributes})
	}
	if err == nil {
		vars["requestedMinCapacity"] = capacity
	}
	return vars, err
}

// Outcome returns the capacity of the volume after its expansion, in bytes, from the definition and the result of the expansion
// pod, which is nil if there was no pod, or its node is gone. The definition takes precedence.
func (e *Expansion) Outcome(result *workflow.Result) (int64, error) {
	if e.Capacity > 0 {
		return e.Capacity, nil
	}
	if result == nil {
		return e.Target, nil
	}
	const source = "the expansion pod's /pav/capacity"
	if why, ok := result.Unreadable[workflow.CapacityFile]; ok {
		return 0, refuse("%s: %s", source, why)
	}
	if result.Capacity == "" {
		return e.Target, nil
	}
	capacity, err := template.ParseCapacity(result.Capacity)
	if err != nil {
		return 0, refuse("%s: %q: %w", source, result.Capacity, err)
	}
	if capacity < e.Target {
		return 0, tooSmall(source, capacity, e.Target)
	}
	return capacity, nil
}

// tooSmall is the error of a volume that would not be as large as it is to be.
//
// CSI, ControllerExpandVolume: the capacity of the volume after it is "at least" what is required.
func tooSmall(source string, capacity, target int64) error {
	return refuse("%s: the volume would have a capacity of %s after the expansion, and is to have %s", source, bytes(capacity), bytes(target))
}

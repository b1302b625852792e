package podplan

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/podplan/topology"
	"github.com/albertofaria/pav/internal/template"
	"github.com/albertofaria/pav/internal/workflow"
)

// The fields of volumeCreation, for errors.
const (
	handleField   = "spec.volumeCreation.handle"
	capacityField = "spec.volumeCreation.capacity"
	topologyField = "spec.volumeCreation.accessibleTopology"
)

// Creation is how a volume is to be created.
type Creation struct {
	// Handle is the handle in the definition, or "". DefaultHandle is the handle if neither the definition nor the
	// creation pod has one.
	Handle, DefaultHandle string

	// Capacity is the capacity in the definition, in bytes, or 0. Requested is the minimum that the claim requests.
	Capacity, Requested int64

	// Topology has the nodes from which the volume can be used; empty for all nodes.
	Topology []pavv1.TopologyLabels

	// Pod is the evaluated template of the creation pod; nil if there is none. Within limits its nodes; nil for all.
	Pod    map[string]any
	Within *corev1.NodeSelector
}

// Create evaluates spec.volumeCreation.
func (r VolumeRequest) Create(ctx context.Context, c *pavv1.VolumeCreation) (*Creation, error) {
	if c == nil {
		c = &pavv1.VolumeCreation{}
	}
	if err := r.checkSource(c); err != nil {
		return nil, err
	}
	vars, err := template.CreationVariables(r.requested())
	if err != nil {
		return nil, &Error{err}
	}
	creation := &Creation{}
	creation.DefaultHandle, _ = vars["defaultHandle"].(string)
	creation.Requested, _ = vars["requestedMinCapacity"].(int64)
	if creation.Handle, err = r.handle(ctx, c, vars); err != nil {
		return nil, err
	}
	if creation.Capacity, err = r.capacity(ctx, c, vars); err != nil {
		return nil, err
	}
	allowed, err := r.allowed()
	if err != nil {
		return nil, err
	}
	if creation.Within, err = r.within(allowed); err != nil {
		return nil, err
	}
	if creation.Topology, err = r.topology(ctx, c, vars, allowed); err != nil {
		return nil, err
	}
	creation.Pod, err = r.pod(ctx, CreationPod, c.PodTemplate, vars)
	if err == nil && creation.Pod == nil && r.Source != nil {
		err = refuse("%s: yields no pod, so that there is nothing to copy the data of the source that the claim names", CreationPod)
	}
	return creation, err
}

// handle returns the handle in the definition, or "".
func (r VolumeRequest) handle(ctx context.Context, c *pavv1.VolumeCreation, vars template.Variables) (string, error) {
	value, err := r.evaluate(ctx, handleField, c.Handle, vars)
	if err != nil || value == nil {
		return "", err
	}
	handle, err := template.Text(handleField, value)
	if err != nil {
		return "", err
	}
	return handle, checkHandle(handleField, handle)
}

// checkHandle reports whether text can be a volume handle.
func checkHandle(source, text string) error {
	if err := workflow.CheckHandle(text); err != nil {
		return refuse("%s: %w", source, err)
	}
	return nil
}

// capacity returns the capacity in the definition, or 0.
func (r VolumeRequest) capacity(ctx context.Context, c *pavv1.VolumeCreation, vars template.Variables) (int64, error) {
	capacity, found, err := quantity(ctx, r.evaluate, capacityField, c.Capacity, vars)
	if err != nil {
		return 0, err
	}
	if !found {
		if c.PodTemplate == nil {
			return 0, refuse("%s: is required, as there is no creation pod that could write /pav/capacity", capacityField)
		}
		return 0, nil
	}
	requested, _ := vars["requestedMinCapacity"].(int64)
	return capacity, checkCapacity(capacityField, capacity, requested)
}

// Protocol: "The provisioned volume size MUST NOT be smaller than size requested in the claim, however it MAY be
// larger."
func checkCapacity(source string, capacity, requested int64) error {
	if capacity < requested {
		return refuse("%s: the volume would have a capacity of %s, but the claim requests %s", source, bytes(capacity), bytes(requested))
	}
	return nil
}

// topology returns from where the volume can be used. It must include the node that the scheduler
// chose, or some place that the StorageClass allows.
func (r VolumeRequest) topology(ctx context.Context, c *pavv1.VolumeCreation, vars template.Variables, allowed []corev1.TopologySelectorTerm) ([]pavv1.TopologyLabels, error) {
	value, err := r.evaluate(ctx, topologyField, c.AccessibleTopology, vars)
	if err != nil {
		return nil, err
	}
	accessible, err := topology.Parse(topologyField, value)
	if err != nil {
		return nil, &Error{err}
	}
	if r.Node != nil {
		labels, _, _ := unstructured.NestedStringMap(r.Node, "metadata", "labels")
		name, _, _ := unstructured.NestedString(r.Node, "metadata", "name")
		if !topology.Allows(allowed, labels) {
			return nil, &NodeError{refuse("the scheduler chose node %q for the claim's first consumer, which the allowedTopologies of the StorageClass do not allow", name)}
		}
		if !topology.Matches(accessible, labels) {
			return nil, &NodeError{refuse("%s: the volume can be used from nodes with %s, but the scheduler chose node %q for its first consumer",
				topologyField, topology.Describe(accessible), name)}
		}
	}
	if !topology.Overlaps(accessible, allowed) {
		return nil, refuse("%s: the volume can be used from nodes with %s, none of which the allowedTopologies of the StorageClass allow", topologyField, topology.Describe(accessible))
	}
	return accessible, nil
}

// allowed returns the allowedTopologies of the StorageClass; empty for all nodes.
func (r VolumeRequest) allowed() ([]corev1.TopologySelectorTerm, error) {
	class := &storagev1.StorageClass{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(r.Class, class); err != nil {
		return nil, refuse("the StorageClass cannot be read: %w", err)
	}
	return class.AllowedTopologies, nil
}

// NodeError wraps an Error that may not apply to another node, so that the scheduler should select one.
type NodeError struct{ Err error }

func (e *NodeError) Error() string { return e.Err.Error() }
func (e *NodeError) Unwrap() error { return e.Err }

// VolumeOutcome is the handle and capacity of a created volume.
type VolumeOutcome struct {
	Handle   string
	Capacity int64
}

// Outcome returns the handle and capacity of the volume, from the definition and the result of the creation pod,
// which is nil if there was no pod. The definition takes precedence.
func (c *Creation) Outcome(result *workflow.Result) (VolumeOutcome, error) {
	if result == nil {
		result = &workflow.Result{}
	}
	handle, err := c.handleOutcome(result)
	if err != nil {
		return VolumeOutcome{}, err
	}
	capacity, err := c.capacityOutcome(result)
	return VolumeOutcome{Handle: handle, Capacity: capacity}, err
}

func (c *Creation) handleOutcome(result *workflow.Result) (string, error) {
	if c.Handle != "" {
		return c.Handle, nil
	}
	if why, ok := result.Unreadable[workflow.HandleFile]; ok {
		return "", refuse("the creation pod's /pav/handle: %s", why)
	}
	if result.Handle == "" {
		return c.DefaultHandle, nil
	}
	return result.Handle, checkHandle("the creation pod's /pav/handle", result.Handle)
}

var errNoCapacity = errors.New("spec.volumeCreation.capacity is not given, and the creation pod wrote no /pav/capacity")

func (c *Creation) capacityOutcome(result *workflow.Result) (int64, error) {
	if c.Capacity > 0 {
		return c.Capacity, nil
	}
	const source = "the creation pod's /pav/capacity"
	if why, ok := result.Unreadable[workflow.CapacityFile]; ok {
		return 0, refuse("%s: %s", source, why)
	}
	if result.Capacity == "" {
		return 0, &Error{errNoCapacity}
	}
	capacity, err := template.ParseCapacity(result.Capacity)
	if err != nil {
		return 0, refuse("%s: %q: %w", source, result.Capacity, err)
	}
	return capacity, checkCapacity(source, capacity, c.Requested)
}

package podplan

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/types"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/podplan/topology"
	"github.com/albertofaria/pav/internal/protocol"
	"github.com/albertofaria/pav/internal/template"
	"github.com/albertofaria/pav/internal/workflow"
)

// snapshotHandleField is the field of snapshotCreation, for errors.
const snapshotHandleField = "spec.snapshotCreation.handle"

// errNoSnapshots says that volumes of a definition cannot be snapshotted.
var errNoSnapshots = errors.New("spec.snapshotCreation: is missing, so that volumes cannot be snapshotted")

// SnapshotRequest is the request for a snapshot, with the definition that serves it.
type SnapshotRequest struct {
	// Provisioner and Generation identify the definition.
	Provisioner types.UID
	Generation  int64

	// Record is the PavSnapshot. Its copies of objects have text of tenants, which is only used as data.
	Record *pavv1.PavSnapshot

	// Templates and GetPVC evaluate the definition. Allowed are the namespaces in which it may look up claims, besides that of
	// the VolumeSnapshot; nil for all. Foreign, if it is not nil, is called for look-ups in other namespaces.
	Templates *template.Evaluator
	GetPVC    template.GetPVC
	Allowed   []string
	Foreign   func(ctx context.Context, name, namespace string, allowed bool)

	// Defaults are those of all workflow pods.
	Defaults workflow.Defaults
}

// SnapshotPlan is how a snapshot is to be created.
type SnapshotPlan struct {
	// Handle is the handle in the definition, or "".
	Handle string

	// Pod is the evaluated template of the snapshot creation pod.
	Pod map[string]any
}

// Create evaluates spec.snapshotCreation. Handle is that of a snapshot that is cut already, or "".
func (r SnapshotRequest) Create(ctx context.Context, c *pavv1.SnapshotCreation, handle string) (*SnapshotPlan, error) {
	if c == nil || c.PodTemplate == nil {
		return nil, &Error{errNoSnapshots}
	}
	vars, err := r.variables(handle)
	if err != nil {
		return nil, err
	}
	plan := &SnapshotPlan{}
	value, err := r.evaluate(ctx, snapshotHandleField, c.Handle, vars)
	if err != nil {
		return nil, err
	}
	if value != nil {
		if plan.Handle, err = template.Text(snapshotHandleField, value); err != nil {
			return nil, err
		}
		if err := checkHandle(snapshotHandleField, plan.Handle); err != nil {
			return nil, err
		}
	}
	plan.Pod, err = r.pod(ctx, SnapshotCreationPod, c.PodTemplate, vars)
	if err == nil && plan.Pod == nil {
		err = refuse("%s: yields no pod, so that there is nothing to create the snapshot", SnapshotCreationPod)
	}
	return plan, err
}

// Delete evaluates spec.snapshotDeletion. Handle is the snapshot's, or "" if it is not known. It returns the evaluated template of the
// deletion pod; nil if there is none.
func (r SnapshotRequest) Delete(ctx context.Context, d *pavv1.SnapshotDeletion, handle string) (map[string]any, error) {
	if d == nil || d.PodTemplate == nil {
		return nil, nil
	}
	vars, err := r.variables(handle)
	if err != nil {
		return nil, err
	}
	return r.pod(ctx, SnapshotDeletionPod, d.PodTemplate, vars)
}

// Planned returns the pod of a workflow that a definition plans for a snapshot, or nil if it plans none, without the nodes to which the
// pod is limited.
func (r SnapshotRequest) Planned(ctx context.Context, definition *pavv1.PavProvisionerSpec, kind string) (*corev1.Pod, error) {
	var rendered map[string]any
	var err error
	switch kind {
	case pavv1.WorkflowSnapshotCreation:
		var plan *SnapshotPlan
		if plan, err = r.Create(ctx, definition.SnapshotCreation, r.Record.Status.Handle); err == nil {
			rendered = plan.Pod
		}
	case pavv1.WorkflowSnapshotDeletion:
		rendered, err = r.Delete(ctx, definition.SnapshotDeletion, r.Record.Status.Handle)
	}
	if err != nil || rendered == nil {
		return nil, err
	}
	return SnapshotPod(r.Record, kind, rendered, Placement{}, r.Defaults, 1)
}

func (r SnapshotRequest) evaluate(ctx context.Context, field string, given *pavv1.Template, vars template.Variables) (any, error) {
	if given == nil {
		return nil, nil
	}
	key := template.Field{Object: r.Provisioner, Generation: r.Generation, Path: field}
	lookups := template.Lookups{Own: r.Record.Spec.SnapshotRef.Namespace, Allowed: r.Allowed, Foreign: r.Foreign}
	return r.Templates.Evaluate(ctx, key, *given, vars, lookups.Restrict(r.GetPVC))
}

func (r SnapshotRequest) pod(ctx context.Context, field string, given *pavv1.Template, vars template.Variables) (map[string]any, error) {
	value, err := r.evaluate(ctx, field, given, vars)
	if err != nil || value == nil {
		return nil, err
	}
	return template.Object(field, value)
}

// variables returns the context of the sections of snapshots.
func (r SnapshotRequest) variables(handle string) (template.Variables, error) {
	var objects template.SnapshotObjects
	recorded := &r.Record.Spec.Objects
	for _, object := range []struct {
		field string
		raw   *apiextensionsv1.JSON
		into  *map[string]any
	}{
		{"snapshot", recorded.Snapshot, &objects.Snapshot}, {"snapshotContent", recorded.SnapshotContent, &objects.Content},
		{"snapshotClass", recorded.SnapshotClass, &objects.Class}, {"persistentVolume", recorded.PersistentVolume, &objects.Volume},
		{"claim", recorded.Claim, &objects.Claim},
	} {
		var err error
		if *object.into, err = copyOf(r.Record, "PavSnapshot", "spec.objects."+object.field, object.raw); err != nil {
			return nil, err
		}
	}
	params, err := SnapshotParameters(r.Record)
	if err != nil {
		return nil, err
	}
	vars, err := template.SnapshotVariables(objects, params, r.Record.Name, handle)
	if err != nil {
		return nil, &Error{err}
	}
	return vars, nil
}

// SnapshotParameters returns the parameters of the VolumeSnapshotClass that a snapshot was requested with.
func SnapshotParameters(record *pavv1.PavSnapshot) (map[string]string, error) {
	raw := record.Spec.Objects.SnapshotClass
	if raw == nil {
		return nil, nil
	}
	class := &snapshotv1.VolumeSnapshotClass{}
	if err := json.Unmarshal(raw.Raw, class); err != nil {
		return nil, fmt.Errorf("spec.objects.snapshotClass of PavSnapshot %q: %w", record.Name, err)
	}
	return class.Parameters, nil
}

// CheckSnapshotClass returns why no snapshot can be made with a VolumeSnapshotClass, or nil. Reserved parameters never reach a driver.
func CheckSnapshotClass(provisioner string, class *snapshotv1.VolumeSnapshotClass) error {
	if class.Driver != provisioner {
		return refuse("VolumeSnapshotClass %q is for snapshots of the driver %q, not of PavProvisioner %q", class.Name, class.Driver, provisioner)
	}
	for _, key := range slices.Sorted(maps.Keys(class.Parameters)) {
		if strings.HasPrefix(key, protocol.Reserved) {
			return refuse("VolumeSnapshotClass %q: parameters[%s]: PaV does not support this reserved parameter", class.Name, key)
		}
	}
	return nil
}

// SnapshotOutcome is what is known of a snapshot that is cut.
type SnapshotOutcome struct {
	Handle string

	// Size is the least capacity, in bytes, of a volume that can be made from it; 0 if it is not known.
	Size int64
}

// OutcomeOf returns what a snapshot creation pod has made, from the handle in the definition, which is recorded and takes precedence,
// and the result of the pod.
func OutcomeOf(record *pavv1.PavSnapshot, result *workflow.Result) (SnapshotOutcome, error) {
	outcome := SnapshotOutcome{Handle: record.Status.PlannedHandle}
	if outcome.Handle == "" {
		const source = "the snapshot creation pod's /pav/snapshotHandle"
		if why, ok := result.Unreadable[workflow.SnapshotHandleFile]; ok {
			return SnapshotOutcome{}, refuse("%s: %s", source, why)
		}
		if outcome.Handle = result.SnapshotHandle; outcome.Handle == "" {
			outcome.Handle = record.Name
		} else if err := checkHandle(source, outcome.Handle); err != nil {
			return SnapshotOutcome{}, err
		}
	}
	const source = "the snapshot creation pod's /pav/snapshotSize"
	if why, ok := result.Unreadable[workflow.SnapshotSizeFile]; ok {
		return SnapshotOutcome{}, refuse("%s: %s", source, why)
	}
	if result.SnapshotSize != "" {
		size, err := template.ParseCapacity(result.SnapshotSize)
		if err != nil {
			return SnapshotOutcome{}, refuse("%s: %q: %w", source, result.SnapshotSize, err)
		}
		outcome.Size = size
	}
	return outcome, nil
}

// SnapshotPod returns a pod of a snapshot, from its evaluated template, with its PodPolicy. Number is unique among the pods of the
// snapshot.
func SnapshotPod(record *pavv1.PavSnapshot, kind string, rendered map[string]any, placement Placement, defaults workflow.Defaults, number int32) (*corev1.Pod, error) {
	fence := controllerPolicy(record, "PavSnapshot", kind, placement, defaults, number)
	fence.Labels[pavv1.ProvisionerLabel] = record.Spec.Provisioner
	fence.Annotations[pavv1.SnapshotAnnotation] = record.Name
	if record.Spec.VolumeName != "" {
		nameVolume(&fence, record.Spec.VolumeName, record.Spec.VolumeHandle)
	}
	return build(kind, rendered, fence)
}

// SnapshotWithinReach returns the nodes from which a snapshot can be reached; nil for all.
func SnapshotWithinReach(record *pavv1.PavSnapshot) *corev1.NodeSelector {
	if affinity := topology.NodeAffinity(record.Status.AccessibleTopology); affinity != nil {
		return affinity.Required
	}
	return nil
}

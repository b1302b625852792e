package podplan

import (
	"context"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/workflow"
)

// podFields are the fields of the templates of the pods of the controller agent, by their workflows.
var podFields = map[string]string{
	pavv1.WorkflowValidation: ValidationPod, pavv1.WorkflowCreation: CreationPod, pavv1.WorkflowExpansion: ExpansionPod,
	pavv1.WorkflowModification: ModificationPod, pavv1.WorkflowDeletion: DeletionPod,
	pavv1.WorkflowSnapshotCreation: SnapshotCreationPod, pavv1.WorkflowSnapshotDeletion: SnapshotDeletionPod,
	pavv1.WorkflowBucketValidation: BucketValidationPod, pavv1.WorkflowBucketCreation: BucketCreationPod,
	pavv1.WorkflowBucketUpdate: BucketUpdatePod, pavv1.WorkflowBucketDeletion: BucketDeletionPod,
	pavv1.WorkflowGrant: GrantPod, pavv1.WorkflowRevocation: RevocationPod,
}

// PodField returns the field of the template of the pods of a workflow of the controller agent, for errors.
func PodField(kind string) string { return podFields[kind] }

// Placement limits where a pod may run, in addition to its template.
type Placement struct {
	// Within limits the nodes of the pod; nil for all.
	Within *corev1.NodeSelector

	// Avoid lists nodes that the scheduler should select only if there are no others.
	Avoid []string
}

// VolumePod returns a pod of a volume, from its evaluated template, with its PodPolicy. Number is unique among the
// pods of the volume.
func VolumePod(volume *pavv1.PavVolume, kind string, rendered map[string]any, placement Placement, defaults workflow.Defaults, number int32) (*corev1.Pod, error) {
	fence := controllerPolicy(volume, "PavVolume", kind, placement, defaults, number)
	fence.Labels[pavv1.ProvisionerLabel] = volume.Spec.Provisioner
	nameVolume(&fence, volume.Name, volume.Status.Handle)
	return build(kind, rendered, fence)
}

// controllerPolicy returns what the pods of the controller agent have in common.
func controllerPolicy(owner metav1.Object, ownerKind, kind string, placement Placement, defaults workflow.Defaults, number int32) workflow.PodPolicy {
	attempt := strconv.Itoa(int(number))
	return workflow.PodPolicy{
		Workflow: kind,
		Name:     workflow.Name(kind, string(owner.GetUID()), attempt),
		Owner: metav1.OwnerReference{
			APIVersion: pavv1.GroupVersion.String(), Kind: ownerKind, Name: owner.GetName(), UID: owner.GetUID(), Controller: new(true),
		},
		Labels:      map[string]string{},
		Annotations: map[string]string{pavv1.AttemptAnnotation: attempt},
		Within:      placement.Within,
		Avoid:       placement.Avoid,
		Defaults:    defaults,
	}
}

// nameVolume adds the volume that a pod is about.
func nameVolume(fence *workflow.PodPolicy, volume, handle string) {
	fence.Labels[pavv1.VolumeLabel] = workflow.Hash(volume)
	fence.Annotations[pavv1.VolumeAnnotation] = volume
	if handle != "" {
		fence.Annotations[pavv1.HandleAnnotation] = handle
	}
}

func build(kind string, rendered map[string]any, fence workflow.PodPolicy) (*corev1.Pod, error) {
	pod, err := workflow.Build(PodField(kind), rendered, fence)
	if err != nil {
		return nil, &Error{Err: err}
	}
	return pod, nil
}

// Planned returns the pod of a workflow that a definition plans for a volume, or nil if it plans none, without the
// nodes to which the pod is limited.
func (r VolumeRequest) Planned(ctx context.Context, definition *pavv1.PavProvisionerSpec, volume *pavv1.PavVolume, kind string) (*corev1.Pod, error) {
	var rendered map[string]any
	var err error
	switch kind {
	case pavv1.WorkflowValidation:
		rendered, err = r.Validate(ctx, definition.VolumeValidation)
	case pavv1.WorkflowCreation:
		var creation *Creation
		if creation, err = r.Create(ctx, definition.VolumeCreation); err == nil {
			rendered = creation.Pod
		}
	case pavv1.WorkflowExpansion:
		var expansion *Expansion
		if record := volume.Status.Expansion; record != nil {
			r.StagedOn = record.StagedOn
			if expansion, err = r.Expand(ctx, definition.VolumeExpansion, record.Target.Value()); err == nil {
				rendered = expansion.Pod
			}
		}
	case pavv1.WorkflowModification:
		if record := volume.Status.Modification; record != nil {
			r.StagedOn = record.StagedOn
			rendered, err = r.Modify(ctx, definition.VolumeModification)
		}
	case pavv1.WorkflowDeletion:
		rendered, err = r.Deletion(ctx, definition.VolumeDeletion, volume.Status.Handle)
	}
	if err != nil || rendered == nil {
		return nil, err
	}
	return VolumePod(volume, kind, rendered, Placement{}, r.Defaults, 1)
}

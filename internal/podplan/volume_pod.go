package podplan

import (
	"context"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/workflow"
)

// PodField returns the field of the template of the pods of a workflow, for errors.
func PodField(kind string) string {
	switch kind {
	case pavv1.WorkflowValidation:
		return ValidationPod
	case pavv1.WorkflowCreation:
		return CreationPod
	default:
		return DeletionPod
	}
}

// Placement says where a pod may run, besides what its template says.
type Placement struct {
	// Within are the nodes that the pod is confined to; nil for all.
	Within *corev1.NodeSelector

	// Avoid names nodes that the scheduler is to choose only if it has to.
	Avoid []string
}

// VolumePod returns a pod of a volume, as its template says, with its PodPolicy. Number tells it from all other pods of
// the volume.
func VolumePod(volume *pavv1.PavVolume, kind string, rendered map[string]any, placement Placement, number int32) (*corev1.Pod, error) {
	attempt := strconv.Itoa(int(number))
	fence := workflow.PodPolicy{
		Workflow: kind,
		Name:     workflow.Name(kind, string(volume.UID), attempt),
		Owner: metav1.OwnerReference{
			APIVersion: pavv1.GroupVersion.String(), Kind: "PavVolume", Name: volume.Name, UID: volume.UID, Controller: new(true),
		},
		Labels: map[string]string{
			pavv1.ProvisionerLabel: volume.Spec.Provisioner,
			pavv1.VolumeLabel:      workflow.Hash(volume.Name),
		},
		Annotations: map[string]string{
			pavv1.VolumeAnnotation:  volume.Name,
			pavv1.AttemptAnnotation: attempt,
		},
		Within: placement.Within,
		Avoid:  placement.Avoid,
	}
	if volume.Status.Handle != "" {
		fence.Annotations[pavv1.HandleAnnotation] = volume.Status.Handle
	}
	pod, err := workflow.Build(PodField(kind), rendered, fence)
	if err != nil {
		return nil, &Error{Err: err}
	}
	return pod, nil
}

// Planned returns the pod of a workflow that a definition plans for a volume, or nil where it plans none. Of the nodes
// that the pod is confined to, it says nothing.
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
	case pavv1.WorkflowDeletion:
		rendered, err = r.Deletion(ctx, definition.VolumeDeletion, volume.Status.Handle)
	}
	if err != nil || rendered == nil {
		return nil, err
	}
	return VolumePod(volume, kind, rendered, Placement{}, 1)
}

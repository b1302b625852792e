package stage

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/podplan"
	"github.com/albertofaria/pav/internal/workflow"
)

// checkVolume reports whether the volume may be staged, and returns its provisioner. A dynamically provisioned volume
// was validated when it was provisioned.
func (t *task) checkVolume(ctx context.Context, raw apiextensionsv1.JSON, volume *corev1.PersistentVolume) (*pavv1.PavProvisioner, error) {
	provisioner, err := t.catalogue.Provisioner(ctx, t.Driver)
	if err != nil {
		return nil, err
	}
	if provisioner == nil {
		return nil, refused("PavProvisioner %q does not exist", t.Driver)
	}
	if mode := podplan.VolumeMode(volume); t.mode != "" && mode != t.mode {
		return nil, refused("persistent volume %q has the volume mode %s, not %s", volume.Name, mode, t.mode)
	}
	if isDynamic(volume, t.Driver) {
		return provisioner, nil
	}
	if !provisioner.Supports(pavv1.ProvisioningModeStatic) {
		return nil, refused("persistent volume %q is statically provisioned, but spec.provisioningModes of PavProvisioner %q has no Static", volume.Name, t.Driver)
	}
	return provisioner, t.checkStatic(ctx, provisioner, raw)
}

// checkStatic checks a statically provisioned volume, as far as that needs no pod.
func (t *task) checkStatic(ctx context.Context, provisioner *pavv1.PavProvisioner, raw apiextensionsv1.JSON) error {
	volume, err := object(raw)
	if err != nil {
		return err
	}
	err = t.definition(provisioner, volume).Validate(ctx, volume)
	if podplan.IsRefusal(err) {
		return fmt.Errorf("%w: provisioner %q: %w", ErrRefused, t.Driver, err)
	}
	return err
}

// needsValidation reports whether the volume was not validated before.
func needsValidation(stage *pavv1.PavStage) bool {
	if stage.Spec.Client != nil {
		return false // The stage that reserves the volume for the node was created first, and validated.
	}
	volume, err := object(stage.Spec.Volume)
	if err != nil {
		return true
	}
	by, _, _ := unstructured.NestedString(volume, "metadata", "annotations", provisionedBy)
	return by != stage.Spec.Provisioner
}

// runValidation records the validation pod, then creates it; or records that there is none.
func (t *task) runValidation(ctx context.Context) error {
	first := t.stage.Status.ValidationPod == nil
	pod, err := t.buildValidation(ctx)
	if err == nil && pod == nil {
		return t.update(ctx, func(status *pavv1.PavStageStatus) { status.Validated = true })
	}
	if err == nil {
		err = t.runner.CheckNamespace(ctx, pod.Namespace)
	}
	if isDefinition(err) {
		return t.failWithoutPod(ctx, pavv1.WorkflowValidation, err, first)
	}
	if err != nil {
		return err
	}
	if err := t.makeDirectory(ctx, first); err != nil {
		return err
	}
	if err := t.update(ctx, func(status *pavv1.PavStageStatus) {
		status.Phase = pavv1.StageValidating
		t.noteBoot(status)
		status.ValidationPod = &pavv1.PodReference{Namespace: pod.Namespace, Name: pod.Name}
		t.setReady(t.stage, metav1.ConditionFalse, "Validating", fmt.Sprintf("pod %s/%s is validating the volume", pod.Namespace, pod.Name))
	}); err != nil {
		return err
	}
	return t.created(ctx, pavv1.WorkflowValidation, t.runner.Create(ctx, pod), first)
}

// buildValidation returns the validation pod, or nil if the provisioner has none.
func (t *task) buildValidation(ctx context.Context) (*corev1.Pod, error) {
	provisioner, err := t.liveProvisioner(ctx)
	if err != nil {
		return nil, err
	}
	if provisioner.Spec.VolumeValidation == nil || provisioner.Spec.VolumeValidation.PodTemplate == nil {
		return nil, nil
	}
	kept, err := podplan.KeptObjects(t.stage)
	if err != nil {
		return nil, err
	}
	volume, err := t.lookUp(ctx, "PersistentVolume", client.ObjectKey{Name: t.stage.Spec.VolumeName})
	if err != nil {
		return nil, err
	}
	volume = podplan.CurrentObjects(t.stage, podplan.StageObjects{Volume: volume}, kept).Volume
	pod, err := t.definition(provisioner, volume).Validation(ctx, t.stage, volume)
	return pod, refusal(err)
}

// admit records that the volume is valid, and releases the validation pod.
func (t *task) admit(ctx context.Context) error {
	if err := t.update(ctx, func(status *pavv1.PavStageStatus) {
		status.Validated = true
		t.setReady(t.stage, metav1.ConditionFalse, "Staging", "the volume is valid, and about to be staged")
	}); err != nil {
		return err
	}
	return t.runner.Release(ctx, t.validationPod)
}

// reject records the failure of the validation pod.
func (t *task) reject(ctx context.Context) error {
	failure := workflow.Failure(pavv1.WorkflowValidation, t.validationPod, t.podError(ctx, t.validationPod))
	return t.recordFailure(ctx, failure, false)
}

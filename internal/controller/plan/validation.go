package plan

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/template"
)

// Validate checks the request against what the definition says that it can provision, and returns
// the validation pod as its template says; nil where there is none.
func (r Request) Validate(ctx context.Context, v *pavv1.VolumeValidation) (map[string]any, error) {
	if v == nil {
		v = &pavv1.VolumeValidation{}
	}
	vars, err := template.DynamicValidationVariables(r.Claim, r.Class, r.Node)
	if err != nil {
		return nil, &Error{err}
	}
	for _, check := range []func(context.Context, *pavv1.VolumeValidation, template.Variables) error{
		r.checkVolumeMode, r.checkAccessModes, r.checkMinCapacity, r.checkMaxCapacity,
	} {
		if err := check(ctx, v, vars); err != nil {
			return nil, err
		}
	}
	return r.pod(ctx, ValidationPod, v.PodTemplate, vars)
}

func (r Request) checkVolumeMode(ctx context.Context, v *pavv1.VolumeValidation, vars template.Variables) error {
	supported, err := r.list(ctx, "spec.volumeValidation.volumeModes", v.VolumeModes, vars,
		[]string{string(corev1.PersistentVolumeFilesystem)},
		[]string{string(corev1.PersistentVolumeFilesystem), string(corev1.PersistentVolumeBlock)})
	if err != nil {
		return err
	}
	requested, _ := vars["requestedVolumeMode"].(string)
	if !slices.Contains(supported, requested) {
		return refuse("the claim asks for volume mode %s, but the provisioner supports only %s", requested, strings.Join(supported, ", "))
	}
	return nil
}

func (r Request) checkAccessModes(ctx context.Context, v *pavv1.VolumeValidation, vars template.Variables) error {
	contract := []string{string(corev1.ReadWriteOnce), string(corev1.ReadOnlyMany), string(corev1.ReadWriteMany)}
	supported, err := r.list(ctx, "spec.volumeValidation.accessModes", v.AccessModes, vars,
		contract, append([]string{string(corev1.ReadWriteOncePod)}, contract...))
	if err != nil {
		return err
	}
	requested, _ := vars["requestedAccessModes"].([]any)
	for _, mode := range requested {
		text, _ := mode.(string)
		// One pod on one node: whoever can serve the node can serve the pod.
		if text == string(corev1.ReadWriteOncePod) && slices.Contains(supported, string(corev1.ReadWriteOnce)) {
			continue
		}
		if !slices.Contains(supported, text) {
			return refuse("the claim asks for access mode %s, but the provisioner supports only %s", text, strings.Join(supported, ", "))
		}
	}
	return nil
}

// Contract: minCapacity is "the minimum capacity that users may specify in pvc.spec.resources.limits.storage".
func (r Request) checkMinCapacity(ctx context.Context, v *pavv1.VolumeValidation, vars template.Variables) error {
	least, found, err := r.quantity(ctx, "spec.volumeValidation.minCapacity", v.MinCapacity, vars)
	if err != nil || !found {
		return err
	}
	limit, limited := vars["requestedMaxCapacity"].(int64)
	if limited && limit < least {
		return refuse("the claim limits its capacity to %s, but the provisioner's volumes have at least %s", bytes(limit), bytes(least))
	}
	return nil
}

// Contract: maxCapacity is "the maximum capacity that users may specify in pvc.spec.resources.requests.storage".
func (r Request) checkMaxCapacity(ctx context.Context, v *pavv1.VolumeValidation, vars template.Variables) error {
	most, found, err := r.quantity(ctx, "spec.volumeValidation.maxCapacity", v.MaxCapacity, vars)
	if err != nil || !found {
		return err
	}
	if requested, _ := vars["requestedMinCapacity"].(int64); requested > most {
		return refuse("the claim requests a capacity of %s, but the provisioner's volumes have at most %s", bytes(requested), bytes(most))
	}
	return nil
}

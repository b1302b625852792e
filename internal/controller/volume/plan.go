package volume

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/template"
)

// maxHandle is how long a handle may be. CSI: "strings … maximum size of 128 bytes".
const maxHandle = 128

// plan is what a volume will be.
type plan struct {
	handle   string
	capacity int64
}

// request is a volume that a claim asks for, and what its provisioner says to that. Claim and class
// hold text of tenants, which is only ever data here.
type request struct {
	provisioner  *pavv1.PavProvisioner
	claim, class map[string]any
	templates    *template.Evaluator
	getPVC       template.GetPVC
}

// makePlan checks a request against the definition's volumeValidation, and evaluates its
// volumeCreation. An error's text is for the user who wrote the claim.
func makePlan(ctx context.Context, r request) (plan, error) {
	vars, err := template.DynamicValidationVariables(r.claim, r.class)
	if err != nil {
		return plan{}, err
	}
	if err := r.validate(ctx, vars); err != nil {
		return plan{}, err
	}
	if vars, err = template.CreationVariables(r.claim, r.class); err != nil {
		return plan{}, err
	}
	handle, err := r.handle(ctx, vars)
	if err != nil {
		return plan{}, err
	}
	capacity, err := r.capacity(ctx, vars)
	if err != nil {
		return plan{}, err
	}
	return plan{handle: handle, capacity: capacity}, nil
}

func (r request) validate(ctx context.Context, vars template.Variables) error {
	v := r.provisioner.Spec.VolumeValidation
	if v == nil {
		v = &pavv1.VolumeValidation{}
	}
	for _, check := range []func(context.Context, *pavv1.VolumeValidation, template.Variables) error{
		r.checkVolumeMode, r.checkAccessModes, r.checkMinCapacity, r.checkMaxCapacity,
	} {
		if err := check(ctx, v, vars); err != nil {
			return err
		}
	}
	return nil
}

func (r request) checkVolumeMode(ctx context.Context, v *pavv1.VolumeValidation, vars template.Variables) error {
	supported, err := r.list(ctx, "spec.volumeValidation.volumeModes", v.VolumeModes, vars,
		[]string{string(corev1.PersistentVolumeFilesystem)},
		[]string{string(corev1.PersistentVolumeFilesystem), string(corev1.PersistentVolumeBlock)})
	if err != nil {
		return err
	}
	requested, _ := vars["requestedVolumeMode"].(string)
	if !slices.Contains(supported, requested) {
		return fmt.Errorf("the claim asks for volume mode %s, but the provisioner supports only %s", requested, strings.Join(supported, ", "))
	}
	if requested == string(corev1.PersistentVolumeBlock) {
		return errors.New("the claim asks for volume mode Block, but this version of PaV does not support block volumes yet")
	}
	return nil
}

func (r request) checkAccessModes(ctx context.Context, v *pavv1.VolumeValidation, vars template.Variables) error {
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
			return fmt.Errorf("the claim asks for access mode %s, but the provisioner supports only %s", text, strings.Join(supported, ", "))
		}
	}
	return nil
}

// Contract: minCapacity is "the minimum capacity that users may specify in pvc.spec.resources.limits.storage".
func (r request) checkMinCapacity(ctx context.Context, v *pavv1.VolumeValidation, vars template.Variables) error {
	least, found, err := r.quantity(ctx, "spec.volumeValidation.minCapacity", v.MinCapacity, vars)
	if err != nil || !found {
		return err
	}
	limit, limited := vars["requestedMaxCapacity"].(int64)
	if limited && limit < least {
		return fmt.Errorf("the claim limits its capacity to %s, but the provisioner's volumes have at least %s", bytes(limit), bytes(least))
	}
	return nil
}

// Contract: maxCapacity is "the maximum capacity that users may specify in pvc.spec.resources.requests.storage".
func (r request) checkMaxCapacity(ctx context.Context, v *pavv1.VolumeValidation, vars template.Variables) error {
	most, found, err := r.quantity(ctx, "spec.volumeValidation.maxCapacity", v.MaxCapacity, vars)
	if err != nil || !found {
		return err
	}
	if requested, _ := vars["requestedMinCapacity"].(int64); requested > most {
		return fmt.Errorf("the claim requests a capacity of %s, but the provisioner's volumes have at most %s", bytes(requested), bytes(most))
	}
	return nil
}

// handle returns the volume's handle: the one that the definition gives, or else the default.
func (r request) handle(ctx context.Context, vars template.Variables) (string, error) {
	const field = "spec.volumeCreation.handle"
	var given *pavv1.Template
	if r.provisioner.Spec.VolumeCreation != nil {
		given = r.provisioner.Spec.VolumeCreation.Handle
	}
	value, err := r.evaluate(ctx, field, given, vars)
	if err != nil {
		return "", err
	}
	if value == nil {
		value = vars["defaultHandle"]
	}
	handle, err := template.Text(field, value)
	if err != nil {
		return "", err
	}
	if err := checkHandle(handle); err != nil {
		return "", fmt.Errorf("%s: %w", field, err)
	}
	return handle, nil
}

// checkHandle says whether text can be a volume handle.
func checkHandle(text string) error {
	switch {
	case text == "":
		return errors.New("the handle is empty")
	case len(text) > maxHandle:
		return fmt.Errorf("the handle is %d bytes long, and may have %d at most", len(text), maxHandle)
	case !utf8.ValidString(text):
		return errors.New("the handle is not valid UTF-8")
	case strings.ContainsFunc(text, unicode.IsControl):
		return fmt.Errorf("the handle %q has control characters", text)
	}
	return nil
}

// capacity returns the volume's capacity, which must be what was requested or more.
func (r request) capacity(ctx context.Context, vars template.Variables) (int64, error) {
	const field = "spec.volumeCreation.capacity"
	var given *pavv1.Template
	if r.provisioner.Spec.VolumeCreation != nil {
		given = r.provisioner.Spec.VolumeCreation.Capacity
	}
	capacity, found, err := r.quantity(ctx, field, given, vars)
	if err != nil {
		return 0, err
	}
	if !found {
		return 0, fmt.Errorf("%s: is required, as there is no creation pod that could write /pav/capacity", field)
	}
	if requested, _ := vars["requestedMinCapacity"].(int64); capacity < requested {
		return 0, fmt.Errorf("%s: the volume would have a capacity of %s, but the claim requests %s", field, bytes(capacity), bytes(requested))
	}
	return capacity, nil
}

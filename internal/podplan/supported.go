package podplan

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/template"
)

// The subject of messages: a claim, in dynamic provisioning, or a PersistentVolume, in static provisioning.
const (
	ForClaim            = "the claim"
	ForPersistentVolume = "the persistent volume"
)

// Evaluate returns the value of a field of a definition in a context. It is never given a nil definition.
type Evaluate func(ctx context.Context, field string, definition *pavv1.Template, vars template.Variables) (any, error)

// CheckSupported runs the checks of spec.volumeValidation that need no pod. It returns an *Error if the definition does
// not support the volume, a *template.Error if the definition itself is wrong, or an error of evaluate. Vars are
// template.DynamicValidationVariables if who is ForClaim, and template.StaticValidationVariables if who is
// ForPersistentVolume. A nil VolumeValidation stands for an empty one.
func CheckSupported(ctx context.Context, evaluate Evaluate, v *pavv1.VolumeValidation, vars template.Variables, who string) error {
	if v == nil {
		v = &pavv1.VolumeValidation{}
	}
	c := &check{evaluate: evaluate, definition: v, vars: vars, who: who}
	for _, step := range []func(context.Context) error{c.volumeMode, c.accessModes, c.minCapacity, c.maxCapacity} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// check is one call of CheckSupported.
type check struct {
	evaluate   Evaluate
	definition *pavv1.VolumeValidation
	vars       template.Variables
	who        string
}

func (c *check) volumeMode(ctx context.Context) error {
	supported, err := c.list(ctx, "spec.volumeValidation.volumeModes", c.definition.VolumeModes,
		[]string{string(corev1.PersistentVolumeFilesystem)},
		[]string{string(corev1.PersistentVolumeFilesystem), string(corev1.PersistentVolumeBlock)})
	if err != nil {
		return err
	}
	requested, _ := c.vars["requestedVolumeMode"].(string)
	if !slices.Contains(supported, requested) {
		return refuse("%s asks for volume mode %s, but the provisioner supports only %s", c.who, requested, strings.Join(supported, ", "))
	}
	return nil
}

func (c *check) accessModes(ctx context.Context) error {
	contract := []string{string(corev1.ReadWriteOnce), string(corev1.ReadOnlyMany), string(corev1.ReadWriteMany)}
	supported, err := c.list(ctx, "spec.volumeValidation.accessModes", c.definition.AccessModes,
		contract, append([]string{string(corev1.ReadWriteOncePod)}, contract...))
	if err != nil {
		return err
	}
	requested, _ := c.vars["requestedAccessModes"].([]any)
	for _, mode := range requested {
		text, _ := mode.(string)
		// A volume that supports one node also supports one pod.
		if text == string(corev1.ReadWriteOncePod) && slices.Contains(supported, string(corev1.ReadWriteOnce)) {
			continue
		}
		if !slices.Contains(supported, text) {
			return refuse("%s asks for access mode %s, but the provisioner supports only %s", c.who, text, strings.Join(supported, ", "))
		}
	}
	return nil
}

// Contract: minCapacity is "the minimum capacity that users may specify in
// pvc.spec.resources.limits.storage (pv.spec.capacity.storage)".
func (c *check) minCapacity(ctx context.Context) error {
	least, found, err := quantity(ctx, c.evaluate, "spec.volumeValidation.minCapacity", c.definition.MinCapacity, c.vars)
	if err != nil || !found {
		return err
	}
	limit, limited := c.vars["requestedMaxCapacity"].(int64)
	if !limited || limit >= least {
		return nil
	}
	return refuse("%s %s %s, but the provisioner's volumes have at least %s", c.who, c.verb("limits its capacity to"), bytes(limit), bytes(least))
}

// Contract: maxCapacity is "the maximum capacity that users may specify in
// pvc.spec.resources.requests.storage (pv.spec.capacity.storage)".
func (c *check) maxCapacity(ctx context.Context) error {
	most, found, err := quantity(ctx, c.evaluate, "spec.volumeValidation.maxCapacity", c.definition.MaxCapacity, c.vars)
	if err != nil || !found {
		return err
	}
	requested, _ := c.vars["requestedMinCapacity"].(int64)
	if requested <= most {
		return nil
	}
	return refuse("%s %s %s, but the provisioner's volumes have at most %s", c.who, c.verb("requests a capacity of"), bytes(requested), bytes(most))
}

// verb returns the verb for a capacity in messages.
func (c *check) verb(ofClaim string) string {
	if c.who == ForClaim {
		return ofClaim
	}
	return "asks for a capacity of"
}

// list returns the strings of a list field, each of which must be known. If the field is absent, it returns byDefault.
func (c *check) list(ctx context.Context, field string, given *pavv1.Template, byDefault, known []string) ([]string, error) {
	if given == nil {
		return byDefault, nil
	}
	value, err := c.evaluate(ctx, field, given, c.vars)
	if err != nil {
		return nil, err
	}
	if value == nil {
		return byDefault, nil
	}
	items, err := template.TextList(field, value)
	if err != nil {
		return nil, err
	}
	for i, item := range items {
		if !slices.Contains(known, item) {
			return nil, refuse("%s[%d]: %q is none of %s", field, i, item, strings.Join(known, ", "))
		}
	}
	return items, nil
}

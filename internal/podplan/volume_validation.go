package podplan

import (
	"context"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/template"
)

// Validate checks the request against spec.volumeValidation, and returns the evaluated template of the validation
// pod; nil if there is none.
func (r VolumeRequest) Validate(ctx context.Context, v *pavv1.VolumeValidation) (map[string]any, error) {
	if v == nil {
		v = &pavv1.VolumeValidation{}
	}
	vars, err := template.DynamicValidationVariables(r.requested())
	if err != nil {
		return nil, &Error{err}
	}
	if err := CheckSupported(ctx, r.evaluate, v, vars, ForClaim); err != nil {
		return nil, err
	}
	return r.pod(ctx, ValidationPod, v.PodTemplate, vars)
}

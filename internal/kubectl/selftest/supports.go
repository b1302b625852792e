package selftest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/kubectl/status"
	"github.com/albertofaria/pav/internal/podplan"
	"github.com/albertofaria/pav/internal/template"
)

// volume is a volume to test.
type volume struct {
	mode   corev1.PersistentVolumeMode
	access corev1.PersistentVolumeAccessMode

	// static is the handle of an existing volume, for static provisioning; "" for dynamic.
	static string

	// source is the kind of what it is created from; "" if it is created empty. least is the least size of such a volume.
	source pavv1.DataSourceKind
	least  *resource.Quantity
}

// String describes the volume for the report.
func (v volume) String() string {
	text := fmt.Sprintf("%s, %s", v.mode, v.access)
	switch {
	case v.static != "":
		text += ", static"
	case v.source == pavv1.DataSourceClaim:
		text += ", cloned"
	case v.source == pavv1.DataSourceSnapshot:
		text += ", restored"
	}
	return text
}

// claim returns the name of its claim.
func (v volume) claim() string {
	name := "filesystem"
	if v.block() {
		name = "block"
	}
	switch {
	case v.static != "":
		name = "static-" + name
	case v.source == pavv1.DataSourceClaim:
		name += "-clone"
	case v.source == pavv1.DataSourceSnapshot:
		name += "-restored"
	}
	return name
}

// ref names its claim.
func (v volume) ref(namespace string) status.Ref {
	return status.Ref{Kind: status.Claim, Namespace: namespace, Name: v.claim()}
}

func (v volume) block() bool { return v.mode == corev1.PersistentVolumeBlock }

// writes reports whether the test may write to the volume. It never writes to an existing device, which may have data
// on it.
func (v volume) writes() bool {
	return v.access != corev1.ReadOnlyMany && (v.static == "" || !v.block())
}

// shared reports whether several nodes may use it at once.
func (v volume) shared() bool {
	return v.access == corev1.ReadWriteMany || v.access == corev1.ReadOnlyMany
}

// volumes returns the volumes to test: one for each volume mode that the user selected and the definition supports,
// with the best access mode that is selected and supported.
func (r *run) volumes(ctx context.Context) ([]volume, error) {
	definition, err := r.input.definition()
	if err != nil {
		return nil, err
	}
	var volumes []volume
	var refusals []error
	for _, static := range r.provisionings(definition) {
		handle := ""
		if static {
			handle = r.options.Handle
		}
		for _, mode := range r.options.volumeModes() {
			v, err := r.supported(ctx, definition, mode, handle)
			switch {
			case isUnsupported(err):
				refusals = append(refusals, err)
			case err != nil:
				return nil, err
			default:
				volumes = append(volumes, v)
			}
		}
	}
	if len(volumes) == 0 {
		return nil, errors.Join(append([]error{errors.New("the definition supports none of the volumes that could be tested")}, refusals...)...)
	}
	return volumes, nil
}

// provisionings returns the kinds of provisioning to test: true for static, false for dynamic.
func (r *run) provisionings(p *pavv1.PavProvisioner) []bool {
	var wanted []bool
	if slices.Contains(p.Spec.ProvisioningModes, pavv1.ProvisioningModeDynamic) {
		wanted = append(wanted, false)
	}
	if r.options.Handle != "" && slices.Contains(p.Spec.ProvisioningModes, pavv1.ProvisioningModeStatic) {
		wanted = append(wanted, true)
	}
	return wanted
}

// supported returns the volume of a mode with the first access mode that the definition supports, or why it supports
// none.
func (r *run) supported(ctx context.Context, p *pavv1.PavProvisioner, mode corev1.PersistentVolumeMode, handle string) (volume, error) {
	var first error
	for _, access := range r.options.accessModes() {
		v := volume{mode: mode, access: access, static: handle}
		err := r.supports(ctx, p, v)
		if err == nil {
			return v, nil
		}
		if !isUnsupported(err) {
			return volume{}, err
		}
		if first == nil {
			first = err
		}
	}
	return volume{}, first
}

// isUnsupported reports whether an error means that a definition does not support a volume, and not that the
// definition is wrong.
func isUnsupported(err error) bool {
	_, ok := errors.AsType[*podplan.Error](err)
	return ok
}

// supports returns why the definition refuses a volume; nil if it does not.
func (r *run) supports(ctx context.Context, p *pavv1.PavProvisioner, v volume) error {
	vars, who, err := r.variables(v)
	if err != nil {
		return err
	}
	evaluate := func(ctx context.Context, field string, given *pavv1.Template, vars template.Variables) (any, error) {
		return r.templates.Evaluate(ctx, template.Field{Path: field}, *given, vars, r.getPVC)
	}
	return podplan.CheckSupported(ctx, evaluate, p.Spec.VolumeValidation, vars, who)
}

// variables returns the context of volumeValidation for a volume, and whose volume it is.
func (r *run) variables(v volume) (vars template.Variables, who string, err error) {
	if v.static != "" {
		data, err := encode(r.persistentVolume(v))
		if err != nil {
			return nil, "", err
		}
		vars, err = template.StaticValidationVariables(data)
		return vars, podplan.ForPersistentVolume, err
	}
	claim, err := encode(r.claim(v))
	if err != nil {
		return nil, "", err
	}
	class, err := encode(r.class())
	if err != nil {
		return nil, "", err
	}
	// As in a claim that exists.
	for field, value := range map[string]string{"uid": "00000000-0000-0000-0000-000000000000", "resourceVersion": "1"} {
		if err := unstructured.SetNestedField(claim, value, "metadata", field); err != nil {
			return nil, "", err
		}
	}
	vars, err = template.DynamicValidationVariables(template.Request{Claim: claim, Class: class})
	return vars, podplan.ForClaim, err
}

// getPVC looks up a claim for a template.
func (r *run) getPVC(ctx context.Context, name, namespace string) (map[string]any, error) {
	claim := &corev1.PersistentVolumeClaim{}
	err := r.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, claim)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("looking up a claim: %w", err)
	}
	if err != nil {
		return nil, template.ErrNoClaim
	}
	return encode(claim)
}

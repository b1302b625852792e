package podplan

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	storagev1 "k8s.io/api/storage/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/template"
)

// errNoModification says that volumes of a definition have no attributes.
var errNoModification = errors.New("spec.volumeModification: is missing, so that volumes have no attributes")

// Modify evaluates spec.volumeModification for the attributes that the volume is to have. It returns the evaluated template of the
// modification pod; nil if there is none.
func (r VolumeRequest) Modify(ctx context.Context, m *pavv1.VolumeModification) (map[string]any, error) {
	if m == nil {
		return nil, &Error{errNoModification}
	}
	vars, err := template.ModificationVariables(r.Volume, r.Claim, r.Class, r.Attributes, r.OldAttributes, r.StagedOn)
	if err != nil {
		return nil, &Error{err}
	}
	return r.pod(ctx, ModificationPod, m.PodTemplate, vars)
}

// CheckAttributes returns why the volumes of a provisioner cannot have the attributes of a VolumeAttributesClass, or nil.
//
// CSI, CreateVolume and ControllerModifyVolume: unknown mutable parameters are an error.
func CheckAttributes(p *pavv1.PavProvisioner, class *storagev1.VolumeAttributesClass) error {
	switch m := p.Spec.VolumeModification; {
	case class.DriverName != p.Name:
		return refuse("VolumeAttributesClass %q is for volumes of the driver %q, not of PavProvisioner %q", class.Name, class.DriverName, p.Name)
	case m == nil:
		return refuse("PavProvisioner %q has no spec.volumeModification, so that its volumes cannot have the attributes of VolumeAttributesClass %q", p.Name, class.Name)
	default:
		return checkParameters(p.Name, class.Name, class.Parameters, m.Parameters)
	}
}

// mostKnown is how many parameters a message lists.
const mostKnown = 16

func checkParameters(provisioner, class string, given map[string]string, known []string) error {
	for _, key := range slices.Sorted(maps.Keys(given)) {
		if slices.Contains(known, key) {
			continue
		}
		knows := "none"
		if len(known) > 0 {
			knows = "only " + strings.Join(known[:min(len(known), mostKnown)], ", ")
		}
		return refuse("VolumeAttributesClass %q: parameters[%s]: spec.volumeModification.parameters of PavProvisioner %q has %s", class, key, provisioner, knows)
	}
	return nil
}

// AttributesClassAtCreation returns the VolumeAttributesClass with which a volume is created, as it was then; nil if it has none.
func AttributesClassAtCreation(volume *pavv1.PavVolume) (*storagev1.VolumeAttributesClass, error) {
	raw := volume.Spec.VolumeAttributesClass
	if raw == nil {
		return nil, nil
	}
	class := &storagev1.VolumeAttributesClass{}
	if err := json.Unmarshal(raw.Raw, class); err != nil {
		return nil, fmt.Errorf("spec.volumeAttributesClass of PavVolume %q: %w", volume.Name, err)
	}
	return class, nil
}

// AttributesAtCreation returns the attributes with which a volume is created. They have no class if there are none.
func AttributesAtCreation(volume *pavv1.PavVolume) (pavv1.VolumeAttributes, error) {
	class, err := AttributesClassAtCreation(volume)
	if err != nil || class == nil {
		return pavv1.VolumeAttributes{}, err
	}
	return pavv1.VolumeAttributes{Class: class.Name, Parameters: class.Parameters}, nil
}

// Attributes returns the attributes that a volume has. They have no class if there are none.
func Attributes(volume *pavv1.PavVolume) (pavv1.VolumeAttributes, error) {
	if a := volume.Status.Attributes; a != nil {
		return *a, nil
	}
	return AttributesAtCreation(volume)
}

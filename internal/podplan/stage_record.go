package podplan

import (
	"encoding/json"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/template"
)

// StageRecord is what the controller agent has found out about a stage: the value of pavv1.AdmittedAnnotation.
type StageRecord struct {
	// References are what the stage's pods may refer to, whatever becomes of the definition and the client.
	References []string `json:"references,omitempty"`

	// Copies says that the stage's copies of the volume and the claim were true, so that a changed definition can be
	// evaluated with them when the objects are gone. A stage's copies never change.
	Copies bool `json:"copies,omitempty"`

	// StageObjects are the volume and the claim as they were, where the stage's copies are not true: a tenant may have
	// changed the claim since.
	Objects *RecordedObjects `json:"objects,omitempty"`
}

// RecordedObjects is what a record has of the objects that a stage names.
type RecordedObjects struct {
	Volume      json.RawMessage `json:"volume,omitempty"`
	Claim       json.RawMessage `json:"claim,omitempty"`
	Provisioned json.RawMessage `json:"provisioned,omitempty"`
}

// RecordOf returns the record of a stage, or nil where there is none. A record that cannot be read admits nothing more.
func RecordOf(stage *pavv1.PavStage) *StageRecord {
	text, found := stage.Annotations[pavv1.AdmittedAnnotation]
	if !found {
		return nil
	}
	r := &StageRecord{}
	if err := json.Unmarshal([]byte(text), r); err != nil {
		return &StageRecord{}
	}
	return r
}

// Admitted returns the references that a record, which may be nil, admits.
func (r *StageRecord) Admitted() References {
	all := References{}
	if r != nil {
		for _, reference := range r.References {
			all[reference] = true
		}
	}
	return all
}

// KeptObjects returns what is kept of the volume and the claim of a stage, for when they are gone: what its record has, or
// else its own copies. The claim that the volume was made for may be missing in both.
func KeptObjects(stage *pavv1.PavStage) (o StageObjects, err error) {
	spec := &stage.Spec
	raw := RecordedObjects{Volume: spec.Volume.Raw, Claim: spec.Claim.Raw}
	if spec.ProvisionedClaim != nil {
		raw.Provisioned = spec.ProvisionedClaim.Raw
	}
	if record := RecordOf(stage); record != nil && record.Objects != nil {
		raw = *record.Objects
	}
	for object, text := range map[*map[string]any]json.RawMessage{&o.Volume: raw.Volume, &o.Claim: raw.Claim, &o.Provisioned: raw.Provisioned} {
		if len(text) == 0 {
			continue
		}
		value, err := template.Decode(apiextensionsv1.JSON{Raw: text})
		if err == nil {
			*object, err = template.Object("", value)
		}
		if err != nil {
			return o, fmt.Errorf("reading what is kept of the objects of PavStage %q: %w", stage.Name, err)
		}
	}
	return o, nil
}

// CurrentObjects returns the objects of a stage as they are, which may be nil, or as they are kept where one is gone or another
// one has its name by now. The node's agent renders with these, and the webhook judges with the same.
func CurrentObjects(stage *pavv1.PavStage, live, kept StageObjects) StageObjects {
	o := kept
	o.Node = live.Node
	if IsVolume(stage, live.Volume, kept.Volume) {
		o.Volume = live.Volume
	}
	if IsSame(live.Claim, kept.Claim) {
		o.Claim = live.Claim
	}
	if o.Provisioned == nil {
		o.Provisioned = live.Provisioned
	}
	return o
}

// IsVolume reports whether a volume, which may be nil, is the one that a stage is of, and its claim's still. If not,
// another one has its name by now, or it is on its way to another claim.
func IsVolume(stage *pavv1.PavStage, volume, kept map[string]any) bool {
	return IsSame(volume, kept) && types.UID(TextAt(volume, "spec", "claimRef", "uid")) == stage.Spec.ClaimRef.UID
}

// IsSame reports whether an object, which may be nil, is the one that is kept. If not, another one has its name by now.
func IsSame(object, kept map[string]any) bool {
	return object != nil && TextAt(object, "metadata", "uid") == TextAt(kept, "metadata", "uid")
}

// TextAt returns the text of an object's field, or nothing.
func TextAt(object map[string]any, path ...string) string {
	value, _, _ := unstructured.NestedString(object, path...)
	return value
}

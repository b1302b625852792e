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

// StageRecord is the result of the controller agent's checks of a stage: the value of pavv1.AdmittedAnnotation.
type StageRecord struct {
	// References are the references that the stage's pods may have, even after the definition or the client has
	// changed.
	References []string `json:"references,omitempty"`

	// Copies says that the stage's copies of the volume and the claim are correct, so that a changed definition can
	// be evaluated with them when the objects are gone. A stage's copies never change.
	Copies bool `json:"copies,omitempty"`

	// StageObjects are the volume and the claim as they were, if the stage's copies are not correct: a tenant may
	// have changed the claim since.
	Objects *RecordedObjects `json:"objects,omitempty"`
}

// RecordedObjects has the recorded objects of a stage.
type RecordedObjects struct {
	Volume      json.RawMessage `json:"volume,omitempty"`
	Claim       json.RawMessage `json:"claim,omitempty"`
	Provisioned json.RawMessage `json:"provisioned,omitempty"`

	// Bucket is the bucket that the volume is; nil if it is none.
	Bucket *pavv1.VolumeBucket `json:"bucket,omitempty"`
}

// RecordOf returns the record of a stage, or nil if there is none. A record that cannot be read admits nothing more.
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

// Admitted returns the references that a record allows. The record may be nil.
func (r *StageRecord) Admitted() References {
	all := References{}
	if r != nil {
		for _, reference := range r.References {
			all[reference] = true
		}
	}
	return all
}

// KeptObjects returns the volume and the claim of a stage from its record or else from its own copies, for when the
// objects are gone. The claim that the volume was created for may be missing in both.
func KeptObjects(stage *pavv1.PavStage) (o StageObjects, err error) {
	spec := &stage.Spec
	raw := RecordedObjects{Volume: spec.Volume.Raw, Claim: spec.Claim.Raw, Bucket: spec.Bucket}
	if spec.ProvisionedClaim != nil {
		raw.Provisioned = spec.ProvisionedClaim.Raw
	}
	if record := RecordOf(stage); record != nil && record.Objects != nil {
		raw = *record.Objects
	}
	o.Bucket = raw.Bucket
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

// CurrentObjects returns the current objects of a stage, which may be nil. An object that is gone or was replaced is
// the kept one. The node agent evaluates templates with these objects, and the webhook uses the same.
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
	if o.Bucket == nil {
		o.Bucket = live.Bucket
	}
	return o
}

// IsVolume reports whether a volume, which may be nil, is that of a stage, and still belongs to its claim. If not, it
// was replaced, or is being bound to another claim.
func IsVolume(stage *pavv1.PavStage, volume, kept map[string]any) bool {
	return IsSame(volume, kept) && types.UID(TextAt(volume, "spec", "claimRef", "uid")) == stage.Spec.ClaimRef.UID
}

// IsSame reports whether an object, which may be nil, is the kept one. If not, it was replaced.
func IsSame(object, kept map[string]any) bool {
	return object != nil && TextAt(object, "metadata", "uid") == TextAt(kept, "metadata", "uid")
}

// TextAt returns the text of an object's field, or "".
func TextAt(object map[string]any, path ...string) string {
	value, _, _ := unstructured.NestedString(object, path...)
	return value
}

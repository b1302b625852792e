package admission

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/stageplan"
)

// record is what the controller agent has found out about a stage: the value of pavv1.AdmittedAnnotation.
type record struct {
	// References are what the stage's pods may refer to, whatever becomes of the definition and the client.
	References []string `json:"references,omitempty"`

	// Copies says that the stage's copies of the volume and the claim were true, so that a changed definition can be
	// evaluated with them when the objects are gone. A stage's copies never change.
	Copies bool `json:"copies,omitempty"`

	// Objects are the volume and the claim as they were, where the stage's copies are not true: a tenant may have
	// changed the claim since.
	Objects *recorded `json:"objects,omitempty"`
}

// recorded is what a record has of the objects that a stage names.
type recorded struct {
	Volume      json.RawMessage `json:"volume,omitempty"`
	Claim       json.RawMessage `json:"claim,omitempty"`
	Provisioned json.RawMessage `json:"provisioned,omitempty"`
}

// maxRecord is how long a record may be that has objects, in bytes: all annotations of an object may have 256 KiB.
const maxRecord = 128 << 10

// recordOf returns the record of a stage, or nil where there is none. A record that cannot be read admits nothing more.
func recordOf(stage *pavv1.PavStage) *record {
	text, found := stage.Annotations[pavv1.AdmittedAnnotation]
	if !found {
		return nil
	}
	r := &record{}
	if err := json.Unmarshal([]byte(text), r); err != nil {
		return &record{}
	}
	return r
}

// references returns what the record admits.
func (r *record) references() stageplan.References {
	all := stageplan.References{}
	if r != nil {
		for _, reference := range r.References {
			all[reference] = true
		}
	}
	return all
}

// with returns the record with what was found out now. Objects that it has already are as good as those of later.
func (r *record) with(planned stageplan.References, f found) *record {
	all := r.references()
	maps.Copy(all, planned)
	next := &record{References: slices.Sorted(maps.Keys(all)), Copies: f.copies || r != nil && r.Copies}
	switch {
	case next.Copies:
	case r != nil && r.Objects != nil:
		next.Objects = r.Objects
	default:
		next.Objects = f.recorded()
	}
	return next
}

// write writes the record on the stage as it was read. If anything of it has changed since, that is a conflict.
func (r *record) write(ctx context.Context, c client.Client, stage *pavv1.PavStage) error {
	if equality.Semantic.DeepEqual(r, recordOf(stage)) {
		return nil
	}
	text, err := r.text()
	if err != nil {
		return fmt.Errorf("encoding the record of PavStage %q: %w", stage.Name, err)
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": stage.UID, "resourceVersion": stage.ResourceVersion, "annotations": map[string]string{pavv1.AdmittedAnnotation: string(text)},
	}})
	if err != nil {
		return fmt.Errorf("encoding the record of PavStage %q: %w", stage.Name, err)
	}
	if err := c.Patch(ctx, stage.DeepCopy(), client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("recording that the pods of PavStage %q are admitted: %w", stage.Name, err)
	}
	return nil
}

// text returns the record as an annotation has it, without the objects where they are too large.
func (r *record) text() ([]byte, error) {
	text, err := json.Marshal(r)
	if err != nil || len(text) <= maxRecord || r.Objects == nil {
		return text, err
	}
	return json.Marshal(&record{References: r.References, Copies: r.Copies})
}

// found is what was found out about a stage: what its definition is to be evaluated with.
type found struct {
	objects *stageplan.Objects // nil where there are none that can be trusted
	copies  bool               // the copies that the stage has are true
}

// recorded returns the objects as a record has them, or nil where they cannot be encoded.
func (f found) recorded() *recorded {
	if f.objects == nil {
		return nil
	}
	all := &recorded{}
	for raw, object := range map[*json.RawMessage]map[string]any{&all.Volume: f.objects.Volume, &all.Claim: f.objects.Claim, &all.Provisioned: f.objects.Provisioned} {
		if object == nil {
			continue
		}
		var err error
		if *raw, err = json.Marshal(object); err != nil {
			return nil
		}
	}
	return all
}

// decoded returns the objects that a record has, with the node as it is.
func (r *recorded) decoded(live stageplan.Objects) (*stageplan.Objects, error) {
	all := &stageplan.Objects{Node: live.Node}
	for object, raw := range map[*map[string]any]json.RawMessage{&all.Volume: r.Volume, &all.Claim: r.Claim, &all.Provisioned: r.Provisioned} {
		var err error
		if *object, err = decode(raw); err != nil {
			return nil, fmt.Errorf("reading the record of the stage: %w", err)
		}
	}
	return all, nil
}

// isCopy reports whether a stage's copy of an object is true.
func isCopy(raw apiextensionsv1.JSON, object map[string]any) bool {
	copied, err := decode(raw.Raw)
	if err != nil || copied == nil || object == nil {
		return false
	}
	plain := func(object map[string]any) map[string]any {
		object = (&unstructured.Unstructured{Object: object}).DeepCopy().Object
		unstructured.RemoveNestedField(object, "metadata", "managedFields")
		unstructured.RemoveNestedField(object, "metadata", "resourceVersion")
		return object
	}
	return equality.Semantic.DeepEqual(plain(copied), plain(object))
}

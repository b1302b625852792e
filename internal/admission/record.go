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
}

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

// with returns the record with what was found out now.
func (r *record) with(planned stageplan.References, copies bool) *record {
	all := r.references()
	maps.Copy(all, planned)
	return &record{References: slices.Sorted(maps.Keys(all)), Copies: copies || r != nil && r.Copies}
}

// write writes the record on the stage as it was read, whatever else of it has changed since.
func (r *record) write(ctx context.Context, c client.Client, stage *pavv1.PavStage) error {
	if equality.Semantic.DeepEqual(r, recordOf(stage)) {
		return nil
	}
	text, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encoding the record of PavStage %q: %w", stage.Name, err)
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": stage.UID, "annotations": map[string]string{pavv1.AdmittedAnnotation: string(text)},
	}})
	if err != nil {
		return fmt.Errorf("encoding the record of PavStage %q: %w", stage.Name, err)
	}
	if err := c.Patch(ctx, stage.DeepCopy(), client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("recording that the pods of PavStage %q are admitted: %w", stage.Name, err)
	}
	return nil
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

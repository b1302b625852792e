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
	"github.com/albertofaria/pav/internal/podplan"
)

// maxRecord is the maximum length of a record with objects, in bytes: all annotations of an object may have 256 KiB.
const maxRecord = 128 << 10

// nextRecord returns a record, which may be nil, with the new findings. Objects that it already has are kept.
func nextRecord(r *podplan.StageRecord, planned podplan.References, f found) *podplan.StageRecord {
	all := r.Admitted()
	maps.Copy(all, planned)
	next := &podplan.StageRecord{References: slices.Sorted(maps.Keys(all)), Copies: f.copies || r != nil && r.Copies}
	switch {
	case next.Copies:
	case r != nil && r.Objects != nil:
		next.Objects = r.Objects
	default:
		next.Objects = f.recorded()
	}
	return next
}

// write writes the record to the stage. If the stage has changed since it was read, the error is a conflict.
func write(ctx context.Context, c client.Client, stage *pavv1.PavStage, r *podplan.StageRecord) error {
	if equality.Semantic.DeepEqual(r, podplan.RecordOf(stage)) {
		return nil
	}
	text, err := encode(r)
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

// encode returns the value of the annotation, without the objects if they are too large.
func encode(r *podplan.StageRecord) ([]byte, error) {
	text, err := json.Marshal(r)
	if err != nil || len(text) <= maxRecord || r.Objects == nil {
		return text, err
	}
	return json.Marshal(&podplan.StageRecord{References: r.References, Copies: r.Copies})
}

// found has the objects with which the definition of a stage is evaluated.
type found struct {
	objects *podplan.StageObjects // nil if there are none that can be trusted
	copies  bool                  // the copies in the stage are correct
}

// recorded returns the objects of a record, or nil if they cannot be encoded.
func (f found) recorded() *podplan.RecordedObjects {
	if f.objects == nil {
		return nil
	}
	all := &podplan.RecordedObjects{Bucket: f.objects.Bucket}
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

// isCopy reports whether a stage's copy of an object is correct.
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

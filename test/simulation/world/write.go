package world

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Patch applies a merge patch or a JSON patch to an object. It changes only the status if status is true, and everything
// but the status otherwise. It copies the stored object into object.
func (s *Store) Patch(by string, object client.Object, patch client.Patch, status bool) error {
	key := s.KeyOf(object)
	t := s.table(key.Kind)
	if patch.Type() != types.MergePatchType && patch.Type() != types.JSONPatchType {
		return apierrors.NewBadRequest(fmt.Sprintf("the world has no patches of type %s", patch.Type()))
	}
	data, err := patch.Data(object)
	if err != nil {
		return err
	}
	before := t.objects[key].object
	if before == nil {
		return t.notFound(key)
	}
	after, err := patched(t, t.objects[key].raw, patch.Type(), data)
	if err != nil {
		return err
	}
	if after.GetUID() != before.GetUID() {
		return t.conflict(key, "the UID is another one's")
	}
	// The stored encoding has no resource version. A resource version in the result therefore comes from the patch.
	if version := after.GetResourceVersion(); version != "" && version != before.GetResourceVersion() {
		return t.conflict(key, "the object has been modified")
	}
	if status {
		whole := shallow(before)
		copyStatus(after, whole)
		after = whole
	} else if hasStatus(t) {
		copyStatus(before, after)
	}
	kept, err := s.replace(by, t, key, after)
	if err != nil {
		return err
	}
	return copyInto(kept, object)
}

func patched(t *table, raw []byte, kind types.PatchType, data []byte) (client.Object, error) {
	changed, err := changed(raw, kind, data)
	if err != nil {
		return nil, err
	}
	after := shallow(t.example)
	if err := json.Unmarshal(changed, after); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return after, nil
}

// changed applies a patch to an encoded object.
func changed(raw []byte, kind types.PatchType, data []byte) ([]byte, error) {
	if kind == types.MergePatchType {
		merged, err := jsonpatch.MergePatch(raw, data)
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		return merged, nil
	}
	patch, err := jsonpatch.DecodePatch(data)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	after, err := patch.Apply(raw)
	if err != nil { // also a test that failed
		return nil, apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "patch", schema.GroupResource{}, "", err.Error(), 0, false)
	}
	return after, nil
}

// Update replaces an object. It replaces only the status if status is true, and everything but the status otherwise. It
// copies the stored object into object.
func (s *Store) Update(by string, object client.Object, status bool) error {
	key := s.KeyOf(object)
	t := s.table(key.Kind)
	before := t.objects[key].object
	switch {
	case before == nil:
		return t.notFound(key)
	case object.GetUID() != "" && object.GetUID() != before.GetUID():
		return t.conflict(key, "the UID is another one's")
	case object.GetResourceVersion() != "" && object.GetResourceVersion() != before.GetResourceVersion():
		return t.conflict(key, "the object has been modified")
	}
	after := shallow(object)
	if status {
		after = shallow(before)
		copyStatus(object, after)
	} else if hasStatus(t) {
		copyStatus(before, after)
	}
	kept, err := s.replace(by, t, key, after)
	if err != nil {
		return err
	}
	return copyInto(kept, object)
}

// Delete marks an object as deleted, or removes it at once if nothing holds it. grace is the grace period for pods in
// seconds. If grace is nil, the grace period comes from the specification of the pod.
func (s *Store) Delete(by string, key Key, preconditions *metav1.Preconditions, grace *int64) error {
	t := s.table(key.Kind)
	before := t.objects[key].object
	if before == nil {
		return t.notFound(key)
	}
	if p := preconditions; p != nil {
		if p.UID != nil && *p.UID != before.GetUID() {
			return t.conflict(key, "the UID is another one's")
		}
		if p.ResourceVersion != nil && *p.ResourceVersion != before.GetResourceVersion() {
			return t.conflict(key, "the object has been modified")
		}
	}
	after := shallow(before)
	seconds := graceOf(before, grace)
	if known := before.GetDeletionGracePeriodSeconds(); before.GetDeletionTimestamp() != nil && (known == nil || *known <= seconds) {
		return nil // is already being deleted, with the same or a shorter grace period
	}
	after.SetDeletionTimestamp(new(metav1.NewTime(time.Now().Add(time.Duration(seconds) * time.Second))))
	after.SetDeletionGracePeriodSeconds(&seconds)
	if err := s.admit(by, before, after); err != nil {
		return err
	}
	if gone(after) {
		return s.remove(by, t, key, before)
	}
	after.SetGeneration(before.GetGeneration() + 1)
	_, err := s.put(t, key, before, after)
	return err
}

// graceOf returns the grace period of the deletion of an object, in seconds. It is 0 for all objects without a kubelet:
// objects of other kinds, pods without a node, and pods that have ended.
func graceOf(object client.Object, asked *int64) int64 {
	pod, ok := object.(*corev1.Pod)
	if !ok || pod.Spec.NodeName == "" || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return 0
	}
	if asked != nil {
		return *asked
	}
	return ptr.Deref(pod.Spec.TerminationGracePeriodSeconds, 30)
}

// hasStatus reports whether a kind has a status. Clients change the status only through the status subresource.
func hasStatus(t *table) bool {
	return reflect.ValueOf(t.example).Elem().FieldByName("Status").IsValid()
}

// shallow returns a shallow copy of an object. The caller may set the metadata of the copy. The copy shares pointers,
// maps and slices with the object.
func shallow(object client.Object) client.Object {
	made := reflect.New(reflect.TypeOf(object).Elem())
	made.Elem().Set(reflect.ValueOf(object).Elem())
	return made.Interface().(client.Object)
}

// copyStatus copies the status of one object to another object of the same kind. Both then share pointers, maps and
// slices.
func copyStatus(from, to client.Object) {
	source := reflect.ValueOf(from).Elem().FieldByName("Status")
	if source.IsValid() {
		reflect.ValueOf(to).Elem().FieldByName("Status").Set(source)
	}
}

func clearStatus(object client.Object) {
	status := reflect.ValueOf(object).Elem().FieldByName("Status")
	if status.IsValid() {
		status.SetZero()
	}
}

// specDiffers reports whether any field other than metadata and status has changed.
func specDiffers(before, after client.Object) bool {
	a, b := reflect.ValueOf(before).Elem(), reflect.ValueOf(after).Elem()
	for i := range a.NumField() {
		switch a.Type().Field(i).Name {
		case "TypeMeta", "ObjectMeta", "Status":
			continue
		}
		if !equality.Semantic.DeepEqual(a.Field(i).Interface(), b.Field(i).Interface()) {
			return true
		}
	}
	return false
}

// copyInto copies an object of the store into the object of a caller. The object of the caller may be typed,
// unstructured, or metadata only.
func copyInto(from, into client.Object) error {
	switch target := into.(type) {
	case *unstructured.Unstructured:
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(from)
		if err != nil {
			return err
		}
		target.Object = content
	case *metav1.PartialObjectMetadata:
		kind := target.GroupVersionKind()
		copied := from.DeepCopyObject().(client.Object)
		*target = *metadataOf(copied)
		target.SetGroupVersionKind(kind)
	default:
		value := reflect.ValueOf(into).Elem()
		value.Set(reflect.ValueOf(from.DeepCopyObject()).Elem())
		into.GetObjectKind().SetGroupVersionKind(from.GetObjectKind().GroupVersionKind())
	}
	return nil
}

// metadataOf returns the metadata of an object. The result shares pointers, maps and slices with the object.
func metadataOf(object client.Object) *metav1.PartialObjectMetadata {
	meta := reflect.ValueOf(object).Elem().FieldByName("ObjectMeta").Interface().(metav1.ObjectMeta)
	return &metav1.PartialObjectMetadata{ObjectMeta: meta}
}

// HasFinalizer reports whether an object has the given finalizer.
func HasFinalizer(object client.Object, finalizer string) bool {
	return slices.Contains(object.GetFinalizers(), finalizer)
}

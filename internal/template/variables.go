package template

import (
	"errors"
	"fmt"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Variables are the names that a template can use, with plain data as values: nil, bool, int64,
// float64, string, []any and map[string]any, to any depth. Objects are as the API server returned them;
// templates see their keys in alphabetical order.
type Variables map[string]any

// Request is what a claim requests. Node is the Node that the scheduler selected for the claim's first consumer, or nil. Attributes are the
// parameters of the claim's VolumeAttributesClass. Source is what the volume is created from, as templates see it, or nil.
type Request struct {
	Claim, Class, Node map[string]any
	Attributes         map[string]string
	Source             map[string]any
}

// DynamicValidationVariables returns the context of volumeValidation for a volume that a claim asks
// for. Besides what the contract says, there is selectedNode, the Node that the scheduler selected for
// the claim's first consumer, where it chose one.
//
// CSI, CreateVolume: mutable_parameters "take precedence" over the parameters, so params has the attributes, too.
func DynamicValidationVariables(r Request) (Variables, error) {
	minCapacity, err := requiredStorage("the claim", r.Claim, "spec", "resources", "requests", "storage")
	if err != nil {
		return nil, err
	}
	maxCapacity, err := storage("the claim", r.Claim, "spec", "resources", "limits", "storage")
	if err != nil {
		return nil, err
	}
	vars := Variables{
		"requestedVolumeMode":  volumeMode(r.Claim),
		"requestedAccessModes": list(r.Claim, "spec", "accessModes"),
		"requestedMinCapacity": minCapacity,
		"requestedMaxCapacity": maxCapacity,
		"params":               overridden(mapping(r.Class, "parameters"), r.Attributes),
		"attributes":           mappingOf(r.Attributes),
		"source":               orNone(r.Source),
		"sc":                   r.Class,
		"pvc":                  r.Claim,
	}
	if r.Node != nil {
		vars["selectedNode"] = r.Node
	}
	return vars, nil
}

// StaticValidationVariables returns the context of volumeValidation for a statically provisioned volume, when it is
// staged.
func StaticValidationVariables(volume map[string]any) (Variables, error) {
	capacity, err := requiredStorage("the persistent volume", volume, "spec", "capacity", "storage")
	if err != nil {
		return nil, err
	}
	return Variables{
		"requestedVolumeMode":  volumeMode(volume),
		"requestedAccessModes": list(volume, "spec", "accessModes"),
		"requestedMinCapacity": capacity,
		"requestedMaxCapacity": capacity,
		"params":               mapping(volume, "spec", "csi", "volumeAttributes"),
		"attributes":           map[string]any{},
		"source":               nil,
		"handle":               text(volume, "spec", "csi", "volumeHandle"),
		"pv":                   volume,
	}, nil
}

// CreationVariables returns the context of volumeCreation: that of volumeValidation, and the default handle.
func CreationVariables(r Request) (Variables, error) {
	vars, err := DynamicValidationVariables(r)
	if err != nil {
		return nil, err
	}
	vars["defaultHandle"] = "pvc-" + text(r.Claim, "metadata", "uid")
	return vars, nil
}

// DeletionVariables returns the context of volumeDeletion: that of volumeCreation, the claim that the
// volume was created for as it was then, and the handle of the volume as volumeHandle if it is known, which is
// "" if the volume was never created.
func DeletionVariables(r Request, provisioned map[string]any, handle string) (Variables, error) {
	vars, err := CreationVariables(r)
	if err != nil {
		return nil, err
	}
	vars["provisionedPvc"] = provisioned
	if handle != "" {
		vars["volumeHandle"] = handle
	}
	return vars, nil
}

// SourceVariable returns what a volume is created from as templates see it. Parameters are those of the VolumeSnapshotClass or the
// StorageClass. Capacity is nil if it is not known.
func SourceVariable(kind, namespace, name, handle string, capacity *int64, params map[string]string, topology []map[string]string) map[string]any {
	reachable := make([]any, len(topology))
	for i, labels := range topology {
		reachable[i] = mappingOf(labels)
	}
	source := map[string]any{
		"kind": kind, "namespace": namespace, "name": name, "handle": handle, "capacity": nil, "params": mappingOf(params), "accessibleTopology": reachable,
	}
	if capacity != nil {
		source["capacity"] = *capacity
	}
	return source
}

// ExpansionVariables returns the context of volumeExpansion: the claim's PersistentVolume, as it is before the expansion, and
// the capacity that the volume is to have, in bytes.
func ExpansionVariables(volume, claim, class map[string]any, newCapacity int64, stagedOn []string) (Variables, error) {
	vars, err := changeVariables(volume, claim, class, stagedOn)
	if err != nil {
		return nil, err
	}
	vars["newCapacity"] = newCapacity
	return vars, nil
}

// ModificationVariables returns the context of volumeModification: that of volumeExpansion without the new capacity, and the
// attributes that the volume is to have, and those that it has.
func ModificationVariables(volume, claim, class map[string]any, attributes, old map[string]string, stagedOn []string) (Variables, error) {
	vars, err := changeVariables(volume, claim, class, stagedOn)
	if err != nil {
		return nil, err
	}
	vars["attributes"], vars["oldAttributes"] = mappingOf(attributes), mappingOf(old)
	return vars, nil
}

// changeVariables returns what the contexts of changes of a volume that exists have in common. Class is nil for a volume that an
// administrator wrote.
func changeVariables(volume, claim, class map[string]any, stagedOn []string) (Variables, error) {
	capacity, err := requiredStorage("the persistent volume", volume, "spec", "capacity", "storage")
	if err != nil {
		return nil, err
	}
	maxCapacity, err := storage("the claim", claim, "spec", "resources", "limits", "storage")
	if err != nil {
		return nil, err
	}
	vars := Variables{
		"volumeMode":  volumeMode(volume),
		"accessModes": list(volume, "spec", "accessModes"),
		"capacity":    capacity,
		"maxCapacity": maxCapacity,
		"stagedOn":    listOf(stagedOn),
		"params":      mapping(volume, "spec", "csi", "volumeAttributes"),
		"handle":      text(volume, "spec", "csi", "volumeHandle"),
		"pvc":         claim,
		"pv":          volume,
	}
	if class != nil {
		vars["params"], vars["sc"] = mapping(class, "parameters"), class
	}
	return vars, nil
}

// SnapshotObjects are the objects that a snapshot is made from, as they were when it was requested. Each is nil if there is none.
type SnapshotObjects struct {
	Snapshot, Content, Class, Volume, Claim map[string]any
}

// SnapshotVariables returns the context of snapshotCreation and snapshotDeletion. Handle is the snapshot's, or "" before it is known.
func SnapshotVariables(o SnapshotObjects, params map[string]string, defaultHandle, handle string) (Variables, error) {
	vars := Variables{
		"handle": nil, "capacity": nil, "volumeMode": nil, "volumeParams": map[string]any{},
		"params": mappingOf(params), "defaultSnapshotHandle": defaultHandle, "snapshotHandle": nil,
		"snapshot": orNone(o.Snapshot), "snapshotContent": orNone(o.Content), "snapshotClass": orNone(o.Class), "pv": orNone(o.Volume), "pvc": orNone(o.Claim),
	}
	if handle != "" {
		vars["snapshotHandle"] = handle
	}
	if o.Volume == nil {
		return vars, nil
	}
	capacity, err := requiredStorage("the persistent volume", o.Volume, "spec", "capacity", "storage")
	if err != nil {
		return nil, err
	}
	vars["handle"], vars["capacity"] = text(o.Volume, "spec", "csi", "volumeHandle"), capacity
	vars["volumeMode"], vars["volumeParams"] = volumeMode(o.Volume), mapping(o.Volume, "spec", "csi", "volumeAttributes")
	return vars, nil
}

// orNone returns an object as templates have it, or none.
func orNone(object map[string]any) any {
	if object == nil {
		return nil
	}
	return object
}

// mappingOf returns a mapping of strings as templates have it.
func mappingOf(entries map[string]string) map[string]any { return overridden(nil, entries) }

// overridden returns a mapping with further entries, which take precedence.
func overridden(entries map[string]any, by map[string]string) map[string]any {
	all := make(map[string]any, len(entries)+len(by))
	maps.Copy(all, entries)
	for key, value := range by {
		all[key] = value
	}
	return all
}

// listOf returns a list of strings as templates have it.
func listOf(items []string) []any {
	list := make([]any, len(items))
	for i, item := range items {
		list[i] = item
	}
	return list
}

// StagingObjects are the objects that the templates of staging see. Provisioned is nil if the volume was not made for a claim, and Bucket,
// which BucketVolumeVariable returns, if the volume is no bucket.
type StagingObjects struct {
	Volume, Claim, Provisioned, Node, Bucket map[string]any
}

// BucketVolumeVariable returns the bucket that a volume is as templates see it. Secret is the name of the Secret with its credentials.
func BucketVolumeVariable(id string, info map[string]string, secret string) map[string]any {
	return map[string]any{"id": id, "info": mappingOf(info), "secretName": secret}
}

// StagingVariables returns the context of volumeStaging and volumeUnstaging. Besides what the contract
// says, there are fsType and mountOptions of the PersistentVolume, "" and empty by default, and the claim
// that the volume was created for as it was then, which is nil if the volume was not made for a claim.
func StagingVariables(o StagingObjects, readOnly bool) (Variables, error) {
	volume, claim := o.Volume, o.Claim
	capacity, err := requiredStorage("the persistent volume", volume, "spec", "capacity", "storage")
	if err != nil {
		return nil, err
	}
	vars := Variables{
		"volumeMode":   volumeMode(claim),
		"accessModes":  list(claim, "spec", "accessModes"),
		"capacity":     capacity,
		"params":       mapping(volume, "spec", "csi", "volumeAttributes"),
		"handle":       text(volume, "spec", "csi", "volumeHandle"),
		"readOnly":     readOnly,
		"fsType":       text(volume, "spec", "csi", "fsType"),
		"mountOptions": list(volume, "spec", "mountOptions"),
		"pvc":          claim,
		"bucket":       orNone(o.Bucket),
		"pv":           volume,
		"node":         o.Node,
	}
	if o.Provisioned != nil {
		vars["provisionedPvc"] = o.Provisioned
	}
	return vars, nil
}

// NodeExpansionVariables returns the context of volumeExpansion.nodePodTemplate: that of staging, and the capacity that the volume
// is to have on the node, in bytes.
func NodeExpansionVariables(o StagingObjects, readOnly bool, newCapacity int64) (Variables, error) {
	vars, err := StagingVariables(o, readOnly)
	if err != nil {
		return nil, err
	}
	vars["newCapacity"] = newCapacity
	return vars, nil
}

var (
	errNoCapacity = errors.New("there is none")
	errNegative   = errors.New("the capacity is below zero")
)

func requiredStorage(owner string, object map[string]any, path ...string) (any, error) {
	bytes, err := storage(owner, object, path...)
	if err == nil && bytes == nil {
		err = storageError(owner, path, errNoCapacity)
	}
	return bytes, err
}

// storage returns the quantity at the path in bytes, as int64, or nil if there is none. Fractions are rounded up to a
// byte, as in Kubernetes.
func storage(owner string, object map[string]any, path ...string) (any, error) {
	written, found, err := unstructured.NestedString(object, path...)
	if err != nil {
		return nil, storageError(owner, path, errNoQuantity)
	}
	if !found {
		return nil, nil
	}
	quantity, err := parseQuantity(written)
	if err == nil && quantity.Sign() < 0 {
		err = errNegative
	}
	if err != nil {
		return nil, storageError(owner, path, err)
	}
	return quantity.Value(), nil
}

func storageError(owner string, path []string, err error) error {
	return fmt.Errorf("%s's %s: %w", owner, strings.Join(path, "."), err)
}

// volumeMode returns spec.volumeMode, with the default that the API server fills in.
func volumeMode(object map[string]any) string {
	if mode := text(object, "spec", "volumeMode"); mode != "" {
		return mode
	}
	return "Filesystem"
}

func text(object map[string]any, path ...string) string {
	value, _, _ := unstructured.NestedString(object, path...)
	return value
}

func list(object map[string]any, path ...string) []any {
	value, _, _ := unstructured.NestedFieldNoCopy(object, path...)
	if items, ok := value.([]any); ok {
		return items
	}
	return []any{}
}

func mapping(object map[string]any, path ...string) map[string]any {
	value, _, _ := unstructured.NestedFieldNoCopy(object, path...)
	if m, ok := value.(map[string]any); ok {
		return m
	}
	return map[string]any{}
}

package template

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// ValidationVariables returns the context of volumeValidation for a volume that a claim asks for.
// Claim and class are the PersistentVolumeClaim and StorageClass as the API server returned them.
func ValidationVariables(claim, class map[string]any) (Variables, error) {
	minCapacity, err := storage(claim, "spec", "resources", "requests", "storage")
	if err != nil {
		return nil, fmt.Errorf("the claim's spec.resources.requests.storage: %w", err)
	}
	if minCapacity == nil {
		return nil, fmt.Errorf("the claim's spec.resources.requests: %w", errNoCapacity)
	}
	maxCapacity, err := storage(claim, "spec", "resources", "limits", "storage")
	if err != nil {
		return nil, fmt.Errorf("the claim's spec.resources.limits.storage: %w", err)
	}
	return Variables{
		"requestedVolumeMode":  volumeMode(claim),
		"requestedAccessModes": list(claim, "spec", "accessModes"),
		"requestedMinCapacity": minCapacity,
		"requestedMaxCapacity": maxCapacity,
		"params":               mapping(class, "parameters"),
		"sc":                   class,
		"pvc":                  claim,
	}, nil
}

// CreationVariables returns the context of volumeCreation and volumeDeletion: that of
// volumeValidation and the handle that the volume has by default.
func CreationVariables(claim, class map[string]any) (Variables, error) {
	vars, err := ValidationVariables(claim, class)
	if err != nil {
		return nil, err
	}
	uid, _, _ := unstructured.NestedString(claim, "metadata", "uid")
	vars["defaultHandle"] = "pvc-" + uid
	return vars, nil
}

// StagingVariables returns the context of volumeStaging and volumeUnstaging. Volume, claim and node
// are the PersistentVolume, PersistentVolumeClaim and Node as the API server returned them.
func StagingVariables(volume, claim, node map[string]any, readOnly bool) (Variables, error) {
	capacity, err := storage(volume, "spec", "capacity", "storage")
	if err != nil {
		return nil, fmt.Errorf("the persistent volume's spec.capacity.storage: %w", err)
	}
	if capacity == nil {
		return nil, fmt.Errorf("the persistent volume's spec.capacity: %w", errNoCapacity)
	}
	handle, _, _ := unstructured.NestedString(volume, "spec", "csi", "volumeHandle")
	return Variables{
		"volumeMode":  volumeMode(claim),
		"accessModes": list(claim, "spec", "accessModes"),
		"capacity":    capacity,
		"params":      mapping(volume, "spec", "csi", "volumeAttributes"),
		"handle":      handle,
		"readOnly":    readOnly,
		"pvc":         claim,
		"pv":          volume,
		"node":        node,
	}, nil
}

// storage returns the quantity at the path in whole bytes, as int64, or nil where there is none.
func storage(object map[string]any, path ...string) (any, error) {
	text, found, err := unstructured.NestedString(object, path...)
	if err != nil || !found {
		return nil, err
	}
	bytes, err := ParseCapacity(text)
	if err != nil {
		return nil, err
	}
	return bytes, nil
}

// volumeMode returns spec.volumeMode, which the API server fills in.
func volumeMode(object map[string]any) string {
	mode, _, _ := unstructured.NestedString(object, "spec", "volumeMode")
	return mode
}

func list(object map[string]any, path ...string) []any {
	value, _, _ := unstructured.NestedFieldNoCopy(object, path...)
	items, _ := value.([]any)
	return append([]any{}, items...)
}

func mapping(object map[string]any, path ...string) map[string]any {
	value, _, _ := unstructured.NestedFieldNoCopy(object, path...)
	if m, ok := value.(map[string]any); ok {
		return m
	}
	return map[string]any{}
}

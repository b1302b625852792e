package render

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// created is the creation time of objects that do not have one.
const created = "2026-01-01T00:00:00Z"

// uid returns a UID that depends only on the object's kind, namespace and name.
func uid(kind, namespace, name string) types.UID {
	sum := sha256.Sum256([]byte(kind + "/" + namespace + "/" + name))
	sum[6], sum[8] = sum[6]&0x0f|0x80, sum[8]&0x3f|0x80 // a UUID of version 8, which is for custom formats
	return types.UID(fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16]))
}

// set sets a field if it is absent or empty.
func set(plain map[string]any, value any, path ...string) {
	if found, ok, _ := unstructured.NestedFieldNoCopy(plain, path...); ok && found != nil && found != "" {
		return
	}
	for _, key := range path[:len(path)-1] {
		next, ok := plain[key].(map[string]any)
		if !ok {
			next = map[string]any{}
			plain[key] = next
		}
		plain = next
	}
	plain[path[len(path)-1]] = value
}

func text(plain map[string]any, path ...string) string {
	value, _, _ := unstructured.NestedString(plain, path...)
	return value
}

// stored fills in what the API server fills in for any object.
func stored(plain map[string]any, namespaced bool) {
	namespace := ""
	if namespaced {
		set(plain, "default", "metadata", "namespace")
		namespace = text(plain, "metadata", "namespace")
	}
	kind := text(plain, "kind")
	set(plain, string(uid(kind, namespace, text(plain, "metadata", "name"))), "metadata", "uid")
	set(plain, created, "metadata", "creationTimestamp")
	set(plain, "1", "metadata", "resourceVersion")
}

// storedClaim fills in what the API server and its controllers fill in for a claim that waits for its volume.
func storedClaim(plain map[string]any, class, provisioner string) {
	stored(plain, true)
	set(plain, class, "spec", "storageClassName")
	set(plain, string(corev1.PersistentVolumeFilesystem), "spec", "volumeMode")
	set(plain, []any{"kubernetes.io/pvc-protection"}, "metadata", "finalizers")
	set(plain, string(corev1.ClaimPending), "status", "phase")
	if provisioner != "" {
		set(plain, provisioner, "metadata", "annotations", "volume.kubernetes.io/storage-provisioner")
	}
}

// bound returns the claim after a volume was bound to it.
func bound(claim, volume map[string]any) map[string]any {
	plain := runtimeCopy(claim)
	set(plain, text(volume, "metadata", "name"), "spec", "volumeName")
	set(plain, "yes", "metadata", "annotations", "pv.kubernetes.io/bind-completed")
	set(plain, "yes", "metadata", "annotations", "pv.kubernetes.io/bound-by-controller")
	plain["status"] = map[string]any{"phase": string(corev1.ClaimBound)}
	for to, from := range map[string][]string{"capacity": {"spec", "capacity"}, "accessModes": {"spec", "accessModes"}} {
		if value, ok, _ := unstructured.NestedFieldCopy(volume, from...); ok {
			set(plain, value, "status", to)
		}
	}
	return plain
}

func runtimeCopy(plain map[string]any) map[string]any {
	return (&unstructured.Unstructured{Object: plain}).DeepCopy().Object
}

// storedClass fills in the defaults of a StorageClass.
func storedClass(plain map[string]any) {
	stored(plain, false)
	set(plain, string(corev1.PersistentVolumeReclaimDelete), "reclaimPolicy")
	set(plain, string(storagev1.VolumeBindingImmediate), "volumeBindingMode")
}

// storedVolume fills in the defaults of a PersistentVolume that is bound to a claim.
func storedVolume(plain, claim map[string]any) {
	stored(plain, false)
	set(plain, string(corev1.PersistentVolumeFilesystem), "spec", "volumeMode")
	set(plain, string(corev1.PersistentVolumeReclaimRetain), "spec", "persistentVolumeReclaimPolicy")
	set(plain, map[string]any{
		"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": text(claim, "metadata", "namespace"),
		"name": text(claim, "metadata", "name"), "uid": text(claim, "metadata", "uid"),
	}, "spec", "claimRef")
	set(plain, text(claim, "metadata", "uid"), "spec", "claimRef", "uid")
	set(plain, string(corev1.VolumeBound), "status", "phase")
}

// placeholderNode returns a node with the name.
func placeholderNode(name string) map[string]any {
	node := map[string]any{
		"apiVersion": "v1", "kind": "Node",
		"metadata": map[string]any{"name": name, "labels": map[string]any{
			"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
		}},
		"spec": map[string]any{}, "status": map[string]any{},
	}
	stored(node, false)
	return node
}

// usesSelectedNode reports whether a definition reads the node that the scheduler selected for the first consumer.
func usesSelectedNode(p *pavv1.PavProvisioner) bool {
	raw, err := json.Marshal(p.Spec)
	return err == nil && bytes.Contains(raw, []byte("selectedNode"))
}

// madeUpClass returns a StorageClass of a provisioner, which may wait for the first consumer.
func madeUpClass(provisioner string, waits bool) map[string]any {
	class := map[string]any{
		"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
		"metadata": map[string]any{"name": provisioner}, "provisioner": provisioner,
	}
	if waits {
		class["volumeBindingMode"] = string(storagev1.VolumeBindingWaitForFirstConsumer)
	}
	storedClass(class)
	return class
}

// madeUpClaim returns a claim that the definition supports, as far as that is known without evaluating templates.
func madeUpClaim(p *pavv1.PavProvisioner, class string) map[string]any {
	w := requestedOf(p)
	return map[string]any{
		"apiVersion": "v1", "kind": "PersistentVolumeClaim",
		"metadata": map[string]any{"name": "claim", "namespace": "default"},
		"spec": map[string]any{
			"storageClassName": class, "volumeMode": w.volumeMode, "accessModes": []any{w.accessMode},
			"resources": map[string]any{"requests": map[string]any{"storage": w.capacity}},
		},
	}
}

// madeUpVolume returns a PersistentVolume that an administrator may have written for a claim.
func madeUpVolume(p *pavv1.PavProvisioner, claim map[string]any, handle string) map[string]any {
	if handle == "" {
		handle = "handle"
	}
	spec, _ := claim["spec"].(map[string]any)
	capacity, _, _ := unstructured.NestedString(claim, "spec", "resources", "requests", "storage")
	return map[string]any{
		"apiVersion": "v1", "kind": "PersistentVolume",
		"metadata": map[string]any{"name": p.Name},
		"spec": map[string]any{
			"accessModes": spec["accessModes"], "volumeMode": spec["volumeMode"], "storageClassName": text(claim, "spec", "storageClassName"),
			"capacity": map[string]any{"storage": capacity},
			"csi":      map[string]any{"driver": p.Name, "volumeHandle": handle},
		},
	}
}

// requestedVolume is what a made-up claim asks for.
type requestedVolume struct{ volumeMode, accessMode, capacity string }

func requestedOf(p *pavv1.PavProvisioner) requestedVolume {
	w := requestedVolume{string(corev1.PersistentVolumeFilesystem), string(corev1.ReadWriteOnce), "1Gi"}
	v := p.Spec.VolumeValidation
	if v == nil {
		return w
	}
	w.volumeMode = oneOf(w.volumeMode, v.VolumeModes)
	w.accessMode = oneOf(w.accessMode, v.AccessModes)
	usual := resource.MustParse(w.capacity)
	if least, ok := quantity(v.MinCapacity); ok && least.Cmp(usual) > 0 {
		w.capacity = least.String()
	}
	if most, ok := quantity(v.MaxCapacity); ok && most.Cmp(usual) < 0 {
		w.capacity = most.String()
	}
	return w
}

// oneOf returns the usual value. If a field that is not a template lists other values only, it returns the first of
// them.
func oneOf(usual string, field *pavv1.Template) string {
	var values []string
	if field == nil || json.Unmarshal(field.Raw, &values) != nil || len(values) == 0 || slices.Contains(values, usual) {
		return usual
	}
	return values[0]
}

func quantity(field *pavv1.Template) (resource.Quantity, bool) {
	var q resource.Quantity
	if field == nil || q.UnmarshalJSON(field.Raw) != nil {
		return q, false
	}
	return q, true
}

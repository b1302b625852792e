package definition

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/albertofaria/pav/internal/template"
)

// analyze reports what is wrong with a template in any field, and returns what is known about the template.
func (c *check) analyze(section, field, source string) *template.Analysis {
	if known := c.analyses[field]; known != nil {
		return known
	}
	analysis := c.checker.templates.Analyze(section, source)
	c.analyses[field] = &analysis
	for _, found := range analysis.Errors {
		c.add(Finding{Severity: Error, Field: field, Line: found.Line, Column: found.Column, Message: found.Message})
	}
	for _, found := range analysis.Warnings {
		c.add(Finding{Severity: Warning, Field: field, Line: found.Line, Column: found.Column, Message: found.Message})
	}
	for _, path := range analysis.Paths {
		c.path(field, path)
		c.changeable(section, field, path)
	}
	c.random(section, field, source)
	return &analysis
}

// changeableKeys are the parts of a claim that its owner can change while the volume exists.
var changeableKeys = [][]string{
	{"metadata", "annotations"}, {"metadata", "labels"}, {"metadata", "ownerReferences"}, {"metadata", "finalizers"},
	{"spec", "resources"}, {"spec", "volumeAttributesClassName"},
}

// changeable warns of a section that acts on what another section created, and reads fields of the claim that may
// have changed since.
func (c *check) changeable(section, field string, path template.Path) {
	if path.Root != "pvc" || !slices.Contains([]string{"volumeDeletion", "volumeUnstaging"}, section) {
		return
	}
	for _, keys := range changeableKeys {
		if len(path.Keys) < len(keys) || !slices.Equal(path.Keys[:len(keys)], keys) {
			continue
		}
		read, handle := strings.Join(keys, "."), "handle"
		if section == "volumeDeletion" {
			handle = "volumeHandle"
		}
		c.add(Finding{
			Severity: Warning, Field: field, Line: path.Line, Column: path.Column,
			Message: fmt.Sprintf("pvc.%s may have been changed since the volume was created: provisionedPvc.%s is its value at that time, and %s is the volume's handle", read, read, handle),
		})
		return
	}
}

// sourceVariable has the keys of the variable source.
type sourceVariable struct {
	Kind               string              `json:"kind"`
	Namespace          string              `json:"namespace"`
	Name               string              `json:"name"`
	Handle             string              `json:"handle"`
	Capacity           int64               `json:"capacity"`
	Params             map[string]string   `json:"params"`
	AccessibleTopology []map[string]string `json:"accessibleTopology"`
}

// quotaVariable, serviceAccountVariable, rotationVariable and bucketVolumeVariable have the keys of variables of buckets.
type (
	quotaVariable struct {
		Size    int64 `json:"size"`
		Objects int64 `json:"objects"`
	}
	serviceAccountVariable struct {
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
	}
	rotationVariable struct {
		Number            int64  `json:"number"`
		PreviousAccountID string `json:"previousAccountId"`
	}
	bucketVolumeVariable struct {
		ID         string            `json:"id"`
		Info       map[string]string `json:"info"`
		SecretName string            `json:"secretName"`
	}
)

// kinds are the types of the objects that templates read.
var kinds = map[string]reflect.Type{
	"PersistentVolumeClaim": reflect.TypeFor[corev1.PersistentVolumeClaim](),
	"PersistentVolume":      reflect.TypeFor[corev1.PersistentVolume](),
	"StorageClass":          reflect.TypeFor[storagev1.StorageClass](),
	"Node":                  reflect.TypeFor[corev1.Node](),
	"VolumeSnapshot":        reflect.TypeFor[snapshotv1.VolumeSnapshot](),
	"VolumeSnapshotContent": reflect.TypeFor[snapshotv1.VolumeSnapshotContent](),
	"VolumeSnapshotClass":   reflect.TypeFor[snapshotv1.VolumeSnapshotClass](),
	"Namespace":             reflect.TypeFor[corev1.Namespace](),
	template.TypeSource:     reflect.TypeFor[sourceVariable](),

	template.TypeQuota:          reflect.TypeFor[quotaVariable](),
	template.TypeServiceAccount: reflect.TypeFor[serviceAccountVariable](),
	template.TypeRotation:       reflect.TypeFor[rotationVariable](),
	template.TypeBucketVolume:   reflect.TypeFor[bucketVolumeVariable](),
}

// path compares the path that a template reads in an object with the object's type.
func (c *check) path(field string, path template.Path) {
	typ := kinds[path.Type]
	read := path.Root
	for i, key := range path.Keys {
		if typ == nil {
			return
		}
		if typ = bare(typ); typ.Kind() == reflect.Slice && !isScalar(typ) {
			if _, err := strconv.Atoi(key); err != nil {
				return // a method of the list
			}
			typ = typ.Elem()
			read += "[" + key + "]"
			continue
		}
		if typ.Kind() != reflect.Struct || isScalar(typ) || slices.Contains(methods, key) {
			return // a mapping with arbitrary keys, or a method of a string or a mapping
		}
		fields := schemaOf(typ)
		if fields.types[key] == nil {
			c.unknownPath(field, path, i, read, fields.names)
			return
		}
		typ = fields.types[key]
		read = child(read, key)
	}
}

// methods are those of mappings, which templates can call.
var methods = []string{"clear", "copy", "fromkeys", "get", "items", "keys", "pop", "popitem", "setdefault", "update", "values"}

// unknownPath reports the first key of a path for which the object has no field; read is the path before it. The
// finding is an error if the key can only be a mistake. A cluster may be newer than these types, but Kubernetes adds
// no field at the top of an object, and none whose name is almost that of another field.
func (c *check) unknownPath(field string, path template.Path, i int, read string, names []string) {
	key := path.Keys[i]
	near := Nearest(key, names)
	whole := i == 0 && (slices.Contains(names, "spec") || template.HasKnownKeys(path.Type))
	provided := i < path.Tested || path.Guarded && i == len(path.Keys)-1
	found := Finding{Severity: Warning, Field: field, Line: path.Line, Column: path.Column}
	if (near != "" || whole) && !provided {
		found.Severity = Error
	}
	of := ""
	if read == path.Root && !strings.EqualFold(path.Root, path.Type) {
		of = ", a " + path.Type + ","
	}
	found.Message = fmt.Sprintf("%s%s has no field %s", read, of, quote(key))
	if near != "" {
		found.Message += fmt.Sprintf("; did you mean %q?", near)
	}
	c.add(found)
}

package doctor

import (
	"reflect"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// kind is one of PaV's kinds: its resource, and the types of spec and status.
type kind struct {
	plural       string
	spec, status reflect.Type
}

var kinds = []kind{
	{"pavbucketaccesses", reflect.TypeFor[pavv1.PavBucketAccessSpec](), reflect.TypeFor[pavv1.PavBucketAccessStatus]()},
	{"pavbuckets", reflect.TypeFor[pavv1.PavBucketSpec](), reflect.TypeFor[pavv1.PavBucketStatus]()},
	{"pavprovisioners", reflect.TypeFor[pavv1.PavProvisionerSpec](), reflect.TypeFor[pavv1.PavProvisionerStatus]()},
	{"pavsnapshots", reflect.TypeFor[pavv1.PavSnapshotSpec](), reflect.TypeFor[pavv1.PavSnapshotStatus]()},
	{"pavstages", reflect.TypeFor[pavv1.PavStageSpec](), reflect.TypeFor[pavv1.PavStageStatus]()},
	{"pavvolumes", reflect.TypeFor[pavv1.PavVolumeSpec](), reflect.TypeFor[pavv1.PavVolumeStatus]()},
}

// compareFields returns which fields of this plugin's types a schema does not have, and which more it has.
//
// No object says of which version of PaV a CustomResourceDefinition is, so the fields do.
func compareFields(kind *kind, version *apiextensionsv1.CustomResourceDefinitionVersion) (missing, more []string) {
	if version.Schema == nil || version.Schema.OpenAPIV3Schema == nil {
		return []string{"a schema"}, nil
	}
	root := version.Schema.OpenAPIV3Schema.Properties
	d := &difference{}
	d.compare("spec", kind.spec, root["spec"])
	d.compare("status", kind.status, root["status"])
	return d.missing, d.more
}

type difference struct{ missing, more []string }

// compare compares a type with its schema. Types of Kubernetes belong to its version, not to PaV's.
func (d *difference) compare(path string, of reflect.Type, schema apiextensionsv1.JSONSchemaProps) {
	switch of.Kind() {
	case reflect.Pointer:
		d.compare(path, of.Elem(), schema)
		return
	case reflect.Slice:
		if schema.Items != nil && schema.Items.Schema != nil {
			d.compare(path, of.Elem(), *schema.Items.Schema)
		}
		return
	case reflect.Struct:
	default:
		return
	}
	if of.PkgPath() != reflect.TypeFor[pavv1.PavProvisioner]().PkgPath() {
		return
	}
	known := map[string]bool{}
	for _, field := range reflect.VisibleFields(of) {
		if field.Anonymous {
			continue // its fields are there as well
		}
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		known[name] = true
		if property, is := schema.Properties[name]; is {
			d.compare(path+"."+name, field.Type, property)
		} else {
			d.missing = append(d.missing, path+"."+name)
		}
	}
	for name := range schema.Properties {
		if !known[name] {
			d.more = append(d.more, path+"."+name)
		}
	}
}

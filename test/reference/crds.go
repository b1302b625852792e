package reference

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
)

// Definitions returns the CustomResourceDefinitions among YAML documents, by name. Those of apiextensions.k8s.io/v1beta1 are converted as
// the API server did it.
func Definitions(documents ...[]byte) (map[string]*apiextensionsv1.CustomResourceDefinition, error) {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	decoder := serializer.NewCodecFactory(scheme).UniversalDeserializer()
	all := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for _, document := range documents {
		object, _, err := decoder.Decode(document, nil, nil)
		if err != nil {
			return nil, err
		}
		scheme.Default(object) // v1beta1 has other defaults
		internal, crd := &apiextensions.CustomResourceDefinition{}, &apiextensionsv1.CustomResourceDefinition{}
		if err := scheme.Convert(object, internal, nil); err != nil {
			return nil, err
		}
		if err := scheme.Convert(internal, crd, nil); err != nil {
			return nil, err
		}
		all[crd.Name] = crd
	}
	return all, nil
}

// FieldsOfDefinition returns everything of a definition that clients can notice, but for descriptions: its names, versions, columns and
// subresources, and each field with its type and rules.
func FieldsOfDefinition(crd *apiextensionsv1.CustomResourceDefinition) (Fields, error) {
	spec := crd.Spec
	fields := Fields{
		"group": spec.Group, "scope": string(spec.Scope), "preserveUnknownFields": fmt.Sprint(spec.PreserveUnknownFields),
		"kind": spec.Names.Kind, "listKind": spec.Names.ListKind, "plural": spec.Names.Plural, "singular": spec.Names.Singular,
		"shortNames": strings.Join(spec.Names.ShortNames, ", "), "categories": strings.Join(spec.Names.Categories, ", "),
	}
	for i := range spec.Versions {
		version := &spec.Versions[i]
		fields["version "+version.Name] = fmt.Sprintf("served %t, stored %t", version.Served, version.Storage)
		for _, column := range version.AdditionalPrinterColumns {
			fields[version.Name+" column "+column.Name] = column.JSONPath + " " + column.Type
		}
		subresources, err := json.Marshal(version.Subresources)
		if err != nil {
			return nil, err
		}
		if text := string(subresources); text != "null" && text != "{}" {
			fields[version.Name+" subresources"] = text
		}
		if err := fields.addSchema(version.Name, version.Schema.OpenAPIV3Schema, false); err != nil {
			return nil, err
		}
	}
	maps.DeleteFunc(fields, func(_, value string) bool { return value == "" })
	return fields, nil
}

// addSchema adds the fields of a schema, each with whatever the schema says of it.
func (f Fields) addSchema(path string, schema *apiextensionsv1.JSONSchemaProps, required bool) error {
	for name := range schema.Properties {
		part := schema.Properties[name]
		if err := f.addSchema(path+"."+name, &part, slices.Contains(schema.Required, name)); err != nil {
			return err
		}
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		if err := f.addSchema(path+"[]", schema.Items.Schema, false); err != nil {
			return err
		}
	}
	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
		if err := f.addSchema(path+".*", schema.AdditionalProperties.Schema, false); err != nil {
			return err
		}
	}
	rest := schema.DeepCopy()
	rest.Description, rest.Type, rest.Properties, rest.Required, rest.Items, rest.AdditionalProperties = "", "", nil, nil, nil, nil
	rules, err := json.Marshal(rest)
	if err != nil {
		return err
	}
	words := []string{schema.Type}
	if required {
		words = append(words, "required")
	}
	if text := string(rules); text != "{}" {
		words = append(words, text)
	}
	f[path] = strings.TrimSpace(strings.Join(words, " "))
	return nil
}

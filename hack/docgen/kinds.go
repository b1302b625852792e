package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// kinds are the plural names of PaV's kinds, in the order in which users meet them.
var kinds = []string{"pavprovisioners", "pavvolumes", "pavstages", "pavsnapshots", "pavbuckets", "pavbucketaccesses"}

func writeKinds(w *bytes.Buffer, directory string) error {
	for _, kind := range kinds {
		file := filepath.Join(directory, "pav.albertofaria.github.io_"+kind+".yaml")
		raw, err := os.ReadFile(file) //nolint:gosec // The directory is a constant.
		if err != nil {
			return fmt.Errorf("reading a definition of a kind: %w", err)
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(raw, crd); err != nil {
			return fmt.Errorf("reading %s: %w", file, err)
		}
		writeKind(w, crd)
	}
	return nil
}

func writeKind(w *bytes.Buffer, crd *apiextensionsv1.CustomResourceDefinition) {
	names, version := crd.Spec.Names, crd.Spec.Versions[0]
	schema := version.Schema.OpenAPIV3Schema
	fmt.Fprintf(w, "\n## %s\n\n%s\n\n`apiVersion: %s/%s`, short name `%s`.\n", names.Kind, sentence(schema.Description), crd.Spec.Group, version.Name, names.ShortNames[0])
	for _, part := range []string{"spec", "status"} {
		fmt.Fprintf(w, "\n| %s of %s | type | |\n|---|---|---|\n", part, names.Kind)
		t := table{templated: names.Kind == "PavProvisioner" && part == "spec", written: part == "spec", told: map[string]bool{}}
		t.fields(w, part, schema.Properties[part])
	}
}

// table writes the table of the fields of spec or status.
type table struct {
	// templated says that fields may be templates. written says that users write the fields.
	templated, written bool

	// told has the types whose fields already have rows, and which have many. The key of a type is the list of its field names.
	told map[string]bool
}

// fields writes a row for each field below a path, in alphabetical order. It does not descend into conditions, whose
// fields are those of Kubernetes.
func (t *table) fields(w *bytes.Buffer, path string, schema apiextensionsv1.JSONSchemaProps) {
	names := slices.Sorted(maps.Keys(schema.Properties))
	const few = 3
	kind := strings.Join(names, " ")
	if t.told[kind] && len(names) > few {
		return
	}
	t.told[kind] = true
	for _, name := range names {
		field, at := schema.Properties[name], path+"."+name
		fmt.Fprintf(w, "| `%s` | %s | %s |\n", at, typeOf(field, t.templated), describe(field, t.written && slices.Contains(schema.Required, name)))
		switch {
		case name == "conditions", name == "definition": // The fields of a definition are those of a PavProvisioner.
		case field.Type == "array" && field.Items != nil && field.Items.Schema != nil:
			t.fields(w, at+"[]", *field.Items.Schema)
		default:
			t.fields(w, at, field)
		}
	}
}

func typeOf(field apiextensionsv1.JSONSchemaProps, templated bool) string {
	switch {
	case field.Type == "" && field.XIntOrString:
		return "quantity"
	case field.Type == "" && templated:
		return "any, or a template"
	case field.Type == "":
		return "object"
	case field.Type == "array" && field.Items != nil && field.Items.Schema != nil:
		return "list of " + typeOf(*field.Items.Schema, false)
	case field.Format == "date-time":
		return "time"
	case field.AdditionalProperties != nil:
		return "mapping"
	}
	return field.Type
}

func describe(field apiextensionsv1.JSONSchemaProps, required bool) string {
	parts := []string{sentence(field.Description)}
	allowed := field.Enum
	if field.Items != nil && field.Items.Schema != nil {
		allowed = field.Items.Schema.Enum
	}
	if len(allowed) > 0 {
		var values []string
		for _, value := range allowed {
			values = append(values, "`"+strings.Trim(string(value.Raw), `"`)+"`")
		}
		parts = append(parts, "One of "+strings.Join(values, ", ")+".")
	}
	if field.Default != nil {
		parts = append(parts, "Default: `"+strings.Trim(string(field.Default.Raw), `"`)+"`.")
	}
	if required {
		parts = append(parts, "**Mandatory.**")
	}
	return cell(strings.Join(parts, " "))
}

// sentence replaces the line breaks of a doc comment by spaces.
func sentence(text string) string { return strings.Join(strings.Fields(text), " ") }

// cell escapes a text for a cell of a table.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;", ">", "&gt;").Replace(strings.TrimSpace(text))
}

package definition

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/template"
)

// walker checks plain data against Go types and their JSON names.
type walker struct {
	check *check

	// section is the section that the data is in, where strings are templates; "" outside of sections.
	section string

	// inside are the mappings around the current value, the outermost first.
	inside []level
}

// level is a mapping and the fields that it may have.
type level struct {
	field   string
	typ     reflect.Type
	entries map[string]any
}

// value checks a value against a type and reports everything that does not fit. It returns the part of the value that
// is known and fits: unknown items of lists are nil, other unknown values are left out. ok is false if nothing is
// known.
func (w *walker) value(field string, typ reflect.Type, value any) (known any, ok bool) {
	typ = bare(typ)
	if value == nil || w.check.over(field) {
		return nil, true // Kubernetes treats null as an absent field
	}
	if text, isText := value.(string); isText && w.section != "" && template.HasTemplate(text) {
		w.template(field, typ, text)
		return nil, false
	}
	switch {
	case typ == templateType:
		w.field(field, value)
		return nil, false
	case typ == reflect.TypeFor[metav1.FieldsV1]():
		return value, true // managedFields, which the API server writes
	case isScalar(typ):
		return w.scalar(field, typ, value)
	case typ.Kind() == reflect.Slice:
		return w.list(field, typ, value)
	case typ.Kind() == reflect.Map:
		return w.mapping(field, typ, value)
	case typ.Kind() == reflect.Struct:
		return w.object(field, typ, value)
	default:
		return value, true
	}
}

var (
	templateType = reflect.TypeFor[pavv1.Template]()
	podType      = reflect.TypeFor[corev1.PodTemplateSpec]()
)

// template checks a string that is a template; its value is never known.
func (w *walker) template(field string, typ reflect.Type, source string) {
	analysis := w.check.analyze(w.section, field, source)
	if analysis.YAML || takesText(typ) || len(analysis.Errors) > 0 {
		return
	}
	w.check.errorf(field, "evaluates to text, but must be %s: write it plain, or begin the template with {%% set yaml = true %%}", noun(typ))
}

// maxItems is the maximum length of a list: more than in any pod that an API server accepts.
const maxItems = 10_000

func (w *walker) list(field string, typ reflect.Type, value any) (any, bool) {
	items, isList := value.([]any)
	if !isList {
		w.wrongType(field, typ, value)
		return nil, false
	}
	if len(items) > maxItems {
		w.check.errorf(field, "has %d items; the maximum is %d", len(items), maxItems)
		return nil, false
	}
	known := make([]any, len(items))
	for i, item := range items {
		if part, ok := w.value(field+"["+strconv.Itoa(i)+"]", typ.Elem(), item); ok {
			known[i] = part
		}
	}
	return known, true
}

func (w *walker) mapping(field string, typ reflect.Type, value any) (any, bool) {
	entries, isMapping := value.(map[string]any)
	if !isMapping {
		w.wrongType(field, typ, value)
		return nil, false
	}
	known := make(map[string]any, len(entries))
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		// The key counts even if its value is not known.
		known[key], _ = w.value(child(field, key), typ.Elem(), entries[key])
	}
	return known, true
}

func (w *walker) object(field string, typ reflect.Type, value any) (any, bool) {
	entries, isMapping := value.(map[string]any)
	if !isMapping {
		w.wrongType(field, typ, value)
		return nil, false
	}
	w.inside = append(w.inside, level{field, typ, entries})
	defer func() { w.inside = w.inside[:len(w.inside)-1] }()

	types := schemaOf(typ).types
	known := make(map[string]any, len(entries))
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		name := child(field, key)
		fieldType, exists := types[key]
		if !exists && w.check.over(name) {
			return nil, false
		}
		if !exists {
			w.check.add(Finding{Severity: Error, Field: name, Key: true, Message: w.unknown(key)})
			continue
		}
		if part, ok := w.value(name, fieldType, entries[key]); ok {
			known[key] = part
		}
	}
	return known, true
}

// unknown reports a key of the innermost mapping that is not one of its fields, and how to fix it.
func (w *walker) unknown(key string) string {
	if template.HasTemplate(key) {
		return "unknown field; keys are not templates, only values are"
	}
	here := w.inside[len(w.inside)-1]
	names := schemaOf(here.typ).names
	if near := Nearest(key, names); strings.EqualFold(near, key) {
		return fmt.Sprintf("unknown field; did you mean %q?", near)
	}
	if place := w.elsewhere(key); place != "" {
		return "unknown field; it belongs " + place
	}
	if near := Nearest(key, names); near != "" {
		return fmt.Sprintf("unknown field; did you mean %q?", near)
	}
	const few = 10
	if len(names) <= few {
		return "unknown field; the fields are " + strings.Join(names, ", ")
	}
	return "unknown field"
}

// elsewhere says where a key belongs that is not a field of the innermost mapping: in a mapping inside or around it
// that does not have the key yet; "" if there is none.
func (w *walker) elsewhere(key string) string {
	here := schemaOf(w.inside[len(w.inside)-1].typ)
	for _, name := range here.names {
		inner := element(here.types[name])
		if name == "podTemplate" || name == "nodePodTemplate" {
			inner = podType
		}
		if inner != nil && schemaOf(inner).types[key] != nil {
			return fmt.Sprintf("under %q", name)
		}
	}
	for _, outer := range slices.Backward(w.inside[:len(w.inside)-1]) {
		if schemaOf(outer.typ).types[key] == nil || outer.entries[key] != nil {
			continue
		}
		if outer.field == "" {
			return "at the top, beside spec"
		}
		return "in " + outer.field + ": check the indentation"
	}
	return ""
}

// child returns the path of a key of a mapping, in the form that the template evaluator uses.
func child(field, key string) string {
	switch {
	case strings.ContainsAny(key, "./[]"):
		return field + "[" + key + "]"
	case field == "":
		return key
	default:
		return field + "." + key
	}
}

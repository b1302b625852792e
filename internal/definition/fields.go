package definition

import (
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/albertofaria/pav/internal/template"
	"github.com/albertofaria/pav/internal/workflow"
)

// field checks a field of a section. The field may be a template, and is not null.
func (w *walker) field(field string, value any) {
	parts := strings.Split(field, ".")
	if len(parts) != 3 {
		return
	}
	c := w.check
	w = &walker{check: c, section: parts[1], inside: w.inside}
	value = evaluated(value)
	switch parts[2] {
	case "podTemplate":
		c.pod(w, field, value)
	case "nodePodTemplate":
		w.section = template.NodeExpansion
		c.pod(w, field, value)
	case "volumeModes":
		c.list(w, field, reflect.TypeFor[[]corev1.PersistentVolumeMode](), value)
	case "accessModes":
		c.list(w, field, reflect.TypeFor[[]corev1.PersistentVolumeAccessMode](), value)
	case "minCapacity", "maxCapacity", "capacity", "maxSize":
		c.capacity(w, field, value)
	case "handle":
		c.handle(w, field, value)
	case "accessibleTopology":
		c.topology(w, field, value)
	default:
		c.bucketField(w, field, parts[2], value)
	}
}

// list checks a list of access modes or volume modes.
func (c *check) list(w *walker, field string, typ reflect.Type, value any) {
	w.value(field, typ, value)
	items, isList := value.([]any)
	if isList && len(items) == 0 {
		c.warnf(field, "is empty, so that no volume is ever valid; for the default, leave it out")
	}
	for _, twice := range repeated(node{field, value}) {
		c.warnf(twice.field, "%s is there twice", quote(twice.value.(string)))
	}
}

// repeated returns the strings of a list that occur in it before.
func repeated(list node) []node {
	var twice []node
	before := map[string]bool{}
	for _, item := range list.items() {
		text, isText := item.value.(string)
		if isText && before[text] {
			twice = append(twice, item)
		}
		before[text] = before[text] || isText
	}
	return twice
}

// capacity checks a capacity. A template for it yields a string or a number.
func (c *check) capacity(w *walker, field string, value any) {
	if text, isText := value.(string); isText && template.HasTemplate(text) {
		c.analyze(w.section, field, text)
		return
	}
	if _, err := bytesOf(field, value); err != nil {
		c.errorf(field, "%s", strings.TrimPrefix(err.Error(), field+": "))
	}
}

func bytesOf(field string, value any) (int64, error) {
	if number, ok := integer(value); ok {
		value = number
	}
	return template.Capacity(field, value)
}

// capacities compares the known capacities with each other.
func (c *check) capacities(spec map[string]any) {
	section := node{"spec", spec}.key("volumeValidation")
	least, most := section.key("minCapacity"), section.key("maxCapacity")
	low, lowErr := bytesOf(least.field, evaluated(least.value))
	high, highErr := bytesOf(most.field, evaluated(most.value))
	if lowErr == nil && highErr == nil && low > high {
		c.errorf(least.field, "the minimum is above the maximum, so that no volume is ever valid")
	}
}

// handle checks the handle of a volume.
func (c *check) handle(w *walker, field string, value any) {
	text, isText := value.(string)
	switch {
	case isText && template.HasTemplate(text):
		c.analyze(w.section, field, text)
		return
	case !isText && !isNumber(value):
		c.errorf(field, "must be a string, not %s", describe(value))
		return
	case isText:
		if err := workflow.CheckHandle(text); err != nil {
			c.errorf(field, "%s", err)
			return
		}
	}
	c.warnf(field, "is the same for every volume, so only one volume can exist; use a template such as \"{{ defaultHandle }}\", or leave it out")
}

// topology checks the accessible topology of a volume.
func (c *check) topology(w *walker, field string, value any) {
	w.value(field, reflect.TypeFor[[]map[string]string](), value)
	list := node{field, value}
	items := list.items()
	if len(items) == 0 && list.isKnownList() {
		c.errorf(field, "the list is empty, so that no node could use the volume; for all nodes, leave the field out")
	}
	for _, alternative := range items {
		labels, isMapping := alternative.value.(map[string]any)
		if isMapping && len(labels) == 0 || alternative.value == nil {
			c.errorf(alternative.field, "the mapping is empty; name at least one node label")
		}
		c.labels(alternative)
	}
}

// labels checks keys and values of labels.
func (c *check) labels(n node) {
	c.keys(n)
	labels, _ := n.value.(map[string]any)
	for key := range labels {
		if c.over(n.field) {
			return
		}
		value := n.key(key)
		if text, ok := value.text(); ok && len(validation.IsValidLabelValue(text)) > 0 {
			c.errorf(value.field, "%s is not a valid label value: use at most 63 letters, digits, '-', '_' and '.', with a letter or digit first and last", quote(text))
		}
	}
}

// keys checks the keys of labels or annotations.
func (c *check) keys(n node) {
	entries, _ := n.value.(map[string]any)
	for key := range entries {
		if c.over(n.field) {
			return
		}
		if len(validation.IsQualifiedName(strings.ToLower(key))) == 0 {
			continue
		}
		words := "is not a valid key of a label or annotation, such as example.com/name"
		if template.HasTemplate(key) {
			words = "keys are not templates, only values are"
		}
		c.add(Finding{Severity: Error, Field: child(n.field, key), Key: true, Message: words})
	}
}

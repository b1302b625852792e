package definition

import (
	"slices"
	"strconv"

	"github.com/albertofaria/pav/internal/template"
)

// node is a value in plain data whose type is not known yet.
type node struct {
	field string
	value any
}

// key returns the value of a key; nil if there is none, or if the node is not a mapping.
func (n node) key(name string) node {
	entries, _ := n.value.(map[string]any)
	return node{child(n.field, name), entries[name]}
}

// items returns the items of a list; none if the node is not a list, or has more than maxItems items.
func (n node) items() []node {
	list, _ := n.value.([]any)
	if len(list) > maxItems {
		return nil
	}
	items := make([]node, len(list))
	for i, value := range list {
		items[i] = node{item(n.field, i), value}
	}
	return items
}

// text returns the node's string, unless it is a template.
func (n node) text() (string, bool) {
	text, ok := n.value.(string)
	return text, ok && !template.HasTemplate(text)
}

// isMapping reports whether the node is a mapping.
func (n node) isMapping() bool {
	_, ok := n.value.(map[string]any)
	return ok
}

// isThere reports whether there certainly is a value: a template may yield null or an empty string.
func (n node) isThere() bool {
	text, isText := n.value.(string)
	return n.value != nil && (!isText || !template.HasTemplate(text))
}

// isKnownList reports whether the node is a list or absent, so that items returns all of it. It is false for a
// template that may yield a list.
func (n node) isKnownList() bool {
	list, ok := n.value.([]any)
	return ok && len(list) <= maxItems || n.value == nil
}

// hasText reports whether a list has an item that is the text.
func hasText(list node, text string) bool {
	return slices.ContainsFunc(list.items(), func(item node) bool { return item.value == text })
}

// item returns the path of an item of a list.
func item(field string, index int) string {
	return field + "[" + strconv.Itoa(index) + "]"
}

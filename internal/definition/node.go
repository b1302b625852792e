package definition

import (
	"strconv"
)

// node is a place in plain data, of which it is not known what is there.
type node struct {
	field string
	value any
}

// key returns what a mapping has for a key: nil if there is none, and where this is no mapping.
func (n node) key(name string) node {
	entries, _ := n.value.(map[string]any)
	return node{child(n.field, name), entries[name]}
}

// items returns the items of a list: none if this is no list, or one of more items than any may have.
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

// text returns a string that is no template.
func (n node) text() (string, bool) {
	text, ok := n.value.(string)
	return text, ok && !hasTemplate(text)
}

// isMapping reports whether there is a mapping.
func (n node) isMapping() bool {
	_, ok := n.value.(map[string]any)
	return ok
}

// isThere reports whether there surely is a value: a template may yield null, or an empty text.
func (n node) isThere() bool {
	text, isText := n.value.(string)
	return n.value != nil && (!isText || !hasTemplate(text))
}

// isKnownList reports whether items are all of a list, or there is nothing; but not a template that may become one.
func (n node) isKnownList() bool {
	list, ok := n.value.([]any)
	return ok && len(list) <= maxItems || n.value == nil
}

// item returns the path of an item of a list.
func item(field string, index int) string {
	return field + "[" + strconv.Itoa(index) + "]"
}

package jinja

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/albertofaria/pav/jinja/syntax"
)

// origin is the part of an object that a value or text comes from.
type origin struct {
	root string
	keys []string
	// id is the same for the same part.
	id  string
	pos syntax.Pos
	// read is how many things had been printed when it was read.
	read int
}

func (o *origin) key(key string) *origin {
	return &origin{root: o.root, keys: append(slices.Clip(o.keys), key), id: o.id + "\x00" + key, pos: o.pos, read: o.read}
}

// textPart is text with a known origin. Word says that it is always part of a single word of a shell.
type textPart struct {
	*origin
	word bool
}

// tracked is what is known about a value: the parts of objects that it may be or contain. Nil contains none. It is never
// changed.
type tracked struct {
	// objects are the objects that it may be, whose attributes can be followed; texts is what its text may contain.
	objects []*origin
	texts   []textPart
	// items are the items of a list that is written in the template, and fields those of a mapping. Element has the
	// possible values of any other element or entry.
	items   []*tracked
	fields  map[string]*tracked
	element *tracked
	// callees are the macros and blocks that it may be, and spaces the namespaces, by the calls that create them.
	callees []*callee
	spaces  []*syntax.Call
	// special is a variable that is not data.
	special special
	// near has the items before and after that of a loop.
	near  *tracked
	depth int
}

// special is a value that is known by its name.
type special struct {
	kind specialKind
	name string
}

type specialKind int

const (
	_ specialKind = iota
	// specialFunction is a function of the program that returns an object, specialGlobal a builtin function.
	specialFunction
	specialGlobal
	specialLoop
	specialSelf
)

// maxKeys is how many keys of a chain are followed.
const maxKeys = 32

// maxTexts is how many parts of objects are distinguished in one value.
const maxTexts = 256

func ofTexts(parts []textPart) *tracked {
	if len(parts) == 0 {
		return nil
	}
	return &tracked{texts: parts}
}

func ofElement(element *tracked) *tracked {
	if element == nil {
		return nil
	}
	return &tracked{element: element, depth: element.depth + 1}
}

// maxDepthTracked is up to what depth lists in lists are distinguished.
const maxDepthTracked = 5

// ofItems returns a list that is written in the template.
func (t *tracer) ofItems(items []*tracked) *tracked {
	return t.shallow(&tracked{items: items, depth: 1 + depthOf(items...)})
}

func (t *tracer) ofFields(fields map[string]*tracked, element *tracked) *tracked {
	depth := depthOf(element)
	for _, field := range fields {
		depth = max(depth, depthOf(field))
	}
	return t.shallow(&tracked{fields: fields, element: element, depth: 1 + depth})
}

func depthOf(values ...*tracked) int {
	depth := 0
	for _, v := range values {
		if v != nil {
			depth = max(depth, v.depth)
		}
	}
	return depth
}

// shallow returns v or, if it is deep, its content without the structure.
func (t *tracer) shallow(v *tracked) *tracked {
	if v.depth <= maxDepthTracked {
		return v
	}
	return ofElement(ofTexts(t.text(v)))
}

// join returns a value that is either a or b; a itself if b adds nothing.
func (t *tracer) join(a, b *tracked) *tracked {
	if !t.step(1) || b == nil || a == b {
		return a
	}
	if a == nil {
		return b
	}
	joined := *a
	grown := []bool{
		grow(&joined.objects, b.objects, func(o *origin) string { return o.id }),
		t.addTexts(&joined.texts, b.texts),
		grow(&joined.callees, b.callees, func(c *callee) *callee { return c }),
		grow(&joined.spaces, b.spaces, func(c *syntax.Call) *syntax.Call { return c }),
		t.joinItems(&joined, b.items),
		t.joinFields(&joined, b.fields),
		t.joinInto(&joined.element, b.element),
		t.joinInto(&joined.near, b.near),
		joined.special == special{} && b.special != special{},
	}
	if !slices.Contains(grown, true) {
		return a
	}
	joined.special = cmp.Or(joined.special, b.special)
	joined.depth = max(a.depth, b.depth)
	return &joined
}

// joinInto sets *a to the join of both, and reports whether it has grown.
func (t *tracer) joinInto(a **tracked, b *tracked) bool {
	before := *a
	*a = t.join(before, b)
	return *a != before
}

func (t *tracer) joinItems(a *tracked, items []*tracked) bool {
	switch {
	case len(items) == 0 || !t.step(len(items)):
		return false
	case len(a.items) == 0:
		a.items = items
		return true
	case len(a.items) != len(items):
		grown := false
		for _, item := range items {
			grown = t.joinInto(&a.element, item) || grown
		}
		return grown
	}
	merged, grown := slices.Clone(a.items), false
	for i, item := range items {
		grown = t.joinInto(&merged[i], item) || grown
	}
	a.items = merged
	return grown
}

func (t *tracer) joinFields(a *tracked, fields map[string]*tracked) bool {
	if len(fields) == 0 || !t.step(len(fields)+len(a.fields)) {
		return false
	}
	merged, grown := maps.Clone(a.fields), false
	if merged == nil {
		merged = map[string]*tracked{}
	}
	for name, field := range fields {
		before, there := merged[name]
		merged[name] = t.join(before, field)
		grown = grown || !there || merged[name] != before
	}
	a.fields = merged
	return grown
}

// grow adds the entries of more that all does not have, and reports whether there were any.
func grow[T any, K comparable](all *[]T, more []T, key func(T) K) bool {
	grown := false
	for _, item := range more {
		if !slices.ContainsFunc(*all, func(other T) bool { return key(other) == key(item) }) {
			*all, grown = append(slices.Clip(*all), item), true
		}
	}
	return grown
}

func (t *tracer) addTexts(all *[]textPart, more []textPart) bool {
	if len(more) == 0 || !t.step(1+len(*all)*len(more)/16) {
		return false
	}
	type same struct {
		id   string
		word bool
	}
	grown := grow(all, more, func(p textPart) same { return same{p.id, p.word} })
	if len(*all) > maxTexts {
		t.giveUp()
	}
	return grown
}

// text returns what the text of v may contain.
func (t *tracer) text(v *tracked) []textPart {
	if v == nil || !t.step(1) {
		return nil
	}
	parts := v.texts
	for _, object := range v.objects {
		t.addTexts(&parts, []textPart{{origin: object}})
	}
	for _, item := range v.items {
		t.addTexts(&parts, t.text(item))
	}
	for _, name := range slices.Sorted(maps.Keys(v.fields)) {
		t.addTexts(&parts, t.text(v.fields[name]))
	}
	t.addTexts(&parts, t.text(v.element))
	return parts
}

// altered returns the text of values after a change that keeps no word whole.
func (t *tracer) altered(values ...*tracked) *tracked {
	return ofTexts(asWords(t.together(values...), false))
}

// together returns the concatenated text of values.
func (t *tracer) together(values ...*tracked) []textPart {
	var parts []textPart
	for _, v := range values {
		t.addTexts(&parts, t.text(v))
	}
	return parts
}

func asWords(parts []textPart, word bool) []textPart {
	if !slices.ContainsFunc(parts, func(p textPart) bool { return p.word != word }) {
		return parts
	}
	var out []textPart
	for _, part := range parts {
		part.word = word
		if !slices.ContainsFunc(out, func(p textPart) bool { return p.id == part.id }) {
			out = append(out, part)
		}
	}
	return out
}

// elements returns the possible elements of v if it is a list, or its keys if it is a mapping.
func (t *tracer) elements(v *tracked) *tracked {
	if v == nil {
		return nil
	}
	element := v.element
	for _, item := range v.items {
		element = t.join(element, item)
	}
	return t.join(element, t.altered(&tracked{objects: v.objects, texts: v.texts}))
}

// entries returns the possible values of the entries or elements of v.
func (t *tracer) entries(v *tracked) *tracked {
	if v == nil {
		return nil
	}
	entry := t.elements(v)
	for _, name := range slices.Sorted(maps.Keys(v.fields)) {
		entry = t.join(entry, v.fields[name])
	}
	return entry
}

// pairs returns the possible pairs (key, value) of a mapping.
func (t *tracer) pairs(v *tracked) *tracked {
	if v == nil {
		return nil
	}
	keys := t.altered(&tracked{objects: v.objects, texts: v.texts})
	return ofElement(t.ofItems([]*tracked{keys, t.entries(v)}))
}

// member returns the possible values of v.name or v['name'].
func (t *tracer) member(v *tracked, name string) *tracked {
	if v == nil {
		return nil
	}
	found := t.join(v.element, t.altered(ofTexts(v.texts)))
	found = t.join(found, v.fields[name])
	for _, object := range v.objects {
		if len(object.keys) == maxKeys {
			found = t.join(found, ofTexts([]textPart{{origin: object}}))
		} else {
			found = t.join(found, &tracked{objects: []*origin{object.key(name)}})
		}
	}
	for _, space := range v.spaces {
		found = t.join(found, t.values[holder{space, name}])
		found = t.join(found, t.values[holder{space, anyName}])
	}
	switch v.special.kind {
	case specialLoop:
		if strings.HasSuffix(name, "item") { // previtem, nextitem
			found = t.join(found, v.near)
		}
	case specialSelf:
		found = t.join(found, t.blockNamed(name))
	default:
	}
	return found
}

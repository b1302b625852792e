package jinja

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/albertofaria/pav/jinja/syntax"
)

// origin is a part of an object: where a value, or text, comes from.
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

// textPart is text that stems from somewhere. Word says that it is a part of one word of a shell, whatever it is.
type textPart struct {
	*origin
	word bool
}

// tracked is what is known of a value: what of objects it may be, or have in it. Nil has nothing. It is never changed.
type tracked struct {
	// objects are those that it may be, whose attributes can be followed, and texts is what its text may have in it.
	objects []*origin
	texts   []textPart
	// items are those of a list that the template writes down, and fields those of a mapping. Element is what any other
	// element, or value of an entry, may be.
	items   []*tracked
	fields  map[string]*tracked
	element *tracked
	// callees are the macros and blocks that it may be, and spaces the namespaces, by the calls that make them.
	callees []*callee
	spaces  []*syntax.Call
	// special is a variable that is none of data.
	special special
	// near are the items around that of a loop.
	near  *tracked
	depth int
}

// special is what is called by its name.
type special struct {
	kind specialKind
	name string
}

type specialKind int

const (
	_ specialKind = iota
	// specialFunction is a function of the host that returns an object, specialGlobal one of Jinja.
	specialFunction
	specialGlobal
	specialLoop
	specialSelf
)

// maxKeys is how many keys of a chain are followed.
const maxKeys = 32

// maxTexts is how many parts of objects are told apart in one value.
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

// maxDepthTracked is how deep lists in lists are told apart.
const maxDepthTracked = 5

// ofItems returns a list that the template writes down.
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

// shallow returns v, or what is in it without its structure if that is deep.
func (t *tracer) shallow(v *tracked) *tracked {
	if v.depth <= maxDepthTracked {
		return v
	}
	return ofElement(ofTexts(t.text(v)))
}

// join returns what is either a or b; and a itself if b adds nothing.
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

// joinInto makes *a the join of both, and says whether it has grown.
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

// grow adds those of more to all that are not there, and says whether there were any.
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

// text returns what the text of v may have in it.
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

// altered returns the text of values after something was done to it that leaves no word whole.
func (t *tracer) altered(values ...*tracked) *tracked {
	return ofTexts(asWords(t.together(values...), false))
}

// together returns the text of values put together.
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

// elements returns what any element of v may be, if v is a list, or its keys, if it is a mapping.
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

// entries returns what the value of any entry, or any element, of v may be.
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

// pairs returns what (key, value) of a mapping may be.
func (t *tracer) pairs(v *tracked) *tracked {
	if v == nil {
		return nil
	}
	keys := t.altered(&tracked{objects: v.objects, texts: v.texts})
	return ofElement(t.ofItems([]*tracked{keys, t.entries(v)}))
}

// member returns what v.name or v['name'] may be.
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

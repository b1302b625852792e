package jinja

import (
	"github.com/albertofaria/pav/jinja/syntax"
)

// textless has the methods that return numbers and booleans.
var textless = set("bit_length", "changed", "count", "endswith", "find", "index", "isalnum", "isalpha", "isascii", "isdecimal",
	"isdigit", "isidentifier", "islower", "isnumeric", "isprintable", "isspace", "istitle", "isupper", "rfind", "rindex",
	"startswith")

// unary has the methods whose arguments do not become a part of their results.
var unary = set("capitalize", "casefold", "decode", "encode", "lower", "lstrip", "partition", "removeprefix", "removesuffix",
	"rpartition", "rsplit", "rstrip", "split", "splitlines", "strip", "swapcase", "title", "upper", "zfill")

func set(names ...string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, name := range names {
		set[name] = true
	}
	return set
}

// method returns the possible results of the call e of a method of object.
func (t *tracer) method(e *syntax.Call, object *tracked, method *syntax.Attribute, args trackedArgs) *tracked {
	if callees := t.memberCallees(object, method.Name); len(callees) > 0 {
		return t.callAll(callees, args)
	}
	switch name := method.Name; {
	case name == "get":
		return t.join(t.got(e, object), t.get(args, 1, "default"))
	case textless[name]:
		return nil
	case unary[name]:
		return t.altered(object)
	case name == "join":
		return t.joined(t.get(args, 0, "iterable"), object)
	case name == "format":
		if pattern, ok := constantString(method.Object); ok && plainBraces.MatchString(pattern) {
			return ofTexts(t.together(t.all(args)))
		}
	}
	return t.ofContainer(object, method.Name, args)
}

// ofContainer returns the possible results of a method of a mapping, or of any other method.
func (t *tracer) ofContainer(object *tracked, name string, args trackedArgs) *tracked {
	switch name {
	case "items":
		return t.pairs(object)
	case "values":
		return ofElement(t.entries(object))
	case "keys":
		return ofElement(t.elements(object))
	case "copy", "next":
		return object
	case "cycle":
		return t.all(args)
	default:
		return t.altered(object, t.all(args))
	}
}

// memberCallees returns the macros that a member of a mapping, of a namespace or of self may be.
func (t *tracer) memberCallees(object *tracked, name string) []*callee {
	if object == nil {
		return nil
	}
	member := t.member(&tracked{fields: object.fields, element: object.element, spaces: object.spaces, special: object.special}, name)
	if member == nil {
		return nil
	}
	return member.callees
}

// got returns the possible results of object.get(key).
func (t *tracer) got(e *syntax.Call, object *tracked) *tracked {
	if len(e.Args.Pos) == 0 {
		return t.entries(object)
	}
	key, ok := constantString(e.Args.Pos[0])
	if !ok {
		return t.entries(object)
	}
	v := t.member(object, key)
	if v != nil {
		for _, o := range v.objects {
			t.path(o, true)
			t.defaulted[o.id] = true
		}
	}
	return v
}

// joined returns the text of the elements of a list, joined with separator.
func (t *tracer) joined(list, separator *tracked) *tracked {
	return ofTexts(t.together(t.elements(list), separator))
}

package jinja

import (
	"github.com/albertofaria/pav/jinja/syntax"
)

// filterKind is how the result of a filter depends on its input.
type filterKind int

const (
	// filterAlters: text of the input and the arguments, but no word of a shell is kept whole.
	filterAlters filterKind = iota
	// filterAltersAlone: the same, without text of the arguments.
	filterAltersAlone
	// filterCounts: a number, or text that depends only on a number.
	filterCounts
	// filterKeeps: the same text.
	filterKeeps
	// filterChooses: an element. FilterLists: a list of elements. FilterGroups: a list of lists.
	filterChooses
	filterLists
	filterGroups
	// filterPairs: the keys and values of a mapping.
	filterPairs
)

// filterKinds has the filters of all kinds but filterAlters.
var filterKinds = map[string]filterKind{
	"center": filterAltersAlone, "tojson": filterAltersAlone, "wordwrap": filterAltersAlone, "urlize": filterAltersAlone,
	"abs": filterCounts, "count": filterCounts, "filesizeformat": filterCounts, "float": filterCounts, "int": filterCounts,
	"length": filterCounts, "round": filterCounts, "wordcount": filterCounts,
	"indent": filterKeeps, "safe": filterKeeps, "string": filterKeeps, "trim": filterKeeps,
	"first": filterChooses, "last": filterChooses, "max": filterChooses, "min": filterChooses, "random": filterChooses,
	"list": filterLists, "reject": filterLists, "rejectattr": filterLists, "reverse": filterLists, "select": filterLists,
	"selectattr": filterLists, "sort": filterLists, "unique": filterLists,
	"batch": filterGroups, "groupby": filterGroups, "slice": filterGroups,
	"dictsort": filterPairs, "items": filterPairs,
}

func (t *tracer) filter(e *syntax.Filter) *tracked {
	input := t.collected
	if e.Input != nil {
		input = t.eval(e.Input)
	}
	args := t.args(e.Args)
	switch e.Name {
	case "format":
		return t.formatted(e.Input, input, t.all(args))
	case "map":
		return t.mapped(e, input, args)
	case "attr":
		return t.entries(input)
	default:
		return t.apply(e.Name, input, args)
	}
}

// apply returns the result of the filter for input.
func (t *tracer) apply(name string, input *tracked, args trackedArgs) *tracked {
	if t.question.Words[name] {
		return ofTexts(asWords(t.text(input), true))
	}
	switch name {
	case "default", "d":
		return t.join(input, t.get(args, 0, "default_value"))
	case "join":
		return t.joined(input, t.get(args, 0, "d"))
	}
	switch filterKinds[name] {
	case filterAlters:
		return t.altered(input, t.all(args))
	case filterAltersAlone:
		return t.altered(input)
	case filterCounts:
		return nil
	case filterKeeps:
		return t.kept(input, args)
	case filterChooses:
		return t.elements(input)
	case filterLists:
		return ofElement(t.elements(input))
	case filterGroups:
		return ofElement(ofElement(t.join(t.elements(input), t.get(args, 1, "fill_with"))))
	case filterPairs:
		return t.pairs(input)
	}
	return nil
}

// kept returns the result of a filter that keeps text unchanged unless its arguments say otherwise.
func (t *tracer) kept(input *tracked, args trackedArgs) *tracked {
	if len(args.positional)+len(args.named) > 0 {
		return t.altered(input, t.all(args))
	}
	return ofTexts(t.text(input))
}

// mapped returns the result of the filter map for a list.
func (t *tracer) mapped(e *syntax.Filter, list *tracked, args trackedArgs) *tracked {
	element := t.elements(list)
	if len(e.Args.Pos) == 0 { // of an attribute
		return ofElement(t.join(t.entries(element), args.named["default"]))
	}
	name, ok := constantString(e.Args.Pos[0])
	if !ok {
		return ofElement(t.altered(element, t.all(args)))
	}
	rest := args
	rest.positional = args.positional[1:]
	return ofElement(t.apply(name, element, rest))
}

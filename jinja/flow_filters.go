package jinja

import (
	"github.com/albertofaria/pav/jinja/syntax"
)

// filterKind is what a filter does to what it is applied to, as far as it can be followed.
type filterKind int

const (
	// filterAlters: its text, with that of the arguments, but no word of a shell is left whole.
	filterAlters filterKind = iota
	// filterAltersAlone: and its arguments do not become a part of it.
	filterAltersAlone
	// filterCounts: it yields a number, or text that only depends on one.
	filterCounts
	// filterKeeps: it yields the same text.
	filterKeeps
	// filterChooses: it yields an element, filterLists a list of elements, filterGroups one of lists.
	filterChooses
	filterLists
	filterGroups
	// filterPairs: it yields the keys and values of a mapping.
	filterPairs
)

// filterKinds are those that do anything but filterAlters.
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

// apply returns what the filter makes of input.
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

// kept returns what a filter makes of text that it keeps as it is if it is told nothing else.
func (t *tracer) kept(input *tracked, args trackedArgs) *tracked {
	if len(args.positional)+len(args.named) > 0 {
		return t.altered(input, t.all(args))
	}
	return ofTexts(t.text(input))
}

// mapped returns what the filter map makes of a list.
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

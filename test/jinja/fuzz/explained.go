package main

import (
	"regexp"
	"slices"
	"strings"

	"github.com/albertofaria/pav/jinja/syntax"
	"github.com/albertofaria/pav/test/jinja/cases"
	"github.com/albertofaria/pav/test/jinja/oracle"
)

// explanations are the intended differences from real Jinja2.
var explanations = []struct {
	reason  string
	applies func(question oracle.Question, want, got cases.Outcome) bool
}{
	{
		reason:  "Python 3.11 gives the first of two values to a name that stands twice in one unpacking, and a later Python the last, as the language has it",
		applies: func(question oracle.Question, _, _ cases.Outcome) bool { return assignsTwice(question.Template) },
	},
	{
		reason: "Python's text of a function or iterator is its address, which is another one each time; making one a text is refused",
		applies: func(_ oracle.Question, _, got cases.Outcome) bool {
			return strings.Contains(got.Message, "has no text") || strings.Contains(got.Message, "of type builtin_function_or_method")
		},
	},
	{
		reason: "self has blocks as attributes and nothing else; Python takes it for a sequence, because it can be asked for items",
		applies: func(_ oracle.Question, _, got cases.Outcome) bool {
			return strings.Contains(got.Message, "TemplateReference")
		},
	},
	{
		reason: "dict is for calling it: what else Python does with a type, such as dict['x'], is not meant to be used",
		applies: func(question oracle.Question, _, got cases.Outcome) bool {
			return strings.Contains(got.Message, "'type' object") || strings.Contains(got.Message, "GenericAlias") || usesType.MatchString(question.Template)
		},
	},
	{
		reason: "numbers and texts that are alike are the same: which of them are one object, Python leaves open",
		applies: func(question oracle.Question, _, _ cases.Outcome) bool {
			return strings.Contains(question.Template, "sameas")
		},
	},
	{
		reason: "Jinja writes a constant that is no finite number into its code as a name of nothing, even where another value takes its place at once",
		applies: func(_ oracle.Question, want, _ cases.Outcome) bool {
			return strings.Contains(want.Message, "name 'nan' is not defined") || strings.Contains(want.Message, "name 'inf' is not defined")
		},
	},
	{
		reason: "methods of equal texts or numbers are one key or two, depending on which of them are one object, which Python leaves open: to store one as a key is refused",
		applies: func(_ oracle.Question, _, got cases.Outcome) bool {
			return strings.Contains(got.Message, "as a key is not supported") || strings.Contains(got.Message, "of two equal values is not supported")
		},
	},
	{
		reason: "random is the same for each render",
		applies: func(question oracle.Question, _, _ cases.Outcome) bool {
			return strings.Contains(question.Template, "random")
		},
	},
	{
		reason: "bytes cannot be formatted with %: there is no use for them but to be decoded",
		applies: func(_ oracle.Question, _, got cases.Outcome) bool {
			return strings.Contains(got.Message, "for %: 'bytes' and")
		},
	},
	{
		reason: "what Python has besides, but no template has asked for, says that it is not supported",
		applies: func(_ oracle.Question, _, got cases.Outcome) bool {
			return strings.Contains(got.Message, "object is not supported") || strings.Contains(got.Message, "is for integers of 64 bits")
		},
	},
	{
		reason:  "what a template may use is bounded",
		applies: func(_ oracle.Question, _, got cases.Outcome) bool { return meetsLimit(got.Message) },
	},
	{
		reason: "complex numbers are refused as soon as they arise: nothing that a volume needs is one",
		applies: func(_ oracle.Question, _, got cases.Outcome) bool {
			return strings.Contains(got.Message, "the power is a complex number")
		},
	},
	{
		reason: "the order of a set is another one in each process of Python",
		applies: func(question oracle.Question, want, got cases.Outcome) bool {
			return want.Class == "" && got.Class == "" && want.Text == got.Text && strings.Contains(question.Template, "!!set")
		},
	},
}

// usesType matches an attribute or an item of the type dict.
var usesType = regexp.MustCompile(`\bdict\s*[.\[]`)

// meetsLimit reports whether a message is about one of the engine's limits.
func meetsLimit(message string) bool {
	return slices.ContainsFunc([]string{"it makes", "it uses more than", "it takes more than", "it nests deeper than"}, func(limit string) bool {
		return strings.Contains(message, limit)
	})
}

// assignsTwice reports whether a statement of the template assigns to the same name twice.
func assignsTwice(source string) bool {
	template, err := syntax.Parse(source)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(template.Body, func(statement syntax.Stmt) bool { return repeatsName(statement) })
}

func repeatsName(node syntax.Node) bool {
	if tuple, ok := node.(*syntax.Tuple); ok {
		names := stored(tuple)
		slices.Sort(names)
		if len(slices.Compact(slices.Clone(names))) < len(names) {
			return true
		}
	}
	return slices.ContainsFunc(node.Children(), repeatsName)
}

func stored(node syntax.Node) []string {
	if name, ok := node.(*syntax.Name); ok && name.Use != syntax.Load {
		return []string{name.Name}
	}
	var names []string
	for _, child := range node.Children() {
		names = append(names, stored(child)...)
	}
	return names
}

// explain returns the reason for which got may differ from want, or an empty string.
func explain(question oracle.Question, want, got cases.Outcome) string {
	for _, e := range explanations {
		if e.applies(question, want, got) {
			return e.reason
		}
	}
	return ""
}

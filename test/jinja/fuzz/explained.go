package main

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/albertofaria/pav/internal/template/jinja/syntax"
	"github.com/albertofaria/pav/test/jinja/cases"
	"github.com/albertofaria/pav/test/jinja/oracle"
)

// explanations are the differences from real Jinja2 that are meant to be.
var explanations = []struct {
	reason  string
	applies func(question oracle.Question, want, got cases.Outcome) bool
}{
	{
		reason:  "Python 3.11 gives the first of two values to a name that stands twice in one unpacking, and a later Python the last, as the language has it",
		applies: func(question oracle.Question, _, _ cases.Outcome) bool { return assignsTwice(question.Template) },
	},
	{
		reason: "Python's text of an object that has no other text contains its address, which is another one each time",
		applies: func(question oracle.Question, want, got cases.Outcome) bool {
			return want.Class == "" && got.Class == "" && (showsAddress(want.Text) || filtersFunction.MatchString(question.Template))
		},
	},
	{
		reason: "as above, where the text is only measured",
		applies: func(question oracle.Question, want, got cases.Outcome) bool {
			return isNumber(want.Text) && isNumber(got.Text) && measuresObject.MatchString(question.Template)
		},
	},
	{
		reason: "self has blocks as attributes and nothing else; Python takes it for a sequence, because it can be asked for items",
		applies: func(_ oracle.Question, _, got cases.Outcome) bool {
			return strings.Contains(got.Message, "TemplateReference")
		},
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

// filtersFunction finds a function that is made into text.
var filtersFunction = regexp.MustCompile(`\b(range|dict|lipsum|cycler|joiner|namespace)\s*\|`)

var measuresObject = regexp.MustCompile(`(map|select|reject|batch|slice|unique|attr|range|dict|lipsum)(.|\n)*(count|length)`)

func isNumber(text string) bool {
	_, err := strconv.Atoi(strings.TrimPrefix(text, "-"))
	return err == nil
}

var noLetters = regexp.MustCompile(`[^a-z0-9]+`)

// showsAddress says whether text is, or is made of, the text of an object: <function f at 0x7f…>.
func showsAddress(text string) bool {
	letters := noLetters.ReplaceAllString(strings.ToLower(text), "")
	return slices.ContainsFunc([]string{"at0x", "x0ta", "functio", "boundmethod", "methodgetof", "builtinmethod", "builtin20method"}, func(part string) bool { return strings.Contains(letters, part) })
}

// assignsTwice says whether a statement of the template assigns twice to one name.
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

// explain returns why got may be other than want, or nothing.
func explain(question oracle.Question, want, got cases.Outcome) string {
	for _, e := range explanations {
		if e.applies(question, want, got) {
			return e.reason
		}
	}
	return ""
}

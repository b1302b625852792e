package jinja

import (
	"strings"
	"unicode/utf8"

	"github.com/albertofaria/pav/jinja/py"
)

// textMethod returns a filter that converts its value to a string and calls a method of strings.
func textMethod(name string) func(s *state, args []py.Value) (py.Value, error) {
	return func(s *state, args []py.Value) (py.Value, error) {
		text, err := softString(s.budget, args[0])
		if err != nil {
			return nil, err
		}
		return s.method(text, name, args[1:]...)
	}
}

func doString(s *state, args []py.Value) (py.Value, error) { return softString(s.budget, args[0]) }

// doTitle begins each word with a capital; words are separated by white space and opening brackets.
func doTitle(s *state, args []py.Value) (py.Value, error) {
	text, err := py.ToStr(s.budget, args[0])
	if err != nil {
		return nil, err
	}
	title := textWriter{budget: s.budget}
	for text != "" {
		end := strings.IndexFunc(text, endsTitleWord)
		switch {
		case end < 0:
			end = len(text)
		case end == 0:
			end = len(text) - len(strings.TrimLeftFunc(text, endsTitleWord))
			err = title.write(text[:end])
		}
		if !endsTitleWord(firstRune(text)) {
			err = s.writeCapitalized(&title, text[:end])
		}
		if err != nil {
			return nil, err
		}
		text = text[end:]
	}
	return py.Str(title.String()), nil
}

func (s *state) writeCapitalized(w *textWriter, word string) error {
	first := len(string(firstRune(word)))
	c := calculation{s: s}
	head, _ := py.TextOf(c.method(py.Str(word[:first]), "upper"))
	tail, _ := py.TextOf(c.method(py.Str(word[first:]), "lower"))
	if c.err != nil {
		return c.err
	}
	return w.write(head, tail)
}

func firstRune(text string) rune {
	first, _ := utf8.DecodeRuneInString(text)
	return first
}

func endsTitleWord(r rune) bool { return py.IsSpaceRune(r) || strings.ContainsRune("-({[<", r) }

func doReplace(s *state, args []py.Value) (py.Value, error) {
	value, before, after, count := args[0], args[1], args[2], args[3]
	if isNone(count) {
		count = py.NewInt(-1)
	}
	convertValue, convert := softString, softString
	switch {
	case !s.autoescape:
		convertValue, convert = plainString, plainString
	case isMarkup(before) || isMarkup(after) && !isMarkup(value):
		convertValue = escape
	}
	c := calculation{s: s}
	text := c.value(func(b *py.Budget) (py.Value, error) { return convertValue(b, value) })
	before = c.value(func(b *py.Budget) (py.Value, error) { return convert(b, before) })
	after = c.value(func(b *py.Budget) (py.Value, error) { return convert(b, after) })
	return c.result(c.method(text, "replace", before, after, count))
}

func doFormat(s *state, value py.Value, args py.Args) (py.Value, error) {
	if err := refuseNames("do_format", args, "value"); err != nil {
		return nil, err
	}
	if len(args.Pos) > 0 && len(args.Named) > 0 {
		return nil, raisef("FilterArgumentError", "can't handle positional and keyword arguments at the same time")
	}
	format, err := softString(s.budget, value)
	if err != nil {
		return nil, err
	}
	if len(args.Named) == 0 {
		return py.PercentFormat(s.budget, format, &py.Tuple{Items: args.Pos})
	}
	named := py.NewDict()
	for _, arg := range args.Named {
		named.SetStr(arg.Name, arg.Value)
	}
	return py.PercentFormat(s.budget, format, named)
}

// refuseNames is for functions with parameters of any name, except those that have been given already.
func refuseNames(function string, args py.Args, names ...string) error {
	for _, arg := range args.Named {
		for _, name := range names {
			if arg.Name == name {
				return raisef("TypeError", "%s() got multiple values for argument '%s'", function, name)
			}
		}
	}
	return nil
}

// doIndent adds and joins as Python does, so HTML stays HTML and text that is added to it is escaped.
func doIndent(s *state, args []py.Value) (py.Value, error) {
	text, width, first, blank := args[0], args[1], args[2], args[3]
	c := calculation{s: s}
	indention := width
	if _, isString := py.TextOf(width); !isString {
		indention = c.binary(py.OpMul, py.Str(" "), width)
	}
	var newline py.Value = py.Str("\n")
	if isMarkup(text) {
		plain, _ := py.TextOf(indention)
		indention, newline = py.Markup(plain), py.Markup("\n")
	}
	lines := c.method(s.withNewline(&c, text, newline), "splitlines")
	if c.isTrue(blank) {
		text = c.method(c.add(newline, indention), "join", lines)
	} else {
		text = indentLines(&c, c.collect(lines), indention, newline)
	}
	if c.isTrue(first) {
		text = c.add(indention, text)
	}
	return c.result(text)
}

// withNewline does text += newline, which works for a list, but the list has no lines.
func (s *state) withNewline(c *calculation, text, newline py.Value) py.Value {
	if _, isList := text.(*py.List); isList {
		return text
	}
	return c.add(text, newline)
}

// indentLines indents all lines but the first, and those that are empty.
func indentLines(c *calculation, lines []py.Value, indention, newline py.Value) py.Value {
	if c.err != nil {
		return py.None{}
	}
	if c.err = c.s.budget.Alloc(4 * valueSize * len(lines)); c.err != nil {
		return py.None{}
	}
	first, rest := lines[0], lines[1:]
	if len(rest) == 0 {
		return first
	}
	indented := make([]py.Value, len(rest))
	for i, line := range rest {
		indented[i] = line
		if c.isTrue(line) {
			indented[i] = c.add(indention, line)
		}
	}
	return c.add(first, c.add(newline, c.method(newline, "join", &py.List{Items: indented})))
}

// truncateLeeway is how much longer than the limit a text may be before it is truncated.
const truncateLeeway = 5

// doTruncate accepts every type with a length and slices, as Jinja's filter does.
func doTruncate(s *state, args []py.Value) (py.Value, error) {
	text, length, killWords, end, leeway := args[0], args[1], args[2], args[3], args[4]
	if isNone(leeway) {
		leeway = py.NewInt(truncateLeeway)
	}
	c := calculation{s: s}
	endLength := c.length(end)
	c.assert(c.compare(py.OpGe, length, endLength), "expected a length of at least that of the end")
	c.assert(c.compare(py.OpGe, leeway, py.NewInt(0)), "expected leeway >= 0")
	if c.compare(py.OpLe, c.length(text), c.add(length, leeway)) {
		return c.result(text)
	}
	head := c.item(text, &py.SliceKey{Stop: c.binary(py.OpSub, length, endLength)})
	if !c.isTrue(killWords) {
		head = c.item(c.method(head, "rsplit", py.Str(" "), py.NewInt(1)), py.NewInt(0))
	}
	return c.result(c.add(head, end))
}

func (c *calculation) assert(holds bool, message string) {
	if c.err == nil && !holds {
		c.err = raisef("AssertionError", "%s", message)
	}
}

// doWordcount counts the runs of letters, digits and underscores.
func doWordcount(s *state, args []py.Value) (py.Value, error) {
	text, err := py.ToStr(s.budget, args[0])
	if err != nil {
		return nil, err
	}
	if err := s.budget.Step(len(text)); err != nil {
		return nil, err
	}
	words, inWord := int64(0), false
	for _, r := range text {
		if py.IsWordRune(r) && !inWord {
			words++
		}
		inWord = py.IsWordRune(r)
	}
	return py.NewInt(words), nil
}

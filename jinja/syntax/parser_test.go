package syntax

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse_Errors(t *testing.T) {
	tests := map[string]struct {
		source       string
		line, column int
		message      string
	}{
		"an expression is missing":             {"a\n{{ 1 + }}", 2, 8, "expected an expression, got '}}'"},
		"a print statement is not closed":      {"{{ 1", 1, 5, "expected '}}', got 'end of template'"},
		"a comment is not closed":              {"żółć {# x", 1, 6, "the comment is not closed: expected '#}'"},
		"a raw block is not closed":            {"{% raw %}{% endra %}", 1, 1, "the raw block is not closed: expected {% endraw %}"},
		"a string is not closed":               {"{{ 'abc }}", 1, 4, "the string is not closed: expected '"},
		"a statement is not closed":            {"{% for x in y %}\n{% if x %}", 2, 11, "unexpected end of template; expected 'elif' or 'else' or 'endif' for the open 'if'"},
		"an end tag belongs further out":       {"{% for x in y %}{% if x %}{% endfor %}", 1, 30, "'endfor' does not belong here; expected 'elif' or 'else' or 'endif' for the open 'if'"},
		"a statement does not exist":           {"{% fro x in y %}", 1, 4, "there is no statement 'fro'"},
		"else if":                              {"{% if x %}{% else if y %}{% endif %}", 1, 19, "expected '%}', got 'if'; another test begins with 'elif'"},
		"an end tag closes nothing":            {"{% endfor %}", 1, 4, "'endfor' closes nothing"},
		"elif is misspelt":                     {"{% if x %}{% elseif y %}{% endif %}", 1, 14, "there is no statement 'elseif', but 'elif'; expected 'elif' or 'else' or 'endif' for the open 'if'"},
		"a bracket is closed by another":       {"{{ (1] }}", 1, 6, "unexpected ']', expected ')'"},
		"a bracket was not opened":             {"{{ 1) }}", 1, 5, "unexpected ')'"},
		"a character is none of the language":  {"{{ a ? b }}", 1, 6, "unexpected character '?'"},
		"a number runs into a character":       {"{{ 1.2.🚀 }}", 1, 8, "unexpected character '🚀'"},
		"a constant is assigned to":            {"{% set none = 1 %}", 1, 8, "cannot assign to this expression; expected a name"},
		"a call is assigned to":                {"{% set f() = 1 %}", 1, 9, "expected '%}', got '('"},
		"a default comes before none":          {"{% macro m(a=1, b) %}{% endmacro %}", 1, 17, "a parameter without a default follows one with a default"},
		"arguments are in the wrong order":     {"{{ f(a=1, 2) }}", 1, 5, "the arguments of this call are in the wrong order: expected positional ones, named ones, *list, **mapping"},
		"call has no call":                     {"{% call x %}{% endcall %}", 1, 9, "expected a call, as in {% call macro() %}"},
		"tests are chained":                    {"{{ 1 is odd is even }}", 1, 13, "tests cannot be chained with 'is'"},
		"a literal's text is not in the error": {"{{ 'secret' 5 }}", 1, 13, "expected '}}', got 'integer'"},
		"an escape is cut short":               {`{{ '\x1' }}`, 1, 4, `truncated \x escape in a string`},
		"an escape is half a character":        {`{{ '\ud800' }}`, 1, 4, "a string has an escape that is no Unicode character"},
		"a block's name has a hyphen":          {"{% block a-b %}{% endblock %}", 1, 11, "the name of a block may not contain '-'; use '_'"},
		"brackets nest too deep":               {"{{ " + strings.Repeat("(", 65000), 1, 104, "statements or brackets nest deeper than 200 levels"},
		"signs nest too deep":                  {"{{ " + strings.Repeat("-", 65000) + "1 }}", 1, 202, "statements or brackets nest deeper than 200 levels"},
		"statements nest too deep":             {strings.Repeat("{% if x %}", 5000), 1, 1997, "statements or brackets nest deeper than 200 levels"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := Parse(test.source)
			wrong, ok := errors.AsType[*Error](err)
			if !ok {
				t.Fatalf("got error %v, want an *Error", err)
			}
			if diff := cmp.Diff(Error{Pos{test.line, test.column}, test.message}, *wrong); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// text returns the output of a template, with "<>" in the place of every print statement and every other statement.
func text(t *testing.T, source string) string {
	t.Helper()
	tokens, err := lex(source)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for _, token := range tokens {
		switch token.kind {
		case kindData:
			out.WriteString(token.text)
		case kindVariableBegin, kindBlockBegin:
			out.WriteString("<>")
		default:
		}
	}
	return out.String()
}

func TestLex_Whitespace(t *testing.T) {
	tests := map[string]struct{ source, want string }{
		"one newline at the end goes":                        {"a\n\n", "a\n"},
		"newlines of other systems become \\n":               {"a\r\nb\rc", "a\nb\nc"},
		"a statement takes its indentation and its line end": {"a\n  {% x %}\nb", "a\n<>b"},
		"a statement behind text leaves the space before it": {"a  {% x %}\nb", "a  <>b"},
		"a print statement takes nothing":                    {"a\n  {{ x }}\nb", "a\n  <>\nb"},
		"a comment is like a statement":                      {"a\n  {# x #}\nb", "a\nb"},
		"minus takes all space":                              {"a \n {%- x -%} \n b", "a<>b"},
		"plus takes none before":                             {"a\n  {%+ x %}\nb", "a\n  <>b"},
		"plus takes none after":                              {"a\n  {% x +%}\nb", "a\n<>\nb"},
		"minus works in print statements":                    {"a \n{{- x -}}\n b", "a<>b"},
		"raw is as it stands":                                {"{% raw %}\n {{ x }} {% endraw %}b", "\n {{ x }} b"},
		"raw's end takes its indentation and line end":       {"{% raw %}\n {{ x }}\n  {% endraw %}\nb", "\n {{ x }}\nb"},
		"the first line can be a statement":                  {"  {% x %}\nb", "<>b"},
		"a statement after another on its line":              {"  {% x %} {% x %}\nb", "<> <>b"},
		"braces in brackets close no tag":                    {"{{ {'a': {}} }}b", "<>b"},
		"a comment may have signs":                           {"a {#- x -#} b", "ab"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, text(t, test.source)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestUnescape(t *testing.T) {
	for source, want := range map[string]string{
		`a\nb\t\\\'\"`: "a\nb\t\\'\"", `\x41\u00e9\U0001F680`: "Aé🚀", `\101\0`: "A\x00", `\d\é`: `\d\xe9`,
		"a\\\nb": "ab", `\N{BULLET}\N{greek small letter alpha}`: "•α",
	} {
		got, err := unescape(source)
		if err != nil || got != want {
			t.Errorf("%s: got %q, %v, want %q", source, got, err, want)
		}
	}
}

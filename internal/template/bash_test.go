package template

import (
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/albertofaria/pav/jinja/py"
)

func newBudget(t *testing.T) *py.Budget {
	t.Helper()
	limits := DefaultLimits()
	return py.NewBudget(t.Context(), limits.engine())
}

func TestToBash(t *testing.T) {
	tests := map[string]struct {
		in   py.Value
		want string
	}{
		"a word":                       {py.Str("a-b_c.d/e:f,g=h%i+j@k"), "a-b_c.d/e:f,g=h%i+j@k"},
		"nothing":                      {py.Str(""), "''"},
		"a space":                      {py.Str("a b"), "'a b'"},
		"a quote":                      {py.Str("it's"), `'it'"'"'s'`},
		"letters beyond ASCII":         {py.Str("é"), "'é'"},
		"a line break":                 {py.Str("\n"), `$'\n'`},
		"lines":                        {py.Str("a b\nc\n"), `'a b'$'\n'c$'\n'`},
		"an integer":                   {py.NewInt(-42), "-42"},
		"a float":                      {py.Float(1.5), "1.5"},
		"a boolean":                    {py.Bool(true), "True"},
		"a text that is known as HTML": {py.Markup("<b>"), "'<b>'"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := toBash(newBudget(t), test.in, py.Args{})
			if err != nil {
				t.Fatal(err)
			}
			if got != py.Str(test.want) {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestToBash_Refuses(t *testing.T) {
	tests := map[string]struct {
		in   py.Value
		args py.Args
		kind py.Kind
	}{
		"a NUL character": {in: py.Str("a\x00b"), kind: py.Other},
		"none":            {in: py.None{}, kind: py.Type},
		"a list":          {in: &py.List{}, kind: py.Type},
		"undefined":       {in: &py.Undefined{Name: "x"}, kind: py.UndefinedUse},
		"arguments":       {in: py.Str("a"), args: py.Args{Pos: []py.Value{py.Str("b")}}, kind: py.Type},
		"a text too long": {in: py.Str(strings.Repeat("'", 1<<20)), kind: py.Limit},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := toBash(newBudget(t), test.in, test.args)
			refused, ok := err.(*py.Error) //nolint:errorlint // the engine expects this type, unwrapped
			if !ok || refused.Kind != test.kind {
				t.Errorf("got %v and error %v, want one of kind %d", got, err, test.kind)
			}
		})
	}
}

// Bash gets all words at once, and prints each with a terminator that no word contains.
func TestBashWord_RoundTripsThroughBash(t *testing.T) {
	texts := []string{"", "a b", "it's", "$(touch /x) `id` \\", "line 1\nline 2", "\n'\\\n", "tab\t\r\x01é🚀", "-n", "!x", "~", "a=b", "{a,b}", "*", "$'\\n'"}
	random := rand.New(rand.NewPCG(1, 2))
	alphabet := []rune("ab '\"\\$`!*?[]{}()<>|&;#~\n\t\r=-%@é🚀\x01\x7f")
	for range 500 {
		text := make([]rune, random.IntN(20))
		for i := range text {
			text[i] = alphabet[random.IntN(len(alphabet))]
		}
		texts = append(texts, string(text))
	}

	script := "printf '%s\\2'"
	for _, text := range texts {
		word := bashWord(text)
		if strings.Contains(word, "\n") {
			t.Errorf("%q holds a line break", word)
		}
		script += " " + word
	}
	out, err := exec.CommandContext(t.Context(), "bash", "-c", script).Output()
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Split(strings.TrimSuffix(string(out), "\x02"), "\x02")
	if diff := cmp.Diff(texts, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

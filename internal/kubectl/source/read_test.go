package source

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRead(t *testing.T) {
	tests := map[string]struct {
		text    string
		objects []map[string]any
		lines   []int
		errors  []string
	}{
		"nothing":           {},
		"only comments":     {text: "# one\n---\n# two\n"},
		"one":               {text: "kind: A\ni: 1\nx: 1.5\nb: yes\nz: null\non: 2\n", objects: []map[string]any{{"kind": "A", "i": int64(1), "x": 1.5, "b": true, "z": nil, "true": int64(2)}}, lines: []int{1}},
		"three":             {text: "---\na: 1\n---\n# c\n\nb: 2\n--- # c\nc: 3", objects: []map[string]any{{"a": int64(1)}, {"b": int64(2)}, {"c": int64(3)}}, lines: []int{2, 6, 8}},
		"no document":       {text: "a: 1\n--- b\n", objects: []map[string]any{{"a": int64(1)}}, lines: []int{1}, errors: []string{"f:2:4: only a comment can follow '---', which separates documents"}},
		"JSON":              {text: "{\"a\": 1}", objects: []map[string]any{{"a": int64(1)}}, lines: []int{1}},
		"JSON with escapes": {text: `{"a": "\/\ud83d\ude00"}`, objects: []map[string]any{{"a": "/😀"}}, lines: []int{1}},
		"JSON twice":        {text: "{\"a\": 1} {\n\"a\": 2}\n", objects: []map[string]any{{"a": int64(1)}, {"a": int64(2)}}, lines: []int{1, 1}},
		"flow":              {text: "{a: 1}\n", objects: []map[string]any{{"a": int64(1)}}, lines: []int{1}},
		"a List": {text: "kind: List\nitems:\n- a: 1\n-\n  a: 2\n- x\n", objects: []map[string]any{{"a": int64(1)}, {"a": int64(2)}}, lines: []int{3, 5},
			errors: []string{"f:6:3: an object is expected here: a mapping with apiVersion and kind"}},
		"a text":              {text: "\nabc\n", errors: []string{"f:2:1: an object is expected here: a mapping with apiVersion and kind"}},
		"a key that is twice": {text: "a:\n  b: 1\n  c: 2\n  b: 3\n", objects: []map[string]any{{"a": map[string]any{"b": int64(3), "c": int64(2)}}}, lines: []int{1}, errors: []string{`f:4:3: the key "b" is in this mapping already, in line 2`}},
		"also in an alias":    {text: "a: &x\n  b: 1\n  'b': 2\nc: *x\n", objects: []map[string]any{{"a": map[string]any{"b": int64(2)}, "c": map[string]any{"b": int64(2)}}}, lines: []int{1}, errors: []string{`f:3:3: the key "b" is in this mapping already, in line 2`}},
		"a tab":               {text: "# c\n---\na:\n\tb: 1\n", errors: []string{"f:4:1: no value can begin with this character, a tab: use spaces"}},
		"wrong indentation":   {text: "a: 1\n---\na:\n  b: 1\n c: 2\n", objects: []map[string]any{{"a": int64(1)}}, lines: []int{1}, errors: []string{"f:5:2: a key or the end of the mapping is expected here, not a mapping: check the indentation"}},
		"an open quote":       {text: "a: \"x\nb: 1\n", errors: []string{"f:3:1: the closing quote is missing"}},
		"a template unquoted": {text: "a: {{ b }}\n", errors: []string{"f:1:5: a mapping or list cannot be a key: put a text that begins with {{ in quotes"}},
		"a list, indented":    {text: "a:\n - b: 1\n  c: 2\n", errors: []string{"f:3:3: a further item of the list or its end is expected here, not a mapping: check the indentation"}},
		"no UTF-8":            {text: "a: 1\nb: ä\xff\n", errors: []string{"f:2:5: the text is not UTF-8"}},
		"an alias of what is large, often": {text: "a: &a " + strings.Repeat("x", 1<<20) + "\nb:\n" + strings.Repeat("- *a\n", 3000) + "---\nb: 1\n",
			objects: []map[string]any{{"b": int64(1)}}, lines: []int{3004}, errors: []string{"f:1:1: with its aliases replaced the document would have more than 64 MiB"}},
		"aliases of aliases": {text: "a: &a " + strings.Repeat("x", 1<<16) + "\nb: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a, *a]\nc: &c [*b, *b, *b, *b, *b, *b, *b, *b, *b, *b]\nd: {x: [*c, *c, *c, *c, *c, *c, *c, *c, *c, *c, *c]}\n",
			errors: []string{"f:1:1: with its aliases replaced"}},
		"an alias of what it is in": {text: "a: &a\n  b: *a\n", errors: []string{"f:1:4: the value is a part of itself"}},
		"the others are there":      {text: "a: [\n---\nb: 1\n", objects: []map[string]any{{"b": int64(1)}}, lines: []int{3}, errors: []string{"f:2:1: "}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			documents, err := Read("f", strings.NewReader(test.text))
			var objects []map[string]any
			var lines []int
			for _, d := range documents {
				objects = append(objects, d.Object)
				line, _ := d.Position("", false, 0, 0)
				lines = append(lines, line)
			}
			if diff := cmp.Diff(test.objects, objects) + cmp.Diff(test.lines, lines); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			found, rest := Errors(err)
			if rest != nil || len(found) != len(test.errors) {
				t.Fatalf("got %v, %v", found, rest)
			}
			for i, wrong := range found {
				if !strings.HasPrefix(wrong.Error(), test.errors[i]) {
					t.Errorf("got %q, want %q", wrong, test.errors[i])
				}
			}
		})
	}
}

func TestOpen(t *testing.T) {
	documents, err := Open("-", strings.NewReader("kind: A\nmetadata: {name: x}\napiVersion: g/v1\n"))
	if err != nil || len(documents) != 1 {
		t.Fatalf("got %v, %v", documents, err)
	}
	if d := documents[0]; d.File != "<stdin>" || d.Kind() != "A" || d.Name() != "x" || d.Group() != "g" || d.Line(2) != "metadata: {name: x}" || d.Line(0)+d.Line(9) != "" {
		t.Errorf("got %+v", d)
	}
	if _, err := Open("nothing.yaml", nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

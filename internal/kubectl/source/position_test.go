package source

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// marked returns where the character '@' is in a text, from 1.
func marked(t *testing.T, text string) (line, column int) {
	t.Helper()
	before, _, ok := strings.Cut(text, "@")
	if !ok {
		t.Fatalf("there is no mark in %q", text)
	}
	lines := strings.Split(before, "\n")
	return len(lines), utf8.RuneCountInString(lines[len(lines)-1]) + 1
}

func value(object any, path ...any) any {
	for _, key := range path {
		switch key := key.(type) {
		case string:
			object = object.(map[string]any)[key]
		case int:
			object = object.([]any)[key]
		}
	}
	return object
}

// Each file has one '@', in the text at the path a.b or at that of the field: it must be found there.
func TestPositionInText(t *testing.T) {
	tests := map[string]struct {
		text  string
		field string
		path  []any
	}{
		"plain":                               {text: "a:\n  b: one @ two\n"},
		"plain with an anchor and a tag":      {text: "a:\n  b: &x !!str one @\n"},
		"plain after a comment":               {text: "# c\na: # c\n  # c\n  b: one @ # no\n"},
		"literal":                             {text: "a:\n  b: |\n    one\n    two @\n"},
		"literal that is chomped":             {text: "a:\n  b: |-\n    one\n\n      two @\n\n"},
		"literal that is kept":                {text: "a:\n  b: |+ # c\n    one\n    @\n\n\n"},
		"literal with empty lines first":      {text: "a:\n  b: |\n\n\n    one @\n"},
		"literal with an indicator":           {text: "a:\n  b: |2\n      one\n     two @\n"},
		"literal with both indicators":        {text: "a:\n  b: |-1\n     one\n   two @\n"},
		"literal with an anchor":              {text: "a:\n  b: &x\n    |\n    one @\n"},
		"literal without an end":              {text: "a:\n  b: |\n    one\n    two @"},
		"literal with '|' in key and comment": {text: "a:\n  \"b\": &x # a|b\n    |\n    fi\n    fi@\n"},
		"literal with a tag":                  {text: "a:\n  b: !!str |\n    one\n    two @\n"},
		"literal with blank lines":            {text: "a:\n  b: |\n    one\n      \n    two @\n"},
		"plain like its anchor":               {text: "a:\n  b: &one one@\n"},
		"plain like its tag":                  {text: "a:\n  b: !!str str@\n"},
		"double quotes in flow":               {text: "a: {b: \"one @\"} # one @x\n"},
		"literal with wide characters":        {text: "a:\n  b: |\n    äöü 世界 @\n"},
		"literal with tabs":                   {text: "a:\n  b: |\n    one\n    \t@\n"},
		"in a list":                           {text: "a:\n  - c\n  - |\n    one\n    @\n", field: "a[1]", path: []any{"a", 1}},
		"in a list without indentation":       {text: "a:\n- b: |\n    one\n    @\n", field: "a[0].b", path: []any{"a", 0, "b"}},
		"in flow":                             {text: "a: {c: [1, {b: x, d: 'one @'}]}\n", field: "a.c[1].d", path: []any{"a", "c", 1, "d"}},
		"an alias":                            {text: "c: &x |\n  one\n  @\na:\n  b: *x\n"},
		"a merge":                             {text: "c: &x\n  b: |\n    one @\na:\n  <<: *x\n  d: 1\n"},
		"merges":                              {text: "c: &x {b: 'one @'}\nd: &y {b: two}\na:\n  <<: [*x, *y]\n"},
		"a merge that is overridden":          {text: "c: &x {b: one}\na:\n  <<: *x\n  b: two @\n"},
		"a merge that overrides":              {text: "c: &x {b: one @}\na:\n  b: two\n  <<: *x\n"},
		"a key with dots":                     {text: "a:\n  b.c/d: one @\n  b: two\n", field: "a[b.c/d]", path: []any{"a", "b.c/d"}},
		"a key with brackets":                 {text: "a:\n  'b[0]': one @\n  b: [two]\n", field: "a[b[0]]", path: []any{"a", "b[0]"}},
		"the second document":                 {text: "# c\n---\n\na:\n  b: |\n    one\n    @\n"},
		"after a comment and a separator":     {text: "--- # c\na:\n  b: |\n    one\n    @\n"},
	}
	for name, test := range tests {
		if test.field == "" {
			test.field, test.path = "a.b", []any{"a", "b"}
		}
		for ending, text := range map[string]string{"LF": test.text, "CRLF": strings.ReplaceAll(test.text, "\n", "\r\n")} {
			t.Run(name+" "+ending, func(t *testing.T) {
				documents, err := Read("f.yaml", strings.NewReader(text))
				if err != nil || len(documents) != 1 {
					t.Fatalf("%d documents, %v", len(documents), err)
				}
				written, _ := value(documents[0].Object, test.path...).(string)
				inLine, inColumn := marked(t, written)
				wantLine, wantColumn := marked(t, strings.ReplaceAll(text, "\r\n", "\n"))
				line, column := documents[0].Position(test.field, false, inLine, inColumn)
				if line != wantLine || column != wantColumn {
					t.Errorf("line %d, column %d of %q is found at %d:%d, want %d:%d", inLine, inColumn, written, line, column, wantLine, wantColumn)
				}
			})
		}
	}
}

// Where lines of the text are not lines of the file, or have escape sequences, the scalar is found.
func TestPositionInText_OfOtherScalars_IsTheirBeginning(t *testing.T) {
	for name, text := range map[string]string{
		"plain of two lines":                "a:\n  b: one\n     two @ three\n",
		"plain with empty lines":            "a:\n  b: one\n\n\n     two @ three\n",
		"single quotes":                     "a:\n  b: 'it''s @ here'\n",
		"single quotes of two lines":        "a:\n  b: 'one  \n\n    two''  @ '\n",
		"double quotes":                     `a: {b: "one \"two\" \x41\u00e4\U0001f600\t@"}` + "\n",
		"double quotes with a line break":   `a: {b: "one\ntwo\n  @"}` + "\n",
		"double quotes of two lines":        "a:\n  b: \"one\n    two @\"\n",
		"double quotes with an escaped end": "a:\n  b: \"one\\\n    two\\\n\n    \\  @\"\n",
		"folded":                            "a:\n  b: >\n    one\n    two @\n    three\n",
		"folded with paragraphs":            "a:\n  b: >-\n    one\n    two\n\n\n    three @\n",
		"folded with more indentation":      "a:\n  b: >\n    one\n      two\n\n      three\n    four\n    five @\n",
		"folded with empty lines":           "a:\n  b: >+\n\n    one\n    two @\n\n",
		"JSON":                              "{\n  \"a\": {\n\t\"b\": \"one\\ntwo @\"\n}}",
		"the template of an object":         "a:\n  b: >-\n    {% set yaml = true %}\n    [@]\n",
	} {
		t.Run(name, func(t *testing.T) {
			documents, err := Read("f.yaml", strings.NewReader(text))
			if err != nil || len(documents) != 1 {
				t.Fatalf("%d documents, %v", len(documents), err)
			}
			written, _ := value(documents[0].Object, "a", "b").(string)
			inLine, inColumn := marked(t, written)
			line, column := documents[0].Position("a.b", false, inLine, inColumn)
			if wantLine, wantColumn := documents[0].Position("a.b", false, 0, 0); line != wantLine || column != wantColumn {
				t.Errorf("line %d, column %d of %q is found at %d:%d, want %d:%d", inLine, inColumn, written, line, column, wantLine, wantColumn)
			}
		})
	}
}

func TestPositionOfFields(t *testing.T) {
	const text = `# The first line.
kind: One
metadata:
  name: x
  labels: {a.b/c: d}
spec:
  containers:
    - name: one
      args: &args [x, "y"]
    - args: *args
  "on": |
    text
  yes: 1
`
	documents, err := Read("f.yaml", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		field        string
		key          bool
		line, column int
	}{
		"a value":                           {"kind", false, 2, 7},
		"a key":                             {"kind", true, 2, 1},
		"the root":                          {"", false, 2, 1},
		"a mapping is where its key is":     {"metadata", false, 3, 1},
		"but in flow where it begins":       {"metadata.labels", false, 5, 11},
		"a key with dots":                   {"metadata.labels[a.b/c]", true, 5, 12},
		"an item":                           {"spec.containers[0]", false, 8, 7},
		"in an item":                        {"spec.containers[0].name", true, 8, 7},
		"an alias":                          {"spec.containers[1].args", false, 10, 13},
		"in an alias":                       {"spec.containers[1].args[1]", false, 9, 23},
		"a literal":                         {"spec.on", false, 11, 9},
		"YAML's words for true":             {"spec.true", true, 13, 3},
		"what is not there":                 {"spec.volumeStaging.podTemplate", false, 6, 1},
		"nor in a list":                     {"spec.containers[0].image", true, 8, 7},
		"nor at the root":                   {"apiVersion", false, 2, 1},
		"an index that is too great":        {"spec.containers[7]", false, 7, 3},
		"a member of a text":                {"kind.x", false, 2, 1},
		"no path":                           {"][", false, 2, 1},
		"an item that is part of the value": {"metadata.name[0]", false, 4, 3},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if line, column := documents[0].Position(test.field, test.key, 0, 0); line != test.line || column != test.column {
				t.Errorf("%q is at %d:%d, want %d:%d", test.field, line, column, test.line, test.column)
			}
		})
	}
}

// FuzzPosition reads anything, and asks for everything that is in it.
func FuzzPosition(f *testing.F) {
	for _, seed := range []string{
		"a:\n  b: |\n    one\n    two\n", "a: >2-\n   x\n\n  y", "a: {b: [1, 'x\n\n y']}", "{\"a\": \"\\u0041\"}", "--- x\na: 1",
		"a: &x {b: c}\nd:\n  <<: *x\n", "kind: List\nitems:\n- a: 1\n- 2\n", "a: \"\\\n\n x\"", "a: b\n\tc: d", "a: 1\na: 2\r\n", "\ufeffa: \u2028|\r\n x\ry\u0085", "a: \xff",
		"? |\n  x\n: y", "a: &x [*x]", "!!binary a: !!set {b}",
	} {
		f.Add(seed, 1, 1)
	}
	f.Fuzz(func(t *testing.T, text string, line, column int) {
		documents, err := Read("f.yaml", strings.NewReader(text))
		lines := linesOf(strings.TrimPrefix(text, "\ufeff"))
		check := func(what string, line, column int) {
			if line < 1 || line > len(lines) || column < 1 || column > utf8.RuneCountInString(lines[line-1])+1 {
				t.Errorf("%s is at %d:%d, which is not in %q", what, line, column, text)
			}
		}
		found, _ := Errors(err)
		for _, wrong := range found {
			check(wrong.Message, wrong.Line, wrong.Column)
		}
		for _, d := range documents {
			each("", d.Object, func(field string) {
				for _, in := range []place{{0, 0}, {1, 1}, {2, 3}, {line, column}} {
					l, c := d.Position(field, false, in.line, in.column)
					check(field, l, c)
				}
				l, c := d.Position(field, true, 0, 0)
				check(field, l, c)
			})
		}
	})
}

// each visits the paths of all that is in a value.
func each(field string, value any, visit func(string)) {
	visit(field)
	switch value := value.(type) {
	case map[string]any:
		for key, member := range value {
			if strings.ContainsAny(key, "./[]") {
				each(field+"["+key+"]", member, visit)
				continue
			}
			each(strings.TrimPrefix(field+"."+key, "."), member, visit)
		}
	case []any:
		for i, item := range value {
			if i < 3 {
				each(field+"["+string(rune('0'+i))+"]", item, visit)
			}
		}
	}
}

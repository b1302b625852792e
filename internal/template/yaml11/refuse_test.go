package yaml11

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// PyYAML refuses all of these, except those whose names say why they are refused here.
func TestParse_Refuses(t *testing.T) {
	tests := map[string]string{
		"a control character":                "a\u0001",
		"a delete character":                 "a\u007f",
		"a tab before a value":               "a:\tb",
		"a tab inside a plain text":          "a: b\tc",
		"a tab as indentation":               "a:\n\tb: 1",
		"two documents":                      "a\n---\nb",
		"text after an end of document":      "a\n...\nb",
		"an unknown alias":                   "*a",
		"an anchor twice":                    "[&a 1, &a 2]",
		"an anchor without a name":           "& a",
		"an anchor with a dot":               "&a.b c",
		"an unknown tag":                     "!foo a",
		"an unknown handle":                  "!e!int 1",
		"a Python tag":                       "!!python/object/apply:os.system ['id']",
		"a tag without a space":              "!!str[a]",
		"an open list":                       "[a",
		"an open mapping":                    "{a: 1",
		"an open quote":                      "'a",
		"a closing bracket alone":            "]",
		"the wrong bracket":                  "[a}",
		"an at sign":                         "@a",
		"a back quote":                       "`a`",
		"a percent sign":                     "a: %b",
		"a star":                             "a: *",
		"a value as a key's value":           "a: b: c",
		"a list as a value's item":           "a: - b",
		"a key without a colon":              "a: 1\nb",
		"wrong indentation":                  "a: 1\n  b: 2",
		"a key of more than 1024 characters": strings.Repeat("a", 1025) + ": 1",
		"a list as a key":                    "{[a]: b}",
		"a mapping as a key":                 "{{a: 1}: b}",
		"a date as a key":                    "{2001-01-01: a}",
		"a merge of a text":                  "{<<: a}",
		"a merge of texts":                   "{<<: [a]}",
		"a merge sign as a value":            "[<<]",
		"an equals sign as a value":          "[=]",
		"a list that holds itself":           "&a [*a]",
		"a mapping that holds itself":        "&a {b: *a}",
		"a month 13":                         "2001-13-01",
		"a 30th of February":                 "2001-02-30",
		"an hour 24":                         "2001-01-01 24:00:00",
		"a year 0":                           "0000-01-01",
		"an offset of a day":                 "2001-01-01 00:00:00 +24",
		"no integer":                         "!!int a",
		"an empty integer":                   "!!int ''",
		"no float":                           "!!float a",
		"a hexadecimal float":                "!!float 0x1p2",
		"no boolean":                         "!!bool y",
		"no date":                            "!!timestamp a",
		"a list as a text":                   "!!str [a]",
		"a text as a list":                   "!!seq a",
		"a text as a mapping":                "!!map a",
		"a text as a set":                    "!!set a",
		"a list of more than pairs":          "!!omap [{a: 1, b: 2}]",
		"no base64":                          "!!binary a",
		"base64 of letters beyond ASCII":     "!!binary \u00e9",
		"a surrogate, which Python holds but cannot send": `"\ud83d"`,
		"no character":                             `"\U00110000"`,
		"an unknown escape":                        `"\q"`,
		"an escape that ends early":                `"\x4"`,
		"a document marker in quotes":              "'a\n--- b'",
		"an indentation of 0":                      "|0\n a",
		"two indentations":                         "|12\n a",
		"a version 2":                              "%YAML 2.0\n--- a",
		"a version twice":                          "%YAML 1.1\n%YAML 1.1\n--- a",
		"a handle twice":                           "%TAG !e! a\n%TAG !e! b\n--- a",
		"a directive without a document":           "%YAML 1.1\n",
		"a question mark in a flow text":           "[a?b]",
		"empty items in a flow list":               "[a, , b]",
		"1 and '1' as keys, which are one in JSON": "{1: a, '1': b}",
	}
	for name, text := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Parse(text, limits())
			var wrong *Error
			if !errors.As(err, &wrong) {
				t.Fatalf("got %v and error %v, want an *Error", got, err)
			}
			if wrong.Line < 1 || wrong.Column < 1 {
				t.Errorf("the error is at line %d, column %d", wrong.Line, wrong.Column)
			}
		})
	}
}

func TestParse_ErrorsSayWhere_ButNotWhat(t *testing.T) {
	_, err := Parse("a: 1\npassword: s3cr3t: x", limits())
	if want := "line 2, column 17: ':' cannot stand here"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestParse_IsBounded(t *testing.T) {
	bomb := "a0: &a0 [x]\n"
	merges := "- &a0 {x: 1}\n"
	deep := "- &a0 [x]\n"
	for i := range 40 {
		this, next := "a"+string(rune('A'+i)), "a"+string(rune('A'+i-1))
		if i == 0 {
			next = "a0"
		}
		bomb += this + ": &" + this + " [*" + next + ", *" + next + "]\n"
		merges += "- &" + this + " {<<: [*" + next + ", *" + next + "], y: 1}\n"
		deep += "- &" + this + " [[[*" + next + "]]]\n"
	}
	tests := map[string]string{
		"a long text":                       strings.Repeat("a", 1<<20+1),
		"many values":                       "[" + strings.Repeat("a,", 1<<18) + "]",
		"deep lists":                        strings.Repeat("[", 1<<19),
		"deep mappings":                     strings.Repeat("{a: ", 1<<18),
		"deep block lists":                  strings.Repeat("- ", 1<<19),
		"deep keys":                         strings.Repeat("? ", 1<<19),
		"aliases of aliases":                bomb,
		"merges of merges":                  merges,
		"aliases that make values deep":     deep,
		"aliases of a long text":            "[&a " + strings.Repeat("x", 1<<19) + strings.Repeat(", *a", 1000) + "]",
		"an integer of too many digits":     strings.Repeat("9", 5000),
		"an integer of many parts":          "1" + strings.Repeat(":1", 1<<18),
		"a float of many parts":             "1" + strings.Repeat(":1", 100) + ".5",
		"tags without end":                  strings.Repeat("!a", 1<<18),
		"anchors without end":               strings.Repeat("&a ", 1<<18),
		"brackets that nothing opened":      strings.Repeat("]", 1<<19),
		"lists over lines":                  strings.Repeat("[\n", 1<<18),
		"keys on one line":                  strings.Repeat("a: ", 1<<18),
		"quotes that are opened and closed": strings.Repeat("'' ", 1<<18),
		"directives":                        strings.Repeat("%A b\n", 1<<17),
	}
	for name, text := range tests {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			got, err := Parse(text, limits())
			if err == nil {
				t.Errorf("got %T, want an error", got)
			}
			if took := time.Since(start); took > time.Minute {
				t.Errorf("it took %s", took)
			}
		})
	}
}

func TestParse_TakesWhatATextStandsForOffTheLimits(t *testing.T) {
	left := limits()
	before := *left
	if _, err := Parse("[&a xyz, *a]", left); err != nil {
		t.Fatal(err)
	}
	if nodes, bytes := before.Nodes-left.Nodes, before.Expanded-left.Expanded; nodes != 3 || bytes != 6 {
		t.Errorf("%d values and %d bytes were taken off, want 3 and 6", nodes, bytes)
	}
}

func TestParse_LongTextsTakeLittleTime(t *testing.T) {
	for name, text := range map[string]string{
		"comments":        strings.Repeat("#\n", 1<<19),
		"empty lines":     strings.Repeat("\n", 1<<20),
		"a quoted text":   "'" + strings.Repeat("a\n\n", 1<<18) + "'",
		"a plain text":    strings.Repeat("a\n", 1<<19),
		"a literal":       "|\n" + strings.Repeat(" a\n", 1<<18),
		"a folded text":   ">\n" + strings.Repeat(" a\n", 1<<18),
		"escapes":         "\"" + strings.Repeat("\\n", 1<<19-1) + "\"",
		"a long float":    "0." + strings.Repeat("3", 1<<20-2),
		"document ends":   "a\n" + strings.Repeat("...\n", 1<<18-1),
		"a mapping":       strings.Repeat("a: b\n", 15000),
		"indented blanks": "a: |\n" + strings.Repeat(" ", 1<<19),
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			if _, err := Parse(text, limits()); err != nil {
				t.Error(err)
			}
			if took := time.Since(start); took > time.Minute {
				t.Errorf("it took %s", took)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"a: [1, {b: 2}]\n", "- &a x\n- *a\n", "|+2\n  a\n", "\"\\x41\\\n\"", "%TAG !e! a:\n--- !e!b c\n...\n",
		"? a\n: b\n", "{<<: [*a], =: 1}", "!!set {a}", "2001-12-14t21:59:43.10-05:00", "190:20:30.15", "'it''s'", "[a: b, ? c]",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		start := time.Now()
		got, err := Parse(text, LimitsFor(1<<12))
		if err != nil && got != nil {
			t.Errorf("got both %v and error %v", got, err)
		}
		if took := time.Since(start); took > time.Minute {
			t.Errorf("it took %s", took)
		}
	})
}

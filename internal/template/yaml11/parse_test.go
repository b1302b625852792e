package yaml11

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// limits returns the limits for a text of 1 MiB.
func limits() *Limits { return LimitsFor(1 << 20) }

// The expected values are those of PyYAML's safe_load, with keys as Python's json module writes them.
func TestParse(t *testing.T) {
	tests := map[string]struct {
		text string
		want any
	}{
		"nothing":                     {"", nil},
		"only a comment":              {"# c\n", nil},
		"an empty document":           {"---\n", nil},
		"a scalar":                    {"a", "a"},
		"a document with its markers": {"--- a\n...\n", "a"},
		"what follows an end of document must be a document": {"a\n...\n...\n", "a"},
		"a byte order mark at the beginning":                 {"\ufeffa: 1", map[string]any{"a": int64(1)}},
		"yes and no":                                         {"[yes, Yes, YES, no, No, NO]", []any{true, true, true, false, false, false}},
		"on and off":                                         {"[on, On, ON, off, Off, OFF]", []any{true, true, true, false, false, false}},
		"true and false":                                     {"[true, True, TRUE, false, False, FALSE]", []any{true, true, true, false, false, false}},
		"but not y and n":                                    {"[y, Y, n, N, tRue]", []any{"y", "Y", "n", "N", "tRue"}},
		"null":                                               {"[null, Null, NULL, ~, ]", []any{nil, nil, nil, nil}},
		"an empty value":                                     {"a:\nb: ~\n", map[string]any{"a": nil, "b": nil}},
		"decimal":                                            {"[0, 12, -12, +12, 1_000, 0.]", []any{int64(0), int64(12), int64(-12), int64(12), int64(1000), 0.0}},
		"octal":                                              {"[010, -017, 0_7]", []any{int64(8), int64(-15), int64(7)}},
		"neither octal nor decimal":                          {"[08, 0o17, 1__, 1_]", []any{"08", "0o17", int64(1), int64(1)}},
		"hexadecimal and binary":                             {"[0x1F, 0xff_ff, -0b101]", []any{int64(31), int64(65535), int64(-5)}},
		"minutes and hours":                                  {"[1:30, 190:20:30, -1:30, 1:60, 01:30]", []any{int64(90), int64(685230), int64(-90), "1:60", "01:30"}},
		"large integers":                                     {"[9223372036854775807, 9223372036854775808, -9223372036854775808, -9223372036854775809]", []any{int64(9223372036854775807), json.Number("9223372036854775808"), int64(-9223372036854775808), json.Number("-9223372036854775809")}},
		"floats":                                             {"[1.5, -.5, .5, 1., 1_0.5, 1.5e+3, 1.e-3, 1e3, 1.5e3]", []any{1.5, "-.5", 0.5, 1.0, 10.5, 1500.0, 0.001, "1e3", "1.5e3"}},
		"infinite floats":                                    {"[.inf, -.Inf, +.INF]", []any{math.Inf(1), math.Inf(-1), math.Inf(1)}},
		"minutes as floats":                                  {"[1:30.5, 190:20:30.15]", []any{90.5, 685230.15}},
		"dates":                                              {"[2001-12-14, 2001-1-1, 0001-01-01]", []any{Date{2001, 12, 14}, "2001-1-1", Date{1, 1, 1}}},
		"times":                                              {"[2001-12-14t21:59:43.10-05:00, 2001-12-14 21:59:43.10 -5, 2001-12-15 2:59:43.1Z, 2001-12-14 21:59:43, 2001-12-14 21:59:00 +0]", []any{Timestamp{Date: Date{2001, 12, 14}, Hour: 21, Minute: 59, Second: 43, Microsecond: 100000, Zoned: true, Offset: -300}, Timestamp{Date: Date{2001, 12, 14}, Hour: 21, Minute: 59, Second: 43, Microsecond: 100000, Zoned: true, Offset: -300}, Timestamp{Date: Date{2001, 12, 15}, Hour: 2, Minute: 59, Second: 43, Microsecond: 100000, Zoned: true}, Timestamp{Date: Date{2001, 12, 14}, Hour: 21, Minute: 59, Second: 43}, Timestamp{Date: Date{2001, 12, 14}, Hour: 21, Minute: 59, Second: 0, Zoned: true}}},
		"no times":                                           {"[2001-12-14 21:59, 2001-12-14T21:59:43 05:00x]", []any{"2001-12-14 21:59", "2001-12-14T21:59:43 05:00x"}},
		"quotes make text":                                   {`['1', "yes", '2001-12-14']`, []any{"1", "yes", "2001-12-14"}},
		"a quote in quotes":                                  {"'it''s'", "it's"},
		"escapes":                                            {`"\n\t\x41\u00e9\U0001F600\e\_\N\/\\"`, "\n\tAé😀\u001b\u00a0\u0085/\\"},
		"quotes over lines":                                  {"'a\n  b\n\n  c'", "a b\nc"},
		"an escaped line end":                                {"\"a\\\n   b\"", "ab"},
		"literal":                                            {"|\n a\n  b\n\n c\n", "a\n b\n\nc\n"},
		"literal, stripped":                                  {"|-\n a\n\n", "a"},
		"literal, kept":                                      {"|+\n a\n\n", "a\n\n"},
		"literal with an indentation of its own":             {"|2\n   a\n  b\n", " a\nb\n"},
		"folded":                                             {"> \n a\n b\n\n c\n   d\n e\n", "a b\nc\n  d\ne\n"},
		"folded, stripped":                                   {">-\n a\n b\n", "a b"},
		"plain over lines":                                   {"a\n  b\n\n  c", "a b\nc"},
		"colons without a space":                             {"[a:b, http://x.y/z]", []any{"a:b", "http://x.y/z"}},
		"a number sign without a space":                      {"a#b", "a#b"},
		"a comment after a value":                            {"a: b # c", map[string]any{"a": "b"}},
		"a comment at once after a quote":                    {"'a'#b", "a"},
		"a list not deeper than its key":                     {"a:\n- b\n- c\n", map[string]any{"a": []any{"b", "c"}}},
		"lists in lists":                                     {"- - a\n  - b\n- c\n", []any{[]any{"a", "b"}, "c"}},
		"mappings in lists":                                  {"- a: 1\n  b: 2\n- c: 3\n", []any{map[string]any{"a": int64(1), "b": int64(2)}, map[string]any{"c": int64(3)}}},
		"flow collections":                                   {`{a: [1, {b: 2}], c, 'd': e, "f":1}`, map[string]any{"a": []any{int64(1), map[string]any{"b": int64(2)}}, "c": nil, "d": "e", "f": int64(1)}},
		"a pair in a flow list":                              {"[a: 1, b, ? c : 2, ? d]", []any{map[string]any{"a": int64(1)}, "b", map[string]any{"c": int64(2)}, map[string]any{"d": nil}}},
		"complex keys":                                       {"? a\n: b\n? c\n", map[string]any{"a": "b", "c": nil}},
		"flow over lines":                                    {"{a: 1,\n b:\n [2,\n3]}", map[string]any{"a": int64(1), "b": []any{int64(2), int64(3)}}},
		"the last of equal keys":                             {"{a: 1, b: 2, a: 3}", map[string]any{"a": int64(3), "b": int64(2)}},
		"keys that are no strings":                           {"{1: a, 2.5: b, true: c, ~: d, 0x10: e}", map[string]any{"1": "c", "2.5": "b", "null": "d", "16": "e"}},
		"keys that are one in Python":                        {"{1: a, 1.0: b, true: c}", map[string]any{"1": "c"}},
		"large keys":                                         {"{99999999999999999999: a, 1.0e+20: b, 1.0e-5: c}", map[string]any{"99999999999999999999": "a", "1e+20": "b", "1e-05": "c"}},
		"an alias":                                           {"a: &x [1]\nb: *x\n", map[string]any{"a": []any{int64(1)}, "b": []any{int64(1)}}},
		"an anchor of a scalar":                              {"[&x a, *x, *x]", []any{"a", "a", "a"}},
		"an anchor of nothing":                               {"a: &x\nb: *x\n", map[string]any{"a": nil, "b": nil}},
		"a merge":                                            {"a: &x {p: 1, q: 2}\nb: {<<: *x, q: 3}\nc: {q: 3, <<: *x}\n", map[string]any{"a": map[string]any{"p": int64(1), "q": int64(2)}, "b": map[string]any{"p": int64(1), "q": int64(3)}, "c": map[string]any{"p": int64(1), "q": int64(3)}}},
		"a merge of a list":                                  {"- &x {p: 1}\n- &y {p: 2, q: 2}\n- {<<: [*x, *y], r: 3}\n", []any{map[string]any{"p": int64(1)}, map[string]any{"p": int64(2), "q": int64(2)}, map[string]any{"p": int64(1), "q": int64(2), "r": int64(3)}}},
		"two merges":                                         {"- &x {p: 1}\n- &y {p: 2, q: 2}\n- {<<: *x, <<: *y}\n", []any{map[string]any{"p": int64(1)}, map[string]any{"p": int64(2), "q": int64(2)}, map[string]any{"p": int64(2), "q": int64(2)}}},
		"a merge of a merge":                                 {"- &x {p: 1}\n- &y {<<: *x, q: 2}\n- {<<: *y}\n", []any{map[string]any{"p": int64(1)}, map[string]any{"p": int64(1), "q": int64(2)}, map[string]any{"p": int64(1), "q": int64(2)}}},
		"a merge of a mapping":                               {"{<<: {a: 1}, b: 2}", map[string]any{"a": int64(1), "b": int64(2)}},
		"a quoted merge is none":                             {"{'<<': {a: 1}}", map[string]any{"<<": map[string]any{"a": int64(1)}}},
		"an equals sign as a key":                            {"{=: 1}", map[string]any{"=": int64(1)}},
		"tags":                                               {"[!!str 1, !!int '1', !!float 1, !!bool 'yes', !!null x, !!str , ! 1, ! '1']", []any{"1", int64(1), 1.0, true, nil, "", int64(1), int64(1)}},
		"a tag in full":                                      {"!<tag:yaml.org,2002:int> '7'", int64(7)},
		"a tag with a handle":                                {"%TAG !e! tag:yaml.org,2002:\n---\n!e!int '7'", int64(7)},
		"a version":                                          {"%YAML 1.2\n--- 010", int64(8)},
		"another directive":                                  {"%FOO bar\n--- a", "a"},
		"binary":                                             {"!!binary aGVs\n  bG8=", Bytes("hello")},
		"a set":                                              {"!!set {b, a}", Set{"b", "a"}},
		"an ordered map":                                     {"!!omap [a: 1, b: 2]", []any{[]any{"a", int64(1)}, []any{"b", int64(2)}}},
		"pairs":                                              {"!!pairs [a: 1, a: 2]", []any{[]any{"a", int64(1)}, []any{"a", int64(2)}}},
		"integers with blanks":                               {"!!int '0o17'", int64(15)},
		"other line breaks":                                  {"a: 1\r\nb: 2\rc: 3\u0085d: '4\u20285'", map[string]any{"a": int64(1), "b": int64(2), "c": int64(3), "d": "4\u20285"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Parse(test.text, limits())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestParse_NotANumber(t *testing.T) {
	for _, text := range []string{".nan", ".NaN", "!!float -.nan"} {
		got, err := Parse(text, limits())
		if f, ok := got.(float64); !ok || !math.IsNaN(f) {
			t.Errorf("%s: got %v, %v", text, got, err)
		}
	}
}

func TestDateAndTimestamp_AsPythonWritesThem(t *testing.T) {
	tests := map[string]struct{ iso, repr string }{
		"2001-02-03":                     {"2001-02-03", "datetime.date(2001, 2, 3)"},
		"2001-02-03 04:05:06":            {"2001-02-03T04:05:06", "datetime.datetime(2001, 2, 3, 4, 5, 6)"},
		"2001-02-03 04:05:00":            {"2001-02-03T04:05:00", "datetime.datetime(2001, 2, 3, 4, 5)"},
		"2001-02-03 04:05:00.5":          {"2001-02-03T04:05:00.500000", "datetime.datetime(2001, 2, 3, 4, 5, 0, 500000)"},
		"2001-02-03 04:05:06.123456789Z": {"2001-02-03T04:05:06.123456+00:00", "datetime.datetime(2001, 2, 3, 4, 5, 6, 123456, tzinfo=datetime.timezone.utc)"},
		"2001-02-03 04:05:06 -5:30":      {"2001-02-03T04:05:06-05:30", "datetime.datetime(2001, 2, 3, 4, 5, 6, tzinfo=datetime.timezone(datetime.timedelta(days=-1, seconds=66600)))"},
		"2001-02-03T04:05:06+14":         {"2001-02-03T04:05:06+14:00", "datetime.datetime(2001, 2, 3, 4, 5, 6, tzinfo=datetime.timezone(datetime.timedelta(seconds=50400)))"},
	}
	for text, want := range tests {
		got, err := Parse(text, limits())
		written, ok := got.(interface {
			String() string
			Repr() string
		})
		if !ok {
			t.Errorf("%s: got %v, %v", text, got, err)
			continue
		}
		if written.String() != want.iso || written.Repr() != want.repr {
			t.Errorf("%s: got %s and %s, want %s and %s", text, written, written.Repr(), want.iso, want.repr)
		}
	}
}

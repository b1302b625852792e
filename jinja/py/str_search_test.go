package py

import "testing"

// TestSearchOfStr compares the search methods of str with the results of python3.
func TestSearchOfStr(t *testing.T) {
	checkCalls(t, map[string]callTest{
		"find counts code points": {self: Str("aéß"), method: "find", args: pos(Str("ß")), want: "2"},
		"find of nothing behind the end fails": {
			self: Str("abc"), method: "find", args: pos(Str(""), NewInt(4)),
			want: "-1",
		},
		"find of nothing at the end succeeds": {
			self: Str("abc"), method: "find", args: pos(Str(""), NewInt(3)),
			want: "3",
		},
		"find with negative bounds": {
			self: Str("abcabc"), method: "find", args: pos(Str("b"), NewInt(-3), NewInt(-1)),
			want: "4",
		},
		"find with bounds larger than any text": {
			self: Str("abc"), method: "find", args: pos(Str("b"), integer("-1180591620717411303424"), integer("1180591620717411303424")),
			want: "1",
		},
		"find takes None for a bound": {
			self: Str("abc"), method: "find", args: pos(Str("b"), None{}, None{}),
			want: "1",
		},
		"find takes True for 1": {self: Str("abc"), method: "find", args: pos(Str("a"), Bool(true)), want: "-1"},
		"find refuses a float for a bound": {
			self: Str("abc"), method: "find", args: pos(Str("b"), Float(1.0)),
			want: "TypeError",
		},
		"find refuses what is no str": {self: Str("abc"), method: "find", args: pos(NewInt(5)), want: "TypeError"},
		"rfind looks from the end":    {self: Str("abab"), method: "rfind", args: pos(Str("ab")), want: "2"},
		"rfind of nothing is the end": {self: Str("abc"), method: "rfind", args: pos(Str("")), want: "3"},
		"index of what is not there":  {self: Str("abc"), method: "index", args: pos(Str("x")), want: "ValueError"},
		"rindex of what is there":     {self: Str("abcb"), method: "rindex", args: pos(Str("b")), want: "3"},
		"count does not overlap":      {self: Str("aaaa"), method: "count", args: pos(Str("aa")), want: "2"},
		"count of nothing is one more than code points": {
			self: Str("éé"), method: "count", args: pos(Str("")),
			want: "3",
		},
		"count of nothing behind the end": {
			self: Str("abc"), method: "count", args: pos(Str(""), NewInt(4)),
			want: "0",
		},
		"startswith any of a tuple": {
			self: Str("abc"), method: "startswith", args: pos(tupleOf(Str("x"), Str("ab"))),
			want: "True",
		},
		"startswith looks at a tuple only as far as it must": {
			self: Str("abc"), method: "startswith", args: pos(tupleOf(Str("a"), NewInt(5))),
			want: "True",
		},
		"startswith refuses a list": {
			self: Str("abc"), method: "startswith", args: pos(listOf(Str("a"))),
			want: "TypeError",
		},
		"startswith nothing behind the end": {
			self: Str("abc"), method: "startswith", args: pos(Str(""), NewInt(4)),
			want: "False",
		},
		"endswith within bounds": {
			self: Str("abcd"), method: "endswith", args: pos(Str("c"), NewInt(0), NewInt(3)),
			want: "True",
		},
		"partition at the first": {
			self: Str("a-b-c"), method: "partition", args: pos(Str("-")),
			want: "('a', '-', 'b-c')",
		},
		"rpartition at the last": {
			self: Str("a-b-c"), method: "rpartition", args: pos(Str("-")),
			want: "('a-b', '-', 'c')",
		},
		"partition without the separator": {
			self: Str("abc"), method: "partition", args: pos(Str("-")),
			want: "('abc', '', '')",
		},
		"rpartition without the separator": {
			self: Str("abc"), method: "rpartition", args: pos(Str("-")),
			want: "('', '', 'abc')",
		},
		"partition gives the separator that it was given": {
			self: Str("a-b"), method: "partition", args: pos(Markup("-")),
			want: "('a', Markup('-'), 'b')",
		},
		"partition by nothing": {self: Str("abc"), method: "partition", args: pos(Str("")), want: "ValueError"},
		"replace all":          {self: Str("banana"), method: "replace", args: pos(Str("a"), Str("o")), want: "'bonono'"},
		"replace the first": {
			self: Str("banana"), method: "replace", args: pos(Str("a"), Str("o"), NewInt(1)),
			want: "'bonana'",
		},
		"replace none": {
			self: Str("banana"), method: "replace", args: pos(Str("a"), Str("o"), NewInt(0)),
			want: "'banana'",
		},
		"replace nothing goes between all code points": {
			self: Str("éa"), method: "replace", args: pos(Str(""), Str("-")),
			want: "'-é-a-'",
		},
		"replace nothing in nothing": {self: Str(""), method: "replace", args: pos(Str(""), Str("x")), want: "'x'"},
		"replace with a count too large for C": {
			self: Str("aa"), method: "replace", args: pos(Str("a"), Str("b"), integer("1180591620717411303424")),
			want: "OverflowError",
		},
		"replace takes no names": {
			self: Str("aa"), method: "replace", args: Args{Pos: []Value{Str("a")}, Named: []NamedArg{{Name: "new", Value: Str("b")}}},
			want: "TypeError",
		},
		"replace with what is undefined": {
			self: Str("aa"), method: "replace", args: pos(Str("a"), missingName),
			want: "TypeError",
		},
		"removeprefix":            {self: Str("pre-x"), method: "removeprefix", args: pos(Str("pre-")), want: "'x'"},
		"removesuffix":            {self: Str("x.txt"), method: "removesuffix", args: pos(Str(".txt")), want: "'x'"},
		"removesuffix of nothing": {self: Str("x"), method: "removesuffix", args: pos(Str("")), want: "'x'"},
		"split at white space":    {self: Str(" a\x1cb\u2003c\n"), method: "split", want: "['a', 'b', 'c']"},
		"split at white space once": {
			self: Str("  a  b  c "), method: "split", args: pos(None{}, NewInt(1)),
			want: "['a', 'b  c ']",
		},
		"split at white space never": {
			self: Str("  a b "), method: "split", args: pos(None{}, NewInt(0)),
			want: "['a b ']",
		},
		"split by a separator": {self: Str("a,,b"), method: "split", args: pos(Str(",")), want: "['a', '', 'b']"},
		"split by name": {
			self: Str("a,b,c"), method: "split", args: Args{Named: []NamedArg{{Name: "sep", Value: Str(",")}, {Name: "maxsplit", Value: NewInt(1)}}},
			want: "['a', 'b,c']",
		},
		"split nothing at white space": {self: Str(""), method: "split", want: "[]"},
		"split nothing by a separator": {self: Str(""), method: "split", args: pos(Str(",")), want: "['']"},
		"split by nothing":             {self: Str("a"), method: "split", args: pos(Str("")), want: "ValueError"},
		"split by a number":            {self: Str("a"), method: "split", args: pos(NewInt(5)), want: "TypeError"},
		"split by an argument that there is not": {
			self: Str("a"), method: "split", args: Args{Named: []NamedArg{{Name: "by", Value: Str(",")}}},
			want: "TypeError",
		},
		"split with an argument twice": {
			self: Str("a"), method: "split", args: Args{Pos: []Value{Str(",")}, Named: []NamedArg{{Name: "sep", Value: Str(",")}}},
			want: "TypeError",
		},
		"rsplit from the right": {
			self: Str("a,b,c"), method: "rsplit", args: pos(Str(","), NewInt(1)),
			want: "['a,b', 'c']",
		},
		"rsplit at white space once": {
			self: Str(" a  b  c "), method: "rsplit", args: pos(None{}, NewInt(1)),
			want: "[' a  b', 'c']",
		},
		"splitlines at every line break": {
			self: Str("a\nb\r\nc\rd\x0be\x0cf\x1cg\x1dh\x1ei\u0085j\u2028k\u2029l\x1fm"), method: "splitlines",
			want: `['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'l\x1fm']`,
		},
		"splitlines with their ends": {
			self: Str("a\r\nb\n"), method: "splitlines", args: pos(Bool(true)),
			want: `['a\r\n', 'b\n']`,
		},
		"splitlines by name": {
			self: Str("a\n\nb"), method: "splitlines", args: Args{Named: []NamedArg{{Name: "keepends", Value: NewInt(1)}}},
			want: `['a\n', '\n', 'b']`,
		},
		"splitlines refuses None":    {self: Str("a"), method: "splitlines", args: pos(None{}), want: "TypeError"},
		"strip white space":          {self: Str("\x1f\u00a0 a \u3000"), method: "strip", want: "'a'"},
		"strip characters":           {self: Str("xyaxy"), method: "strip", args: pos(Str("yx")), want: "'a'"},
		"lstrip characters":          {self: Str("xyaxy"), method: "lstrip", args: pos(Str("xy")), want: "'axy'"},
		"rstrip None is white space": {self: Str(" a "), method: "rstrip", args: pos(None{}), want: "' a'"},
		"strip a number":             {self: Str("a"), method: "strip", args: pos(NewInt(5)), want: "TypeError"},
		"join texts":                 {self: Str("-"), method: "join", args: pos(listOf(Str("a"), Str("b"))), want: "'a-b'"},
		"join the keys of a dictionary": {
			self: Str(","), method: "join", args: pos(dictOf(Str("a"), NewInt(1), Str("b"), NewInt(2))),
			want: "'a,b'",
		},
		"join code points":       {self: Str("-"), method: "join", args: pos(Str("aéb")), want: "'a-é-b'"},
		"join what is undefined": {self: Str("-"), method: "join", args: pos(missingName), want: "''"},
		"join numbers":           {self: Str("-"), method: "join", args: pos(listOf(NewInt(1))), want: "TypeError"},
		"join a number":          {self: Str("-"), method: "join", args: pos(NewInt(5)), want: "TypeError"},
	})
}

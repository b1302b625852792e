package py

import "testing"

// TestTextOfStr compares the methods of str that handle a whole text with the results of python3.
func TestTextOfStr(t *testing.T) {
	checkCalls(t, map[string]callTest{
		"center puts more to the left in an odd width": {
			self: Str("ab"), method: "center", args: pos(NewInt(5)),
			want: "'  ab '",
		},
		"center puts more to the right in an even width": {
			self: Str("abc"), method: "center", args: pos(NewInt(6)),
			want: "' abc  '",
		},
		"center with a character": {self: Str("é"), method: "center", args: pos(NewInt(4), Str("ß")), want: "'ßéßß'"},
		"center refuses two characters": {
			self: Str("a"), method: "center", args: pos(NewInt(4), Str("ab")),
			want: "TypeError",
		},
		"center refuses a float": {self: Str("a"), method: "center", args: pos(Float(4.0)), want: "TypeError"},
		"center refuses what is too large for C": {
			self: Str("a"), method: "center", args: pos(integer("1180591620717411303424")),
			want: "OverflowError",
		},
		"ljust":                    {self: Str("é"), method: "ljust", args: pos(NewInt(3), Str(".")), want: "'é..'"},
		"rjust":                    {self: Str("é"), method: "rjust", args: pos(NewInt(3)), want: "'  é'"},
		"ljust with a small width": {self: Str("abc"), method: "ljust", args: pos(NewInt(-5)), want: "'abc'"},
		"zfill goes behind a sign": {self: Str("-7"), method: "zfill", args: pos(NewInt(4)), want: "'-007'"},
		"zfill knows no other sign": {
			self: Str("\u22127"), method: "zfill", args: pos(NewInt(4)),
			want: "'00\u22127'",
		},
		"expandtabs counts code points from the line": {
			self: Str("é\tb\n\tc"), method: "expandtabs", args: pos(NewInt(4)),
			want: "'é   b\\n    c'",
		},
		"expandtabs by name": {
			self: Str("a\tb"), method: "expandtabs", args: Args{Named: []NamedArg{{Name: "tabsize", Value: NewInt(2)}}},
			want: "'a b'",
		},
		"expandtabs to nothing": {self: Str("a\tb"), method: "expandtabs", args: pos(NewInt(0)), want: "'ab'"},
		"translate by number": {
			self: Str("abc"), method: "translate", args: pos(dictOf(NewInt(97), Str("A"), NewInt(98), None{}, NewInt(99), NewInt(128512))),
			want: "'A\U0001f600'",
		},
		"translate by a text": {self: Str("\x00\x01z"), method: "translate", args: pos(Str("xy")), want: "'xyz'"},
		"translate to a number that is no character": {
			self: Str("a"), method: "translate", args: pos(dictOf(NewInt(97), NewInt(-1))),
			want: "ValueError",
		},
		"translate to a float": {
			self: Str("a"), method: "translate", args: pos(dictOf(NewInt(97), Float(1.0))),
			want: "TypeError",
		},
		"translate by None":         {self: Str("a"), method: "translate", args: pos(None{}), want: "TypeError"},
		"translate nothing by None": {self: Str(""), method: "translate", args: pos(None{}), want: "''"},
		"maketrans of a dictionary": {
			self: Str(""), method: "maketrans", args: pos(dictOf(Str("a"), Str("b"), NewInt(99), None{})),
			want: "{97: 'b', 99: None}",
		},
		"maketrans of texts": {
			self: Str(""), method: "maketrans", args: pos(Str("ab"), Str("cd"), Str("x")),
			want: "{97: 99, 98: 100, 120: None}",
		},
		"maketrans of texts of different length": {
			self: Str(""), method: "maketrans", args: pos(Str("ab"), Str("c")),
			want: "ValueError",
		},
		"maketrans looks at types before lengths": {
			self: Str(""), method: "maketrans", args: pos(Str("ab"), Str("c"), Float(1.0)),
			want: "TypeError",
		},
		"maketrans of a long key": {
			self: Str(""), method: "maketrans", args: pos(dictOf(Str("ab"), NewInt(1))),
			want: "ValueError",
		},
		"upper can be longer":              {self: Str("ß\ufb01ŉΐ"), method: "upper", want: "'SSFIʼNΙ\u0308\u0301'"},
		"lower of a dotted capital":        {self: Str("İ"), method: "lower", want: "'i\u0307'"},
		"lower of a final sigma":           {self: Str("ΑΣ ΣΑ Σ ΑΣ.Α Α.Σ"), method: "lower", want: "'ας σα σ ασ.α α.ς'"},
		"title of digraphs":                {self: Str("ǆ ǅabc \ufb01x"), method: "title", want: "'ǅ ǅabc Fix'"},
		"title restarts at every mark":     {self: Str("they're bill's"), method: "title", want: `"They'Re Bill'S"`},
		"capitalize lowers the rest":       {self: Str("ǄΣ"), method: "capitalize", want: "'ǅς'"},
		"swapcase":                         {self: Str("aBßΣǅ"), method: "swapcase", want: "'AbSSσǅ'"},
		"casefold goes further than lower": {self: Str("ßΣςᏸ\uab70µſ"), method: "casefold", want: "'ssσσᏰᎠμs'"},
		"isupper wants one capital":        {self: Str("1 A"), method: "isupper", want: "True"},
		"isupper without letters":          {self: Str("1"), method: "isupper", want: "False"},
		"isupper with title case":          {self: Str("Aǅ"), method: "isupper", want: "False"},
		"islower":                          {self: Str("ªa1"), method: "islower", want: "True"},
		"istitle":                          {self: Str("Ab Cd"), method: "istitle", want: "True"},
		"istitle with a capital inside":    {self: Str("AbC"), method: "istitle", want: "False"},
		"isdecimal of another script":      {self: Str("٣"), method: "isdecimal", want: "True"},
		"isdigit of a superscript":         {self: Str("²"), method: "isdigit", want: "True"},
		"isdecimal of a superscript":       {self: Str("²"), method: "isdecimal", want: "False"},
		"isnumeric of a fraction":          {self: Str("½\u4e00"), method: "isnumeric", want: "True"},
		"isalnum of a fraction":            {self: Str("a½"), method: "isalnum", want: "True"},
		"isalpha of nothing":               {self: Str(""), method: "isalpha", want: "False"},
		"isascii of nothing":               {self: Str(""), method: "isascii", want: "True"},
		"isprintable of nothing":           {self: Str(""), method: "isprintable", want: "True"},
		"isprintable of a soft hyphen":     {self: Str("\u00ad"), method: "isprintable", want: "False"},
		"isspace of a separator":           {self: Str("\x1c\u2029"), method: "isspace", want: "True"},
		"isidentifier":                     {self: Str("_aé1"), method: "isidentifier", want: "True"},
		"isidentifier of a keyword":        {self: Str("for"), method: "isidentifier", want: "True"},
		"isidentifier of a digit":          {self: Str("1a"), method: "isidentifier", want: "False"},
		"encode":                           {self: Str("é"), method: "encode", want: `b'\xc3\xa9'`},
		"encode by name": {
			self: Str("é"), method: "encode", args: Args{Named: []NamedArg{{Name: "encoding", Value: Str("latin-1")}}},
			want: `b'\xe9'`,
		},
		"encode to an alias": {self: Str("a"), method: "encode", args: pos(Str("US-ASCII")), want: "b'a'"},
		"encode with a replacement": {
			self: Str("aé\U0001f600"), method: "encode", args: pos(Str("ascii"), Str("replace")),
			want: "b'a??'",
		},
		"encode with references": {
			self: Str("é\U0001f600"), method: "encode", args: pos(Str("ascii"), Str("xmlcharrefreplace")),
			want: "b'&#233;&#128512;'",
		},
		"encode with backslashes": {
			self: Str("é\u4e2d\U0001f600"), method: "encode", args: pos(Str("ascii"), Str("backslashreplace")),
			want: `b'\\xe9\\u4e2d\\U0001f600'`,
		},
		"encode what cannot be": {
			self: Str("é"), method: "encode", args: pos(Str("ascii")),
			want: "UnicodeEncodeError",
		},
		"encode with an unknown handler": {
			self: Str("é"), method: "encode", args: pos(Str("ascii"), Str("none")),
			want: "LookupError",
		},
		"encode with an unknown handler that is not needed": {
			self: Str("a"), method: "encode", args: pos(Str("ascii"), Str("none")),
			want: "b'a'",
		},
		"encode in an unknown encoding": {
			self: Str("a"), method: "encode", args: pos(Str("none")),
			want: "LookupError",
		},
		"encode in a name that ends early": {
			self: Str("a"), method: "encode", args: pos(Str("utf-8\x00")),
			want: "ValueError",
		},
		"encode marked and wide": {
			self: Str("a\U0001f600"), method: "encode", args: pos(Str("utf-16")),
			want: `b'\xff\xfea\x00=\xd8\x00\xde'`,
		},
		"encode wide":   {self: Str("a"), method: "encode", args: pos(Str("utf_32_be")), want: `b'\x00\x00\x00a'`},
		"encode signed": {self: Str("a"), method: "encode", args: pos(Str("utf-8-sig")), want: `b'\xef\xbb\xbfa'`},
	})
}

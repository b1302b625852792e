package py

import (
	"math"
	"testing"
)

// TestMethods compares the methods of types other than str with the results of python3 in the sandbox of Jinja.
func TestMethods(t *testing.T) {
	checkCalls(t, map[string]callTest{
		"pop takes the last away": {self: listOf(NewInt(1), NewInt(2)), method: "pop", want: "2"},
		"pop by position":         {self: listOf(NewInt(1), NewInt(2)), method: "pop", args: pos(NewInt(0)), want: "1"},
		"pop from nothing":        {self: listOf(), method: "pop", want: "IndexError"},
		"pop of None":             {self: listOf(NewInt(1)), method: "pop", args: pos(None{}), want: "TypeError"},
		"clear":                   {self: listOf(NewInt(1)), method: "clear", want: "None"},
		"copy of a list":          {self: listOf(NewInt(1), listOf(NewInt(2))), method: "copy", want: "[1, [2]]"},
		"count by equality": {
			self: listOf(NewInt(1), Bool(true), Float(1.0), Str("1")), method: "count", args: pos(NewInt(1)),
			want: "3",
		},
		"index from a position": {
			self: listOf(NewInt(1), NewInt(2), NewInt(1)), method: "index", args: pos(NewInt(1), NewInt(1)),
			want: "2",
		},
		"index before a position": {
			self: listOf(NewInt(1), NewInt(2), NewInt(1)), method: "index", args: pos(NewInt(2), NewInt(0), NewInt(1)),
			want: "ValueError",
		},
		"index of what is not there": {
			self: listOf(NewInt(1)), method: "index", args: pos(NewInt(2)),
			want: "ValueError",
		},
		"index refuses None for a position": {
			self: listOf(NewInt(1)), method: "index", args: pos(NewInt(1), None{}),
			want: "TypeError",
		},
		"index in a tuple from the end": {
			self: tupleOf(NewInt(1), NewInt(2), NewInt(1)), method: "index", args: pos(NewInt(1), NewInt(-1)),
			want: "2",
		},
		"append is refused": {self: listOf(NewInt(1)), method: "append", args: pos(NewInt(2)), want: "SecurityError"},
		"get":               {self: dictOf(Str("a"), NewInt(1)), method: "get", args: pos(Str("a")), want: "1"},
		"get by a number that is equal": {
			self: dictOf(NewInt(1), Str("x")), method: "get", args: pos(Float(1.0)),
			want: "'x'",
		},
		"get of what is not there": {self: dictOf(), method: "get", args: pos(Str("a")), want: "None"},
		"get with a default":       {self: dictOf(), method: "get", args: pos(Str("a"), NewInt(5)), want: "5"},
		"get takes no names": {
			self: dictOf(), method: "get", args: Args{Pos: []Value{Str("a")}, Named: []NamedArg{{Name: "default", Value: NewInt(5)}}},
			want: "TypeError",
		},
		"get of a list":            {self: dictOf(), method: "get", args: pos(listOf()), want: "TypeError"},
		"get of what is undefined": {self: dictOf(), method: "get", args: pos(missingName), want: "None"},
		"keys":                     {self: dictOf(Str("a"), NewInt(1)), method: "keys", want: "dict_keys(['a'])"},
		"values":                   {self: dictOf(Str("a"), NewInt(1)), method: "values", want: "dict_values([1])"},
		"items":                    {self: dictOf(Str("a"), NewInt(1)), method: "items", want: "dict_items([('a', 1)])"},
		"items takes nothing": {
			self: dictOf(Str("a"), NewInt(1)), method: "items", args: pos(NewInt(1)),
			want: "TypeError",
		},
		"copy of a dictionary": {self: dictOf(Str("a"), listOf(NewInt(1))), method: "copy", want: "{'a': [1]}"},
		"fromkeys":             {self: dictOf(), method: "fromkeys", args: pos(Str("aba")), want: "{'a': None, 'b': None}"},
		"fromkeys with a value": {
			self: dictOf(), method: "fromkeys", args: pos(tupleOf(NewInt(1), NewInt(2)), NewInt(0)),
			want: "{1: 0, 2: 0}",
		},
		"fromkeys of lists":               {self: dictOf(), method: "fromkeys", args: pos(listOf(listOf())), want: "TypeError"},
		"update is refused":               {self: dictOf(), method: "update", args: pos(dictOf()), want: "SecurityError"},
		"setdefault is refused":           {self: dictOf(), method: "setdefault", args: pos(NewInt(1)), want: "SecurityError"},
		"bit_length of a negative number": {self: NewInt(-256), method: "bit_length", want: "9"},
		"bit_length of True":              {self: Bool(true), method: "bit_length", want: "1"},
		"bit_count":                       {self: integer("1180591620717411303423"), method: "bit_count", want: "70"},
		"as_integer_ratio of an int":      {self: NewInt(-3), method: "as_integer_ratio", want: "(-3, 1)"},
		"as_integer_ratio of a float":     {self: Float(-0.75), method: "as_integer_ratio", want: "(-3, 4)"},
		"as_integer_ratio of infinity":    {self: Float(math.Inf(1)), method: "as_integer_ratio", want: "OverflowError"},
		"conjugate of True":               {self: Bool(true), method: "conjugate", want: "1"},
		"to_bytes": {
			self: NewInt(1000), method: "to_bytes", args: pos(NewInt(2), Str("little")),
			want: `b'\xe8\x03'`,
		},
		"to_bytes of a small number": {self: NewInt(255), method: "to_bytes", want: `b'\xff'`},
		"to_bytes of a negative number": {
			self: NewInt(-1), method: "to_bytes", args: Args{Pos: []Value{NewInt(2)}, Named: []NamedArg{{Name: "signed", Value: Bool(true)}}},
			want: `b'\xff\xff'`,
		},
		"to_bytes of a negative number without a sign": {
			self: NewInt(-1), method: "to_bytes", args: pos(NewInt(2)),
			want: "OverflowError",
		},
		"to_bytes of too large a number": {self: NewInt(256), method: "to_bytes", want: "OverflowError"},
		"to_bytes of the least that fits": {
			self: NewInt(-128), method: "to_bytes", args: Args{Pos: []Value{NewInt(1)}, Named: []NamedArg{{Name: "signed", Value: Bool(true)}}},
			want: `b'\x80'`,
		},
		"to_bytes of minus one into none": {
			self: NewInt(-1), method: "to_bytes", args: Args{Pos: []Value{NewInt(0)}, Named: []NamedArg{{Name: "signed", Value: Bool(true)}}},
			want: "b''",
		},
		"to_bytes takes signed by name alone": {
			self: NewInt(1), method: "to_bytes", args: pos(NewInt(1), Str("big"), Bool(true)),
			want: "TypeError",
		},
		"to_bytes in no order": {
			self: NewInt(1), method: "to_bytes", args: pos(NewInt(1), Str("middle")),
			want: "ValueError",
		},
		"from_bytes": {
			self: NewInt(0), method: "from_bytes", args: Args{Pos: []Value{Bytes("\xff\x00")}, Named: []NamedArg{{Name: "signed", Value: Bool(true)}}},
			want: "-256",
		},
		"from_bytes of numbers": {
			self: NewInt(0), method: "from_bytes", args: pos(listOf(NewInt(1), NewInt(2)), Str("little")),
			want: "513",
		},
		"from_bytes of a bool":        {self: Bool(true), method: "from_bytes", args: pos(Bytes("\x05")), want: "True"},
		"from_bytes of text":          {self: NewInt(0), method: "from_bytes", args: pos(Str("a")), want: "TypeError"},
		"is_integer":                  {self: Float(2.0), method: "is_integer", want: "True"},
		"is_integer of infinity":      {self: Float(math.Inf(1)), method: "is_integer", want: "False"},
		"hex":                         {self: Float(-0.1), method: "hex", want: "'-0x1.999999999999ap-4'"},
		"hex of the smallest":         {self: Float(5e-324), method: "hex", want: "'0x0.0000000000001p-1022'"},
		"hex of zero":                 {self: Float(0.0), method: "hex", want: "'0x0.0p+0'"},
		"fromhex":                     {self: Float(0.0), method: "fromhex", args: pos(Str(" -0x1.8P+1 ")), want: "-3.0"},
		"fromhex without an exponent": {self: Float(0.0), method: "fromhex", args: pos(Str(".8")), want: "0.5"},
		"fromhex rounds half to even": {
			self: Float(0.0), method: "fromhex", args: pos(Str("0x1.00000000000008p0")),
			want: "1.0",
		},
		"fromhex of too much": {
			self: Float(0.0), method: "fromhex", args: pos(Str("0x1p1024")),
			want: "OverflowError",
		},
		"fromhex of an infinity": {self: Float(0.0), method: "fromhex", args: pos(Str("-Infinity")), want: "-inf"},
		"fromhex of underscores": {self: Float(0.0), method: "fromhex", args: pos(Str("1_0")), want: "ValueError"},
		"index in a range":       {self: &Range{3, 9, 3}, method: "index", args: pos(Float(6.0)), want: "1"},
		"index of what is not in a range": {
			self: &Range{0, 3, 1}, method: "index", args: pos(NewInt(3)),
			want: "ValueError",
		},
		"count in a range":           {self: &Range{0, 3, 1}, method: "count", args: pos(Bool(true)), want: "1"},
		"decode":                     {self: Bytes("\xc3\xa9"), method: "decode", want: "'é'"},
		"decode in another encoding": {self: Bytes("\xe9"), method: "decode", args: pos(Str("latin-1")), want: "'é'"},
		"decode what cannot be":      {self: Bytes("\xe9"), method: "decode", want: "UnicodeDecodeError"},
		"decode replaces as much as could have gone on": {
			self: Bytes("a\xe4\xb8b\xff\xf0\x90\x80"), method: "decode", args: pos(Str("utf-8"), Str("replace")),
			want: "'a\ufffdb\ufffd\ufffd'",
		},
		"decode with backslashes": {
			self: Bytes("\xe9"), method: "decode", args: pos(Str("ascii"), Str("backslashreplace")),
			want: `'\\xe9'`,
		},
		"decode with references": {
			self: Bytes("\xe9"), method: "decode", args: pos(Str("ascii"), Str("xmlcharrefreplace")),
			want: "TypeError",
		},
		"decode nothing in an unknown encoding": {
			self: Bytes(""), method: "decode", args: pos(Str("none")),
			want: "''",
		},
		"decode wide": {
			self: Bytes("\xff\xfea\x00=\xd8\x00\xde"), method: "decode", args: pos(Str("utf-16")),
			want: "'a\U0001f600'",
		},
		"hex of bytes": {self: Bytes("\x01\xab"), method: "hex", want: "'01ab'"},
		"hex of bytes in groups from the right": {
			self: Bytes("abcde"), method: "hex", args: pos(Str(":"), NewInt(2)),
			want: "'61:6263:6465'",
		},
		"hex of bytes in groups from the left": {
			self: Bytes("abcde"), method: "hex", args: pos(Str("-"), NewInt(-2)),
			want: "'6162-6364-65'",
		},
		"fromhex of bytes":       {self: Bytes(""), method: "fromhex", args: pos(Str("0A ff")), want: `b'\n\xff'`},
		"fromhex of half a byte": {self: Bytes(""), method: "fromhex", args: pos(Str("0 A")), want: "ValueError"},
		"split of bytes knows fewer spaces": {
			self: Bytes("a\x1cb\x85c d"), method: "split",
			want: `[b'a\x1cb\x85c', b'd']`,
		},
		"splitlines of bytes knows fewer ends": {
			self: Bytes("a\x0bb\x0ac"), method: "splitlines",
			want: `[b'a\x0bb', b'c']`,
		},
		"upper of bytes":               {self: Bytes("a\xe9"), method: "upper", want: `b'A\xe9'`},
		"find of a byte by its number": {self: Bytes("abc"), method: "find", args: pos(NewInt(98)), want: "1"},
		"find of too large a number": {
			self: Bytes("abc"), method: "find", args: pos(NewInt(256)),
			want: "ValueError",
		},
		"find of text in bytes": {self: Bytes("abc"), method: "find", args: pos(Str("a")), want: "TypeError"},
		"replace in bytes": {
			self: Bytes("abc"), method: "replace", args: pos(Bytes("b"), Bytes("\xff")),
			want: `b'a\xffc'`,
		},
		"join of bytes": {
			self: Bytes(","), method: "join", args: pos(listOf(Bytes("a"), Bytes("b"))),
			want: "b'a,b'",
		},
		"join of text by bytes": {self: Bytes(","), method: "join", args: pos(listOf(Str("a"))), want: "TypeError"},
		"center of bytes": {
			self: Bytes("a"), method: "center", args: pos(NewInt(4), Bytes("\xff")),
			want: `b'\xffa\xff\xff'`,
		},
		"translate of bytes": {
			self: Bytes("abc"), method: "translate", args: Args{Pos: []Value{None{}}, Named: []NamedArg{{Name: "delete", Value: Bytes("b")}}},
			want: "b'ac'",
		},
		"maketrans of bytes of different length": {
			self: Bytes(""), method: "maketrans", args: pos(Bytes("a"), Bytes("")),
			want: "ValueError",
		},
	})
}

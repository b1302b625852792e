package py

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestParseInt compares int(text, base) with the results of python3.
func TestParseInt(t *testing.T) {
	tests := map[string]struct {
		text string
		base int
		want string
	}{
		"a number":                       {"12", 10, "12"},
		"a sign and spaces":              {" +12\n", 10, "12"},
		"a sign before spaces":           {"- 12", 10, "ValueError"},
		"two signs":                      {"+-1", 10, "ValueError"},
		"underscores":                    {"1_000", 10, "1000"},
		"two underscores":                {"1__0", 10, "ValueError"},
		"an underscore at the end":       {"1_", 10, "ValueError"},
		"an underscore at the beginning": {"_1", 10, "ValueError"},
		"digits of another script":       {"٣", 10, "3"},
		"wide digits":                    {"１２", 10, "12"},
		"mathematical digits":            {"𝟘𝟙𝟡𝟚", 10, "192"},
		"spaces of other scripts":        {"\u2003 7\u3000", 10, "7"},
		"a separator of information":     {"\x1c5", 10, "ValueError"},
		"a hexadecimal number":           {"ff", 16, "255"},
		"with its prefix":                {"-0xFF", 16, "-255"},
		"with an underscore behind it":   {"0x_f", 16, "15"},
		"with two":                       {"0x__f", 16, "ValueError"},
		"a prefix alone":                 {"0x", 16, "ValueError"},
		"the prefix of another base":     {"0x1", 8, "ValueError"},
		"a prefix that is digits":        {"0b1", 16, "177"},
		"any base by prefix":             {"0o17", 0, "15"},
		"binary":                         {"0b101", 0, "5"},
		"decimal":                        {"19", 0, "19"},
		"a zero at the beginning":        {"019", 0, "ValueError"},
		"zeros":                          {"0_0", 0, "0"},
		"zeros of a base":                {"007", 8, "7"},
		"the largest base":               {"Zz", 36, "1295"},
		"a digit beyond the base":        {"12", 2, "ValueError"},
		"a base too large":               {"1", 37, "ValueError"},
		"a base too small":               {"1", 1, "ValueError"},
		"nothing":                        {"", 10, "ValueError"},
		"a float":                        {"1.5", 10, "ValueError"},
		"a letter":                       {"ⅷ", 10, "ValueError"},
		"a null":                         {"1\x00", 10, "ValueError"},
		"a large number":                 {"999999999999999999999999999999", 10, "999999999999999999999999999999"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b := ample(t)
			got, err := ParseInt(b, test.text, test.base)
			if diff := cmp.Diff(test.want, outcome(t, b, got, err)); diff != "" {
				t.Errorf("int(%q, %d) (-want +got):\n%s", test.text, test.base, diff)
			}
		})
	}
}

// TestManyDigits checks that conversions between integers and text are limited to 4300 decimal digits.
func TestManyDigits(t *testing.T) {
	b := NewBudget(t.Context(), ample(t).Limits)
	b.Limits.Digits = maxDigits
	most := strings.Repeat("9", maxDigits)
	n, err := ParseInt(b, most, 10)
	if diff := cmp.Diff(most, outcome(t, b, n, err)); diff != "" {
		t.Errorf("as many as there may be (-want +got):\n%s", diff)
	}
	n, err = ParseInt(b, most+"9", 10)
	if diff := cmp.Diff("ValueError", outcome(t, b, n, err)); diff != "" {
		t.Errorf("one more (-want +got):\n%s", diff)
	}
	power, err := Binary(b, OpPow, NewInt(10), NewInt(maxDigits))
	if err != nil {
		t.Fatal(err)
	}
	_, err = Repr(b, power)
	if diff := cmp.Diff("ValueError", outcome(t, b, None{}, err)); diff != "" {
		t.Errorf("the text of a larger integer (-want +got):\n%s", diff)
	}
}

func TestParseFloat(t *testing.T) {
	tests := map[string]struct{ text, want string }{
		"a number":                     {"1.5", "1.5"},
		"a whole number":               {"12", "12.0"},
		"no digits before the point":   {".5", "0.5"},
		"no digits behind the point":   {"5.", "5.0"},
		"a point alone":                {".", "ValueError"},
		"an exponent":                  {"1E+5", "100000.0"},
		"an exponent without digits":   {"1e", "ValueError"},
		"an exponent alone":            {"e5", "ValueError"},
		"underscores":                  {"1_0.2_5e1_0", "102500000000.0"},
		"an underscore at a point":     {"1_.5", "ValueError"},
		"an underscore behind a point": {"1._5", "ValueError"},
		"infinity":                     {"-Infinity", "-inf"},
		"inf":                          {"+iNf", "inf"},
		"half of infinity":             {"infi", "ValueError"},
		"no number":                    {"nan", "nan"},
		"no number with a sign":        {"-nan", "nan"},
		"too large":                    {"1e400", "inf"},
		"too small":                    {"-1e-400", "-0.0"},
		"hexadecimal":                  {"0x10", "ValueError"},
		"digits of another script":     {"١.٥", "1.5"},
		"spaces":                       {"\u3000 1.5\n", "1.5"},
		"a separator of information":   {"1.5\x1f", "ValueError"},
		"a null":                       {"1\x00", "ValueError"},
		"nothing":                      {"", "ValueError"},
		"two signs":                    {"--1", "ValueError"},
		"spaces in between":            {"1 2", "ValueError"},
		"the nearest":                  {"0.1000000000000000055511151231257827021181583404541015625000001", "0.1"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := ParseFloat(test.text)
			if diff := cmp.Diff(test.want, outcome(t, ample(t), got, err)); diff != "" {
				t.Errorf("float(%q) (-want +got):\n%s", test.text, diff)
			}
		})
	}
}

func TestFloatText(t *testing.T) {
	for f, want := range map[float64]string{
		1.0:                     "1.0",
		0.1:                     "0.1",
		1000000000000000.0:      "1000000000000000.0",
		1e+16:                   "1e+16",
		1.2345678901234568e+17:  "1.2345678901234568e+17",
		1e+22:                   "1e+22",
		0.0001:                  "0.0001",
		1e-05:                   "1e-05",
		1.5e-07:                 "1.5e-07",
		5e-324:                  "5e-324",
		1.7976931348623157e+308: "1.7976931348623157e+308",
		0.3333333333333333:      "0.3333333333333333",
		-2.5:                    "-2.5",
		math.Copysign(0, -1):    "-0.0",
	} {
		if want == "-0.0" && !math.Signbit(f) {
			want = "0.0"
		}
		if got := FloatText(f); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestConversions(t *testing.T) {
	toInt := func(b *Budget, v Value) (Value, error) { return ToInt(b, v) }
	toFloat := func(b *Budget, v Value) (Value, error) { return ToFloat(b, v) }
	tests := map[string]struct {
		to   func(b *Budget, v Value) (Value, error)
		v    Value
		want string
	}{
		"int of a float":             {toInt, Float(-2.9), "-2"},
		"int of a large float":       {toInt, Float(1e+20), "100000000000000000000"},
		"int of infinity":            {toInt, Float(math.Inf(1)), "OverflowError"},
		"int of no number":           {toInt, Float(math.NaN()), "ValueError"},
		"int of true":                {toInt, Bool(true), "1"},
		"int of bytes":               {toInt, Bytes(" 12"), "12"},
		"int of markup":              {toInt, Markup("7"), "7"},
		"int of a list":              {toInt, listOf(), "TypeError"},
		"int of None":                {toInt, None{}, "TypeError"},
		"int of what is undefined":   {toInt, missingName, "UndefinedError"},
		"float of an integer":        {toFloat, NewInt(9007199254740993), "9007199254740992.0"},
		"float of a large integer":   {toFloat, tenTo(400), "OverflowError"},
		"float of true":              {toFloat, Bool(true), "1.0"},
		"float of text":              {toFloat, Str("1e3"), "1000.0"},
		"float of no number in text": {toFloat, Str("x"), "ValueError"},
		"float of a list":            {toFloat, listOf(), "TypeError"},
		"float of what is undefined": {toFloat, missingName, "UndefinedError"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b := ample(t)
			got, err := test.to(b, test.v)
			if diff := cmp.Diff(test.want, outcome(t, b, got, err)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

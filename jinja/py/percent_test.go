package py

import (
	"math"
	"math/big"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPercentFormat compares format % args with the results of python3 and markupsafe.
func TestPercentFormat(t *testing.T) {
	tests := map[string]struct {
		format, args Value
		want         string
	}{
		"a single argument": {Str("%s"), NewInt(5), "'5'"},
		"several arguments": {Str("%s-%s"), tupleOf(NewInt(1), Str("a")), "'1-a'"},
		"a percent sign":    {Str("%%"), tupleOf(), "'%'"},
		"a percent sign with a width is no percent sign": {Str("%5%"), tupleOf(), "TypeError"},
		"a tuple in a tuple":                             {Str("%s"), tupleOf(tupleOf()), "'()'"},
		"a list is one argument":                         {Str("%s"), listOf(NewInt(1), NewInt(2)), "'[1, 2]'"},
		"too few arguments":                              {Str("%s %s"), tupleOf(NewInt(1)), "TypeError"},
		"too many arguments":                             {Str("%s"), tupleOf(NewInt(1), NewInt(2)), "TypeError"},
		"an argument for nothing":                        {Str("a"), NewInt(1), "TypeError"},
		"a list for nothing":                             {Str("a"), listOf(NewInt(1)), "'a'"},
		"a dictionary for nothing":                       {Str("a"), dictOf(), "'a'"},
		"what is undefined for nothing":                  {Str("a"), missingName, "'a'"},
		"a text for nothing":                             {Str("a"), Str(""), "TypeError"},
		"a name":                                         {Str("%(a)s"), dictOf(Str("a"), NewInt(1)), "'1'"},
		"a name with parentheses":                        {Str("%(a(b))s"), dictOf(Str("a(b)"), NewInt(1)), "'1'"},
		"a name that there is not":                       {Str("%(b)s"), dictOf(Str("a"), NewInt(1)), "KeyError"},
		"a name without an end":                          {Str("%(a"), dictOf(), "ValueError"},
		"a name of what has none":                        {Str("%(a)s"), NewInt(1), "TypeError"},
		"a name of a list":                               {Str("%(a)s"), listOf(NewInt(1)), "TypeError"},
		"a name before a percent sign":                   {Str("%(a)%"), dictOf(Str("a"), NewInt(1)), "ValueError"},
		"a name and then none":                           {Str("%(a)s %s"), dictOf(Str("a"), NewInt(1)), "TypeError"},
		"none and then a name":                           {Str("%s %(a)s"), dictOf(Str("a"), NewInt(1)), `"{'a': 1} 1"`},
		"a name of what is undefined":                    {Str("%(a)s"), missingName, "UndefinedError"},
		"a number with zeros":                            {Str("%05d"), NewInt(-42), "'-0042'"},
		"a number with a precision":                      {Str("%.3d"), NewInt(-5), "'-005'"},
		"a number with both":                             {Str("%08.3d"), NewInt(-5), "'-0000005'"},
		"a number to the left":                           {Str("%-5d|"), NewInt(42), "'42   |'"},
		"zeros to the left":                              {Str("%-05d|"), NewInt(42), "'42   |'"},
		"a number with a sign":                           {Str("%+d % d %+ d"), tupleOf(NewInt(1), NewInt(2), NewInt(3)), "'+1  2 +3'"},
		"a negative number with a blank":                 {Str("% d"), NewInt(-5), "'-5'"},
		"a float as a number":                            {Str("%d"), Float(-1.9), "'-1'"},
		"infinity as a number":                           {Str("%d"), Float(math.Inf(1)), "OverflowError"},
		"no number as a number":                          {Str("%d"), Float(math.NaN()), "ValueError"},
		"text as a number":                               {Str("%d"), Str("5"), "TypeError"},
		"None as a number":                               {Str("%i"), None{}, "TypeError"},
		"True as a number":                               {Str("%d"), Bool(true), "'1'"},
		"what is undefined as a number":                  {Str("%d"), missingName, "UndefinedError"},
		"a large number":                                 {Str("%d"), integer("-1180591620717411303424"), "'-1180591620717411303424'"},
		"a number with too many digits": {
			Str("%d"), NewBigInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(4300), nil)),
			"ValueError",
		},
		"hexadecimal": {
			Str("%x %X %#x %#X"), tupleOf(NewInt(255), NewInt(255), NewInt(255), NewInt(255)),
			"'ff FF 0xff 0XFF'",
		},
		"hexadecimal with zeros":           {Str("%#08x"), NewInt(-255), "'-0x000ff'"},
		"hexadecimal with a precision":     {Str("%#.5x"), NewInt(-255), "'-0x000ff'"},
		"hexadecimal to the left":          {Str("%#-8x|"), NewInt(255), "'0xff    |'"},
		"hexadecimal of a float":           {Str("%x"), Float(1.0), "TypeError"},
		"hexadecimal of what is undefined": {Str("%x"), missingName, "TypeError"},
		"octal":                            {Str("%o %#o"), tupleOf(NewInt(8), NewInt(-8)), "'10 -0o10'"},
		"floats": {
			Str("%f %.1f %5.1f|%-7.2f|%+f"), tupleOf(Float(1.5), Float(0.25), Float(2.35), Float(1.0), NewInt(2)),
			"'1.500000 0.2   2.4|1.00   |+2.000000'",
		},
		"floats with zeros": {Str("%08.2f"), Float(-1.5), "'-0001.50'"},
		"floats that are not finite": {
			Str("%f %F %08.1f"), tupleOf(Float(math.Inf(1)), Float(math.NaN()), Float(math.Inf(-1))),
			"'inf NAN -0000inf'",
		},
		"floats with an exponent": {
			Str("%e %E %.0e %#.0e"), tupleOf(Float(12345.678), Float(0.0001), Float(5.5), Float(5.5)),
			"'1.234568e+04 1.000000E-04 6e+00 6.e+00'",
		},
		"floats in general": {
			Str("%g %g %g %G %#g %.3g"), tupleOf(Float(1000000.0), Float(1e-05), Float(100000.0), Float(1e-10), Float(5.0), NewInt(1234567)),
			"'1e+06 1e-05 100000 1E-10 5.00000 1.23e+06'",
		},
		"a large number as a float": {
			Str("%f"), integer("10000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"),
			"OverflowError",
		},
		"text as a float":              {Str("%f"), Str("1"), "TypeError"},
		"what is undefined as a float": {Str("%f"), missingName, "UndefinedError"},
		"a character":                  {Str("%c%c%c"), tupleOf(Str("é"), NewInt(97), Bool(true)), "'éa\\x01'"},
		"a character that is none":     {Str("%c"), NewInt(-1), "OverflowError"},
		"two characters":               {Str("%c"), Str("ab"), "TypeError"},
		"a character of a float":       {Str("%c"), Float(1.0), "TypeError"},
		"a character in a width":       {Str("%5c|%-3c|"), tupleOf(Str("a"), Str("b")), "'    a|b  |'"},
		"representations": {
			Str("%r %a"), tupleOf(Str("é'"), Str("é\U0001f600")),
			"'\"é\\'\" \\'\\\\xe9\\\\U0001f600\\''",
		},
		"a precision of text": {Str("%.2s|%5.1s|"), tupleOf(Str("éßa"), Str("ab")), "'éß|    a|'"},
		"what is undefined":   {Str("[%s] %r"), tupleOf(missingName, missingName), "'[] Undefined'"},
		"a width from an argument": {
			Str("%*d|%-*d|"), tupleOf(NewInt(4), NewInt(1), NewInt(-3), NewInt(2)),
			"'   1|2  |'",
		},
		"a negative width from an argument":        {Str("%*d|"), tupleOf(NewInt(-4), NewInt(1)), "'1   |'"},
		"a width from text":                        {Str("%*d"), tupleOf(Str("4"), NewInt(1)), "TypeError"},
		"a precision from an argument":             {Str("%.*f"), tupleOf(NewInt(1), Float(2.55)), "'2.5'"},
		"a negative precision from an argument":    {Str("%.*f"), tupleOf(NewInt(-1), Float(2.55)), "'3'"},
		"a width too large for C":                  {Str("%*d"), tupleOf(integer("1180591620717411303424"), NewInt(1)), "OverflowError"},
		"a precision too large for C":              {Str("%.*d"), tupleOf(NewInt(1099511627776), NewInt(1)), "OverflowError"},
		"a width too large":                        {Str("%99999999999999999999d"), NewInt(1), "ValueError"},
		"a precision too large":                    {Str("%.99999999999d"), NewInt(1), "ValueError"},
		"the largest precision":                    {Str("%.2147483647d"), NewInt(1), "OverflowError"},
		"lengths of C are left out":                {Str("%ld %hd %Lf"), tupleOf(NewInt(1), NewInt(2), NewInt(3)), "'1 2 3.000000'"},
		"two lengths of C":                         {Str("%lld"), NewInt(1), "ValueError"},
		"an unknown character":                     {Str("%z"), NewInt(1), "ValueError"},
		"an unknown character without an argument": {Str("%z"), tupleOf(), "TypeError"},
		"an end in the middle":                     {Str("%5"), NewInt(1), "ValueError"},
		"an end after a point":                     {Str("%."), NewInt(1), "ValueError"},
		"an end at once":                           {Str("%"), tupleOf(), "ValueError"},
		"markup escapes":                           {Markup("<%s>"), Str("<"), "Markup('<&lt;>')"},
		"markup escapes a representation":          {Markup("%r"), Str("<"), "Markup('&#39;&lt;&#39;')"},
		"markup keeps markup":                      {Markup("%s"), Markup("<"), "Markup('<')"},
		"markup takes text for a number":           {Markup("%d %f"), tupleOf(Str("42"), Str("1.5")), "Markup('42 1.500000')"},
		"markup takes no text for a number":        {Markup("%d"), Str("a"), "ValueError"},
		"markup takes no list for a number":        {Markup("%d"), listOf(), "TypeError"},
		"markup takes nothing for hexadecimal":     {Markup("%x"), NewInt(255), "TypeError"},
		"markup takes nothing for a character":     {Markup("%c"), Str("a"), "TypeError"},
		"markup takes nothing for a width":         {Markup("%*d"), tupleOf(NewInt(5), NewInt(1)), "TypeError"},
		"markup with names":                        {Markup("%(a)s"), dictOf(Str("a"), Str("<")), "Markup('&lt;')"},
		"markup cuts what is escaped":              {Markup("%.2s"), Str("<a"), "Markup('&l')"},
		"markup with what is undefined":            {Markup("%s"), missingName, "Markup('')"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b := ample(t)
			v, err := PercentFormat(b, test.format, test.args)
			if diff := cmp.Diff(test.want, outcome(t, b, v, err)); diff != "" {
				t.Errorf("%v %% … (-want +got):\n%s", test.format, diff)
			}
		})
	}
}

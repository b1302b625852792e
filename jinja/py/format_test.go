package py

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestFormat compares format(value, spec) with the results of python3.
func TestFormat(t *testing.T) {
	tests := map[string]struct {
		value Value
		spec  string
		want  string
	}{
		"text to the left":                       {Str("a"), "5", "'a    '"},
		"text with a fill":                       {Str("é"), "ß^5", "'ßßéßß'"},
		"text cut":                               {Str("éßa"), ".2", "'éß'"},
		"text with zeros":                        {Str("a"), "05", "'a0000'"},
		"text with a sign":                       {Str("a"), "+5", "ValueError"},
		"text with a blank":                      {Str("a"), " 5", "ValueError"},
		"text after its sign":                    {Str("a"), "=5", "ValueError"},
		"text with an alternate form":            {Str("a"), "#", "ValueError"},
		"text with a z":                          {Str("a"), "z", "ValueError"},
		"text as a number":                       {Str("a"), "d", "ValueError"},
		"text with separators":                   {Str("a"), ",", "ValueError"},
		"text as text":                           {Str("a"), "s", "'a'"},
		"text with underscores":                  {Str("a"), "_s", "ValueError"},
		"markup":                                 {Markup("<"), "3", "'<  '"},
		"an empty specification":                 {Float(1.5), "", "'1.5'"},
		"an int":                                 {NewInt(-42), "6d", "'   -42'"},
		"an int with zeros":                      {NewInt(-42), "06", "'-00042'"},
		"an int with a fill before zeros":        {NewInt(-42), "x>06", "'xxx-42'"},
		"an int after its sign":                  {NewInt(-42), "*=6", "'-***42'"},
		"an int in the middle":                   {NewInt(42), "^5", "' 42  '"},
		"an int with a sign":                     {NewInt(5), "+", "'+5'"},
		"an int with a blank":                    {NewInt(5), " ", "' 5'"},
		"an int with a minus":                    {NewInt(5), "-", "'5'"},
		"an int in binary":                       {NewInt(-5), "#b", "'-0b101'"},
		"an int in octal":                        {NewInt(8), "#o", "'0o10'"},
		"an int in hexadecimal":                  {NewInt(255), "#X", "'0XFF'"},
		"an int in hexadecimal with zeros":       {NewInt(-255), "#010x", "'-0x00000ff'"},
		"an int with separators":                 {NewInt(1234567), ",", "'1,234,567'"},
		"an int with underscores":                {NewInt(1234567), "_", "'1_234_567'"},
		"hexadecimal digits in fours":            {NewInt(1099511627776), "_x", "'100_0000_0000'"},
		"hexadecimal digits with commas":         {NewInt(255), ",x", "ValueError"},
		"zeros with separators":                  {NewInt(1234), "010,", "'00,001,234'"},
		"zeros with separators that fit just so": {NewInt(1234), "09,", "'0,001,234'"},
		"a separator never begins":               {NewInt(123), "08,", "'0,000,123'"},
		"both separators":                        {NewInt(1), ",_", "ValueError"},
		"both separators reversed":               {NewInt(1), "_,", "ValueError"},
		"a character":                            {NewInt(128512), "c", "'\U0001f600'"},
		"a character in a width":                 {NewInt(97), "*^5c", "'**a**'"},
		"a character with a sign":                {NewInt(97), "+c", "ValueError"},
		"a character with separators":            {NewInt(97), ",c", "ValueError"},
		"a character that is none":               {NewInt(-1), "c", "OverflowError"},
		"an alternate character":                 {NewInt(97), "#c", "ValueError"},
		"an int with a precision":                {NewInt(5), ".2", "ValueError"},
		"an int with a z":                        {NewInt(5), "z", "ValueError"},
		"an int as text":                         {NewInt(5), "s", "ValueError"},
		"an int as a float":                      {NewInt(5), ".2f", "'5.00'"},
		"an int as a percentage":                 {NewInt(1), "%", "'100.000000%'"},
		"an int in general":                      {NewInt(1000000), "g", "'1e+06'"},
		"an int too large for a float": {
			integer("10000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"), "e",
			"OverflowError",
		},
		"an int for the locale":                     {NewInt(1234), "n", "'1234'"},
		"a bool":                                    {Bool(true), "5", "'    1'"},
		"a bool as an int":                          {Bool(true), "d", "'1'"},
		"a bool as text":                            {Bool(true), "s", "ValueError"},
		"a large int":                               {integer("1180591620717411303424"), ",", "'1,180,591,620,717,411,303,424'"},
		"a float":                                   {Float(1.5), "8", "'     1.5'"},
		"a float is like repr":                      {Float(1e+16), "<8", "'1e+16   '"},
		"a float that is whole":                     {Float(3.0), ">6", "'   3.0'"},
		"a float with a precision":                  {Float(1234.5), ".2", "'1.2e+03'"},
		"a float with a precision that fits":        {Float(3.0), ".2", "'3.0'"},
		"a float with a large precision":            {Float(0.1), ".20", "'0.10000000000000000555'"},
		"fixed digits":                              {Float(2.5), ".0f", "'2'"},
		"fixed digits with a point":                 {Float(2.5), "#.0f", "'2.'"},
		"an exponent":                               {Float(12345.678), ".2e", "'1.23e+04'"},
		"general":                                   {Float(1.234e-05), "g", "'1.234e-05'"},
		"general with zeros":                        {Float(1.0), "#g", "'1.00000'"},
		"general in capitals":                       {Float(1e-10), "G", "'1E-10'"},
		"a percentage":                              {Float(0.1234), ".1%", "'12.3%'"},
		"a float with separators":                   {Float(1234567.891), ",.1f", "'1,234,567.9'"},
		"a float with separators and zeros":         {Float(1234.5), "012,.1f", "'00,001,234.5'"},
		"a negative float with zeros":               {Float(-1.5), "08.2f", "'-0001.50'"},
		"infinity with zeros":                       {Float(math.Inf(-1)), "08", "'-0000inf'"},
		"infinity in capitals":                      {Float(math.Inf(1)), "F", "'INF'"},
		"no number":                                 {Float(math.NaN()), "+", "'+nan'"},
		"negative zero":                             {Float(math.Copysign(0, -1)), "", "'-0.0'"},
		"negative zero coerced":                     {Float(math.Copysign(0, -1)), "z", "'0.0'"},
		"what is rounded to negative zero":          {Float(-0.001), "z.1f", "'0.0'"},
		"negative infinity coerced":                 {Float(math.Inf(-1)), "zF", "'-INF'"},
		"a float as an int":                         {Float(1.0), "d", "ValueError"},
		"a float as text":                           {Float(1.0), "s", "ValueError"},
		"a float with an unknown code":              {Float(1.0), "x", "ValueError"},
		"a float with too large a precision":        {Float(1.0), ".2147483648", "ValueError"},
		"a point without a precision":               {Float(1.0), ".", "ValueError"},
		"too much":                                  {Float(1.0), "fd", "ValueError"},
		"a width that is too large":                 {NewInt(1), "99999999999999999999", "ValueError"},
		"digits of another script":                  {NewInt(5), "٥", "'    5'"},
		"a fill that is an alignment":               {NewInt(5), "<<3", "'5<<'"},
		"None":                                      {None{}, "5", "TypeError"},
		"None without a specification":              {None{}, "", "'None'"},
		"a list":                                    {listOf(NewInt(1)), ">5", "TypeError"},
		"a list without a specification":            {listOf(NewInt(1)), "", "'[1]'"},
		"what is undefined":                         {missingName, "5", "TypeError"},
		"what is undefined without a specification": {missingName, "", "''"},
		"bytes": {Bytes("a"), "5", "TypeError"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b := ample(t)
			text, err := Format(b, test.value, test.spec)
			if diff := cmp.Diff(test.want, outcome(t, b, Str(text), err)); diff != "" {
				t.Errorf("format(%v, %q) (-want +got):\n%s", test.value, test.spec, diff)
			}
		})
	}
}

package py

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestBinary compares the operators with the results of python3.
func TestBinary(t *testing.T) {
	tests := map[string]struct {
		x    Value
		op   BinaryOp
		y    Value
		want string
	}{
		"integers grow beyond a machine word":             {NewInt(9223372036854775807), OpAdd, NewInt(1), "9223372036854775808"},
		"they shrink again":                               {integer("9223372036854775808"), OpSub, NewInt(1), "9223372036854775807"},
		"products grow, too":                              {NewInt(4294967296), OpMul, NewInt(-8589934592), "-36893488147419103232"},
		"the smallest word times minus one":               {NewInt(-9223372036854775808), OpMul, NewInt(-1), "9223372036854775808"},
		"the smallest word by minus one":                  {NewInt(-9223372036854775808), OpFloorDiv, NewInt(-1), "9223372036854775808"},
		"true is one":                                     {Bool(true), OpAdd, Bool(true), "2"},
		"a power of booleans is an integer":               {Bool(true), OpPow, Bool(false), "1"},
		"floor division rounds down":                      {NewInt(-7), OpFloorDiv, NewInt(2), "-4"},
		"and of a negative divisor":                       {NewInt(7), OpFloorDiv, NewInt(-2), "-4"},
		"a remainder has the sign of the divisor":         {NewInt(-7), OpMod, NewInt(3), "2"},
		"and of a negative one":                           {NewInt(7), OpMod, NewInt(-3), "-2"},
		"a large floor division rounds down":              {minusTenTo(30), OpFloorDiv, NewInt(7), "-142857142857142857142857142858"},
		"a large remainder has the sign of the divisor":   {tenTo(30), OpMod, NewInt(-7), "-6"},
		"division gives a float":                          {NewInt(6), OpDiv, NewInt(3), "2.0"},
		"division of large integers is rounded once":      {tenTo(30), OpDiv, integer("-30000000000000000000000000000"), "-33.333333333333336"},
		"the quotient of large integers can be too large": {tenTo(400), OpDiv, NewInt(3), "OverflowError"},
		"zero by a negative integer":                      {NewInt(0), OpDiv, NewInt(-5), "-0.0"},
		"zero by a large negative integer":                {NewInt(0), OpDiv, minusTenTo(30), "-0.0"},
		"division by zero":                                {NewInt(1), OpDiv, NewInt(0), "ZeroDivisionError"},
		"floor division by zero":                          {NewInt(1), OpFloorDiv, NewInt(0), "ZeroDivisionError"},
		"remainder by zero":                               {NewInt(1), OpMod, Bool(false), "ZeroDivisionError"},
		"division of floats by zero":                      {Float(1.5), OpDiv, NewInt(0), "ZeroDivisionError"},
		"remainder of floats by minus zero":               {Float(1.5), OpMod, Float(math.Copysign(0, -1)), "ZeroDivisionError"},
		"a float makes a float":                           {NewInt(1), OpAdd, Float(0.5), "1.5"},
		"an integer too large for a float":                {tenTo(400), OpMul, Float(1.0), "OverflowError"},
		"a large integer as a float":                      {NewInt(9007199254740993), OpAdd, Float(0.0), "9007199254740992.0"},
		"floor division of floats":                        {Float(-7.5), OpFloorDiv, NewInt(2), "-4.0"},
		"remainder of floats":                             {Float(-7.5), OpMod, NewInt(2), "0.5"},
		"a remainder of zero has a sign":                  {Float(6.0), OpMod, NewInt(-3), "-0.0"},
		"what is smaller than infinity":                   {NewInt(-2), OpMod, Float(math.Inf(1)), "inf"},
		"infinity divided":                                {Float(math.Inf(1)), OpFloorDiv, NewInt(1), "nan"},
		"floats overflow to infinity":                     {Float(1e+308), OpMul, NewInt(10), "inf"},
		"a power":                                         {NewInt(3), OpPow, NewInt(40), "12157665459056928801"},
		"a power of a negative number":                    {NewInt(-2), OpPow, NewInt(3), "-8"},
		"a negative power is a float":                     {NewInt(2), OpPow, NewInt(-1), "0.5"},
		"a negative power of ten":                         {NewInt(10), OpPow, NewInt(-3), "0.001"},
		"zero to a negative power":                        {NewInt(0), OpPow, NewInt(-1), "ZeroDivisionError"},
		"a power of one":                                  {NewInt(1), OpPow, tenTo(30), "1"},
		"a power of minus one":                            {NewInt(-1), OpPow, integer("1000000000000000000000000000001"), "-1"},
		"a root":                                          {NewInt(2), OpPow, Float(0.5), "1.4142135623730951"},
		"a power of floats to the last digit":             {Float(1.1), OpPow, Float(10.7), "2.7726926501510816"},
		"a power of a float with a whole exponent":        {Float(99.99), OpPow, NewInt(-11), "1.0011006602861007e-22"},
		"a power near one":                                {Float(1.0000001), OpPow, NewInt(123456789), "229964.05427356533"},
		"a negative float to an odd power":                {Float(-2.5), OpPow, NewInt(3), "-15.625"},
		"a float that overflows":                          {Float(2.0), OpPow, NewInt(5000), "OverflowError"},
		"a float that underflows":                         {Float(2.0), OpPow, NewInt(-1075), "0.0"},
		"the smallest float":                              {NewInt(2), OpPow, NewInt(-1074), "5e-324"},
		"zero to minus infinity":                          {NewInt(0), OpPow, Float(math.Inf(-1)), "inf"},
		"minus one to infinity":                           {NewInt(-1), OpPow, Float(math.Inf(1)), "1.0"},
		"nothing is one to the power of zero":             {Float(math.NaN()), OpPow, NewInt(0), "1.0"},
		"one to the power of nothing":                     {NewInt(1), OpPow, Float(math.NaN()), "1.0"},
		"text":                                            {Str("a"), OpAdd, Str("é"), "'aé'"},
		"markup escapes text":                             {Markup("<b>"), OpAdd, Str("<"), "Markup('<b>&lt;')"},
		"text before markup is escaped":                   {Str("<"), OpAdd, Markup("<b>"), "Markup('&lt;<b>')"},
		"lists":                                           {listOf(NewInt(1)), OpAdd, listOf(NewInt(2)), "[1, 2]"},
		"tuples":                                          {tupleOf(NewInt(1)), OpAdd, tupleOf(), "(1,)"},
		"bytes":                                           {Bytes("a"), OpAdd, Bytes("b"), "b'ab'"},
		"a list and a tuple":                              {listOf(NewInt(1)), OpAdd, tupleOf(NewInt(1)), "TypeError"},
		"text and a number":                               {Str("a"), OpAdd, NewInt(1), "TypeError"},
		"a number and text":                               {NewInt(1), OpAdd, Str("a"), "TypeError"},
		"repeated text":                                   {Str("ab"), OpMul, NewInt(3), "'ababab'"},
		"repeated from the left":                          {NewInt(2), OpMul, Str("ab"), "'abab'"},
		"repeated by a boolean":                           {Str("ab"), OpMul, Bool(true), "'ab'"},
		"repeated less than once":                         {listOf(NewInt(1)), OpMul, NewInt(-1), "[]"},
		"repeated markup":                                 {Markup("<"), OpMul, NewInt(2), "Markup('<<')"},
		"repeated by a float":                             {Str("a"), OpMul, Float(1.0), "TypeError"},
		"an empty list repeated far too often":            {listOf(), OpMul, tenTo(30), "OverflowError"},
		"an empty list repeated often":                    {listOf(), OpMul, NewInt(1000000000000000), "[]"},
		"repeated tuples":                                 {tupleOf(NewInt(1), NewInt(2)), OpMul, NewInt(2), "(1, 2, 1, 2)"},
		"formatted text":                                  {Str("%s!"), OpMod, NewInt(1), "'1!'"},
		"a number is no format":                           {NewInt(5), OpMod, Str("a"), "TypeError"},
		"dictionaries are not added":                      {dictOf(), OpAdd, dictOf(), "TypeError"},
		"None is not added":                               {None{}, OpAdd, NewInt(1), "TypeError"},
		"what is undefined is not added":                  {missingName, OpAdd, NewInt(1), "UndefinedError"},
		"and not on the right":                            {NewInt(1), OpSub, missingName, "UndefinedError"},
		"nor repeated":                                    {Str("a"), OpMul, missingName, "UndefinedError"},
		"but formatted":                                   {Str("%s"), OpMod, missingName, "''"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b := ample(t)
			got, err := Binary(b, test.op, test.x, test.y)
			if diff := cmp.Diff(test.want, outcome(t, b, got, err)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func tenTo(n int) Int { return integer("1" + strings.Repeat("0", n)) }

func minusTenTo(n int) Int { return integer("-1" + strings.Repeat("0", n)) }

func TestUnary(t *testing.T) {
	tests := map[string]struct {
		op   func(b *Budget, v Value) (Value, error)
		v    Value
		want string
	}{
		"a negative number": {Negative, NewInt(5), "-5"},
		"the smallest word": {Negative, NewInt(-9223372036854775808), "9223372036854775808"},
		"true":              {Negative, Bool(true), "-1"},
		"plus true":         {Positive, Bool(true), "1"},
		"minus zero":        {Negative, Float(0.0), "-0.0"},
		"a large number":    {Negative, tenTo(30), "-1000000000000000000000000000000"},
		"text":              {Negative, Str("a"), "TypeError"},
		"plus text":         {Positive, Str("a"), "TypeError"},
		"a list":            {Positive, listOf(), "TypeError"},
		"what is undefined": {Negative, missingName, "UndefinedError"},
		"None":              {Negative, None{}, "TypeError"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b := ample(t)
			got, err := test.op(b, test.v)
			if diff := cmp.Diff(test.want, outcome(t, b, got, err)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

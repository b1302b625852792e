package py

import (
	"fmt"
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"
)

var floatMethods = map[string]method{
	"as_integer_ratio": {run: floatRatio},
	"conjugate":        {run: func(_ *Budget, self Value, _ []Value) (Value, error) { return self, nil }},
	"fromhex":          {params: []Param{required("string")}, run: floatFromHex},
	"hex":              {run: floatHex},
	"is_integer":       {run: floatIsInteger},
}

var floatData = map[string]func(self Value) Value{
	"real": func(self Value) Value { return self },
	"imag": func(Value) Value { return Float(0) },
}

func floatIsInteger(_ *Budget, self Value, _ []Value) (Value, error) {
	f, _ := self.(Float)
	return Bool(float64(f) == math.Trunc(float64(f)) && !math.IsInf(float64(f), 0)), nil
}

func floatRatio(_ *Budget, self Value, _ []Value) (Value, error) {
	f, _ := self.(Float)
	switch {
	case math.IsInf(float64(f), 0):
		return nil, exception("OverflowError", "cannot convert Infinity to integer ratio")
	case math.IsNaN(float64(f)):
		return nil, valueError("cannot convert NaN to integer ratio")
	}
	ratio := new(big.Rat).SetFloat64(float64(f))
	return &Tuple{Items: []Value{NewBigInt(ratio.Num()), NewBigInt(ratio.Denom())}}, nil
}

// floatHex writes 13 digits after the point, and smaller exponents than Go's hexadecimal text.
func floatHex(_ *Budget, self Value, _ []Value) (Value, error) {
	f, _ := self.(Float)
	if math.IsInf(float64(f), 0) || math.IsNaN(float64(f)) {
		return Str(FloatText(float64(f))), nil
	}
	raw := math.Float64bits(float64(f))
	sign, lead, exponent := "", 1, int(raw>>52&0x7ff)-1023
	if math.Signbit(float64(f)) {
		sign = "-"
	}
	fraction := raw & (1<<52 - 1)
	if exponent == -1023 {
		if fraction == 0 {
			return Str(sign + "0x0.0p+0"), nil
		}
		lead, exponent = 0, -1022
	}
	return Str(fmt.Sprintf("%s0x%d.%013xp%+d", sign, lead, fraction, exponent)), nil
}

var hexFloat = regexp.MustCompile(
	`^([+-]?)(?:0[xX])?([0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)([pP][+-]?[0-9]+)?$`)

func floatFromHex(b *Budget, _ Value, args []Value) (Value, error) {
	text, err := strArgument("fromhex", args[0])
	if err != nil {
		return nil, err
	}
	if err := b.Step(len(text)); err != nil {
		return nil, err
	}
	text = strings.Trim(text, " \t\n\r\v\f")
	switch strings.ToLower(strings.TrimLeft(text, "+-")) {
	case "inf", "infinity", "nan":
		return ParseFloat(text)
	}
	part := hexFloat.FindStringSubmatch(text)
	if part == nil {
		return nil, valueError("invalid hexadecimal floating-point string")
	}
	exponent := part[3]
	if exponent == "" {
		exponent = "p0"
	}
	f, err := strconv.ParseFloat(part[1]+"0x"+part[2]+exponent, 64)
	if err != nil {
		return nil, exception("OverflowError", "hexadecimal value too large to represent as a float")
	}
	return Float(f), nil
}

package jinja

import (
	"math"
	"math/big"
	"strconv"

	"github.com/albertofaria/pav/jinja/py"
)

func doAbs(s *state, args []py.Value) (py.Value, error) {
	negative := false
	switch v := args[0].(type) {
	case py.Float:
		return py.Float(math.Abs(float64(v))), nil
	case py.Bool:
	case py.Int:
		negative = v.Sign() < 0
	default:
		return nil, raisef("TypeError", "bad operand type for abs(): '%s'", args[0].TypeName())
	}
	if negative {
		return py.Negative(s.budget, args[0])
	}
	return py.Positive(s.budget, args[0])
}

// doInt also accepts text like "42.23", and returns its integer part.
func doInt(s *state, args []py.Value) (py.Value, error) {
	value, fallback, base := args[0], args[1], args[2]
	n, err := s.integer(value, base)
	if err == nil || !isBadValue(err) {
		return n, err
	}
	f, err := py.ToFloat(s.budget, value)
	if err == nil {
		n, err = py.ToInt(s.budget, f)
	}
	if isBadValue(err) {
		return fallback, nil
	}
	return n, err
}

// integer returns int(value, base); base applies only to strings.
func (s *state) integer(value, base py.Value) (py.Int, error) {
	text, isString := py.TextOf(value)
	if !isString {
		return py.ToInt(s.budget, value)
	}
	n, err := py.Index(base)
	if err != nil {
		return py.Int{}, err
	}
	return py.ParseInt(s.budget, text, clipped(n))
}

// clipped returns n, or the nearest integer of type int.
func clipped(n py.Int) int {
	small, fits := n.Int64()
	switch {
	case fits:
		return int(small)
	case n.Sign() < 0:
		return math.MinInt
	}
	return math.MaxInt
}

func doFloat(s *state, args []py.Value) (py.Value, error) {
	f, err := py.ToFloat(s.budget, args[0])
	if isBadValue(err) {
		return args[1], nil
	}
	return f, err
}

func doRound(s *state, args []py.Value) (py.Value, error) {
	value, precision, method := args[0], args[1], args[2]
	if err := py.Hashable(method); err != nil {
		return nil, err
	}
	name, _ := py.TextOf(method)
	var toInteger func(float64) float64
	switch name {
	case "common":
		return s.round(value, precision)
	case "ceil":
		toInteger = math.Ceil
	case "floor":
		toInteger = math.Floor
	default:
		return nil, raisef("FilterArgumentError", "method must be common, ceil or floor")
	}
	c := calculation{s: s}
	factor := c.binary(py.OpPow, py.NewInt(10), precision)
	scaled := c.binary(py.OpMul, value, factor)
	whole := c.value(func(b *py.Budget) (py.Value, error) { return integerNextTo(b, scaled, name, toInteger) })
	return c.result(c.binary(py.OpDiv, whole, c.binary(py.OpPow, py.NewInt(10), precision)))
}

// integerNextTo returns math.ceil or math.floor.
func integerNextTo(b *py.Budget, value py.Value, name string, toInteger func(float64) float64) (py.Value, error) {
	switch v := value.(type) {
	case py.Bool, py.Int:
		return py.ToInt(b, v)
	case py.Float:
		return py.ToInt(b, py.Float(toInteger(float64(v))))
	}
	return nil, raisef("TypeError", "math.%s: must be real number, not %s", name, value.TypeName())
}

// round returns Python's round(value, precision).
func (s *state) round(value, precision py.Value) (py.Value, error) {
	switch value.(type) {
	case py.Bool, py.Int, py.Float:
	default:
		return nil, raisef("TypeError", "type %s doesn't define __round__ method", value.TypeName())
	}
	number, isFloat := value.(py.Float)
	if isNone(precision) {
		if isFloat {
			value = py.Float(math.RoundToEven(float64(number)))
		}
		return py.ToInt(s.budget, value)
	}
	digits, err := py.Index(precision)
	if err != nil {
		return nil, err
	}
	if isFloat {
		return roundFloat(float64(number), clipped(digits))
	}
	n, err := py.ToInt(s.budget, value)
	if err != nil {
		return nil, err
	}
	return s.roundInt(n, clipped(digits))
}

// With precisions beyond these, the result is the float itself, or zero.
const (
	maxFloatPrecision = 323
	minFloatPrecision = -308
)

// roundFloat rounds the exact value of f, halves to even.
func roundFloat(f float64, digits int) (py.Value, error) {
	if math.IsNaN(f) || math.IsInf(f, 0) || digits > maxFloatPrecision {
		return py.Float(f), nil
	}
	if digits < minFloatPrecision {
		return py.Float(0 * f), nil
	}
	text := strconv.FormatFloat(f, 'f', max(digits, 0), 64)
	if digits < 0 {
		text = roundedToTens(f, -digits)
	}
	rounded, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil, raisef("OverflowError", "rounded value too large to represent")
	}
	return py.Float(math.Copysign(rounded, f)), nil
}

// roundedToTens returns f, rounded to a multiple of 10 to the power of zeros, as text.
func roundedToTens(f float64, zeros int) string {
	exact := new(big.Rat).SetFloat64(f)
	unit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(zeros)), nil)
	exact.Quo(exact, new(big.Rat).SetInt(unit))
	return roundHalfEven(exact).String() + "e" + strconv.Itoa(zeros)
}

// roundHalfEven returns the integer nearest to exact.
func roundHalfEven(exact *big.Rat) *big.Int {
	two := big.NewInt(2)
	// The floor of exact + 1/2, or one less where exact is a half and that is odd.
	doubled := new(big.Int).Add(new(big.Int).Mul(exact.Num(), two), exact.Denom())
	rounded, rest := new(big.Int).DivMod(doubled, new(big.Int).Mul(exact.Denom(), two), new(big.Int))
	if rest.Sign() == 0 && rounded.Bit(0) == 1 {
		rounded.Sub(rounded, big.NewInt(1))
	}
	return rounded
}

// roundInt rounds n to a multiple of a power of ten, halves to even.
func (s *state) roundInt(n py.Int, digits int) (py.Value, error) {
	if digits >= 0 {
		return n, nil
	}
	size := n.Big().BitLen()
	if err := s.budget.Alloc(4 * size); err != nil {
		return nil, err
	}
	// Such a power of ten is more than twice n.
	if digits < -size {
		return py.NewInt(0), nil
	}
	unit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(-digits)), nil)
	rounded := roundHalfEven(new(big.Rat).SetFrac(n.Big(), unit))
	return py.NewBigInt(rounded.Mul(rounded, unit)), nil
}

// sizePrefixes has the units of file sizes, decimal and binary.
var sizePrefixes = map[bool][]string{
	false: {"kB", "MB", "GB", "TB", "PB", "EB", "ZB", "YB"},
	true:  {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "ZiB", "YiB"},
}

func doFileSizeFormat(s *state, args []py.Value) (py.Value, error) {
	size, err := py.ToFloat(s.budget, args[0])
	if err != nil {
		return nil, err
	}
	binary, err := py.Truth(s.budget, args[1])
	if err != nil {
		return nil, err
	}
	base := int64(1000)
	if binary {
		base = 1024
	}
	if size == 1 {
		return py.Str("1 Byte"), nil
	}
	if float64(size) < float64(base) {
		whole, err := py.ToInt(s.budget, size)
		if err != nil {
			return nil, err
		}
		text, err := py.ToStr(s.budget, whole)
		return py.Str(text + " Bytes"), err
	}
	return s.largeSize(size, base, sizePrefixes[binary])
}

// largeSize returns size in the largest unit that is not larger than it.
func (s *state) largeSize(size py.Float, base int64, prefixes []string) (py.Value, error) {
	c := calculation{s: s}
	unit := py.Value(py.NewInt(base))
	prefix := ""
	for _, prefix = range prefixes {
		unit = c.binary(py.OpMul, unit, py.NewInt(base))
		if c.compare(py.OpLt, size, unit) {
			break
		}
	}
	scaled := c.binary(py.OpDiv, c.binary(py.OpMul, py.NewInt(base), size), unit)
	if c.err != nil {
		return nil, c.err
	}
	text, err := py.Format(s.budget, scaled, ".1f")
	return py.Str(text + " " + prefix), err
}

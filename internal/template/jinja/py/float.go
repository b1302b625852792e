package py

import (
	"math"
	"math/big"
	"strconv"
	"strings"
)

// FloatText returns Python's repr of f: the shortest text that reads as f again.
func FloatText(f float64) string {
	switch {
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	}
	// repr writes an exponent from 1e16 up, and below 1e-4.
	const large, small = 1e16, 1e-4
	if size := math.Abs(f); size != 0 && (size >= large || size < small) {
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	text := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(text, ".") {
		text += ".0"
	}
	return text
}

func calculateFloats(op BinaryOp, x, y float64) (Value, error) {
	switch op {
	case OpAdd:
		return Float(x + y), nil
	case OpSub:
		return Float(x - y), nil
	case OpMul:
		return Float(x * y), nil
	case OpPow:
		return powerFloats(x, y)
	}
	if y == 0 {
		return nil, exception("ZeroDivisionError", "float division by zero")
	}
	if op == OpDiv {
		return Float(x / y), nil
	}
	quotient, remainder := floorDivideFloats(x, y)
	if op == OpMod {
		return Float(remainder), nil
	}
	return Float(quotient), nil
}

// floorDivideFloats follows CPython's float_divmod, whose rounding is its own.
func floorDivideFloats(x, y float64) (quotient, remainder float64) {
	remainder = math.Mod(x, y)
	quotient = (x - remainder) / y
	if remainder == 0 {
		remainder = math.Copysign(0, y)
	} else if (y < 0) != (remainder < 0) {
		remainder += y
		quotient--
	}
	if quotient == 0 {
		return math.Copysign(0, x/y), remainder
	}
	floor := math.Floor(quotient)
	if quotient-floor > 0.5 {
		floor++
	}
	return floor, remainder
}

func powerFloats(x, y float64) (Value, error) {
	switch {
	case x == 0 && y < 0:
		return nil, exception("ZeroDivisionError", "0.0 cannot be raised to a negative power")
	case x < 0 && !math.IsInf(x, 0) && !math.IsInf(y, 0) && y != math.Floor(y):
		return Complex{}, nil
	}
	result := accuratePower(x, y)
	if math.IsInf(result, 0) && !math.IsInf(x, 0) && !math.IsInf(y, 0) {
		return nil, exception("OverflowError", "(34, 'Numerical result out of range')")
	}
	return Float(result), nil
}

// accuratePower is math.Pow to the last digit, where the exponent is whole or a half: Python prints all digits.
func accuratePower(x, y float64) float64 {
	const most, precision = 1 << 14, 256
	switch {
	case y == 0.5 && x >= 0:
		return math.Sqrt(x)
	case y != math.Floor(y) || math.Abs(y) > most || x == 0 || math.IsInf(x, 0) || math.IsNaN(x):
		return math.Pow(x, y)
	}
	result, factor := big.NewFloat(1).SetPrec(precision), big.NewFloat(x).SetPrec(precision)
	for n := int(math.Abs(y)); n > 0; n >>= 1 {
		if n&1 == 1 {
			result.Mul(result, factor)
		}
		factor.Mul(factor, factor)
	}
	if y < 0 {
		result.Quo(big.NewFloat(1).SetPrec(precision), result)
	}
	rounded, _ := result.Float64()
	return rounded
}

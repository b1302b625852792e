package py

import (
	"math"
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

// float returns f; a NaN is one that Same distinguishes from all others.
func (b *Budget) float(f float64) Float {
	if !math.IsNaN(f) {
		return Float(f)
	}
	const quiet = 0x7ff8 << 48
	b.nans++
	return Float(math.Float64frombits(quiet | b.nans))
}

// zeroFloats and zeroInts are Python's messages for a division by zero.
var (
	zeroFloats = map[BinaryOp]string{OpDiv: "float division by zero", OpFloorDiv: "float floor division by zero", OpMod: "float modulo"}
	zeroInts   = map[BinaryOp]string{
		OpDiv:      "division by zero",
		OpFloorDiv: "integer division or modulo by zero",
		OpMod:      "integer modulo by zero",
	}
)

func calculateFloats(op BinaryOp, x, y float64) (float64, error) {
	switch op {
	case OpAdd:
		return x + y, nil
	case OpSub:
		return x - y, nil
	case OpMul:
		return x * y, nil
	case OpPow:
		return powerFloats(x, y)
	default:
		return divideFloats(op, x, y)
	}
}

func divideFloats(op BinaryOp, x, y float64) (float64, error) {
	if y == 0 {
		return 0, exception("ZeroDivisionError", "%s", zeroFloats[op])
	}
	if op == OpDiv {
		return x / y, nil
	}
	quotient, remainder := floorDivideFloats(x, y)
	if op == OpMod {
		return remainder, nil
	}
	return quotient, nil
}

// floorDivideFloats follows CPython's float_divmod, which has its own way of rounding.
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

func powerFloats(x, y float64) (float64, error) {
	switch {
	case x == 0 && y < 0 && !math.IsInf(y, 0):
		return 0, exception("ZeroDivisionError", "0.0 cannot be raised to a negative power")
	case x < 0 && !math.IsInf(x, 0) && !math.IsInf(y, 0) && !math.IsNaN(y) && y != math.Floor(y):
		return 0, typeError("the power is a complex number, which is not supported")
	}
	result := accuratePower(x, y)
	if math.IsInf(result, 0) && !math.IsInf(x, 0) && !math.IsInf(y, 0) {
		return 0, exception("OverflowError", "(34, 'Numerical result out of range')")
	}
	return result, nil
}

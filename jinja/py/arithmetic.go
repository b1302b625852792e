package py

import (
	"math"
	"math/big"
	"math/bits"
)

// BinaryOp is an arithmetic operator.
type BinaryOp int

// The arithmetic operators.
const (
	OpAdd BinaryOp = iota
	OpSub
	OpMul
	OpDiv
	OpFloorDiv
	OpMod
	OpPow
)

// signs are the operators as Python's errors name them.
var signs = [...]string{OpAdd: "+", OpSub: "-", OpMul: "*", OpDiv: "/", OpFloorDiv: "//", OpMod: "%", OpPow: "** or pow()"}

// Binary returns x op y.
func Binary(b *Budget, op BinaryOp, x, y Value) (Value, error) {
	if err := b.Alloc(itemSize); err != nil {
		return nil, err
	}
	if isNumber(x) && isNumber(y) {
		return calculate(b, op, x, y)
	}
	if err := undefinedOperand(op, x, y); err != nil {
		return nil, err
	}
	switch op {
	case OpAdd:
		return concatenate(b, x, y)
	case OpMul:
		return repeat(b, x, y)
	case OpMod:
		if isText(x) {
			return PercentFormat(b, x, y)
		}
		return nil, unsupported(op, x, y)
	default:
		return nil, unsupported(op, x, y)
	}
}

// undefinedOperand returns the error of an operand that is not there. A text can be formatted with one.
func undefinedOperand(op BinaryOp, x, y Value) error {
	if u, ok := x.(*Undefined); ok {
		return u.Err()
	}
	if u, ok := y.(*Undefined); ok && (op != OpMod || !isText(x)) {
		return u.Err()
	}
	return nil
}

func isText(v Value) bool {
	_, ok := TextOf(v)
	return ok
}

func unsupported(op BinaryOp, x, y Value) error {
	return typeError("unsupported operand type(s) for %s: '%s' and '%s'", signs[op], x.TypeName(), y.TypeName())
}

func calculate(b *Budget, op BinaryOp, x, y Value) (Value, error) {
	i, iok := asInt(x)
	j, jok := asInt(y)
	if iok && jok {
		return calculateInts(b, op, i, j)
	}
	f, err := asFloat(x)
	if err != nil {
		return nil, err
	}
	g, err := asFloat(y)
	if err != nil {
		return nil, err
	}
	if op == OpPow {
		if err := b.Step(powerSteps); err != nil {
			return nil, err
		}
	}
	result, err := calculateFloats(op, f, g)
	if err != nil {
		return nil, err
	}
	return b.float(result), nil
}

func calculateInts(b *Budget, op BinaryOp, i, j Int) (Value, error) {
	if result, ok := calculateSmall(op, i, j); ok {
		return result, nil
	}
	switch op {
	case OpDiv, OpFloorDiv, OpMod:
		if j.Sign() == 0 {
			return nil, exception("ZeroDivisionError", "%s", zeroInts[op])
		}
		if op == OpDiv {
			return divide(b, i, j)
		}
		return floorDivide(b, op, i, j)
	case OpPow:
		return power(b, i, j)
	case OpMul:
		if err := b.integer(i.bits() + j.bits()); err != nil {
			return nil, err
		}
		return NewBigInt(new(big.Int).Mul(i.Big(), j.Big())), nil
	default:
		return addLarge(b, op, i, j)
	}
}

// addLarge returns i+j or i-j.
func addLarge(b *Budget, op BinaryOp, i, j Int) (Value, error) {
	if err := b.integer(max(i.bits(), j.bits()) + 1); err != nil {
		return nil, err
	}
	if op == OpSub {
		return NewBigInt(new(big.Int).Sub(i.Big(), j.Big())), nil
	}
	return NewBigInt(new(big.Int).Add(i.Big(), j.Big())), nil
}

// integer takes the memory of an integer of some bits, which must not be too large.
func (b *Budget) integer(size int) error {
	const bitsPerDigits, digits = 10, 3 // 2**10 is about 10**3
	if size > b.Limits.Digits/digits*bitsPerDigits+64 {
		return limitError("it makes an integer of more than %d digits", b.Limits.Digits)
	}
	return b.Alloc(size/8 + 8)
}

// calculateSmall is the common case: nothing overflows.
func calculateSmall(op BinaryOp, i, j Int) (Value, bool) {
	if i.large != nil || j.large != nil {
		return nil, false
	}
	x, y := i.small, j.small
	switch op {
	case OpAdd:
		sum := x + y
		return Int{small: sum}, (sum > x) == (y > 0)
	case OpSub:
		difference := x - y
		return Int{small: difference}, (difference < x) == (y > 0)
	case OpMul:
		product, fits := multiplySmall(x, y)
		return Int{small: product}, fits
	case OpFloorDiv, OpMod:
		return floorDivideSmall(op, x, y)
	default:
		return nil, false
	}
}

func floorDivideSmall(op BinaryOp, x, y int64) (Value, bool) {
	if y == 0 || x == math.MinInt64 && y == -1 {
		return nil, false
	}
	quotient, remainder := x/y, x%y
	if remainder != 0 && (remainder < 0) != (y < 0) {
		quotient--
		remainder += y
	}
	if op == OpMod {
		return Int{small: remainder}, true
	}
	return Int{small: quotient}, true
}

func multiplySmall(x, y int64) (product int64, ok bool) {
	if x == math.MinInt64 || y == math.MinInt64 {
		return 0, false
	}
	high, low := bits.Mul64(uint64(max(x, -x)), uint64(max(y, -y)))
	return x * y, high == 0 && low <= math.MaxInt64
}

// divide returns i/j as the nearest float.
func divide(b *Budget, i, j Int) (Value, error) {
	if i.isExactFloat() && j.isExactFloat() {
		return Float(float64(i.small) / float64(j.small)), nil
	}
	if err := b.Alloc(i.bits() + j.bits()); err != nil {
		return nil, err
	}
	quotient, _ := new(big.Rat).SetFrac(i.Big(), j.Big()).Float64()
	if math.IsInf(quotient, 0) {
		return nil, exception("OverflowError", "integer division result too large for a float")
	}
	if quotient == 0 && j.Sign() < 0 && i.Sign() >= 0 {
		return Float(math.Copysign(0, -1)), nil
	}
	return Float(quotient), nil
}

// floorDivide returns i//j or i%j: the quotient is rounded down, the remainder has the sign of j.
func floorDivide(b *Budget, op BinaryOp, i, j Int) (Value, error) {
	if err := b.integer(max(i.bits(), j.bits())); err != nil {
		return nil, err
	}
	quotient, remainder := new(big.Int).QuoRem(i.Big(), j.Big(), new(big.Int))
	if remainder.Sign() != 0 && remainder.Sign() != j.Sign() {
		remainder.Add(remainder, j.Big())
		quotient.Sub(quotient, big.NewInt(1))
	}
	if op == OpMod {
		return NewBigInt(remainder), nil
	}
	return NewBigInt(quotient), nil
}

func power(b *Budget, i, j Int) (Value, error) {
	if j.Sign() < 0 {
		f, err := i.float()
		if err != nil {
			return nil, err
		}
		g, err := j.float()
		if err != nil {
			return nil, err
		}
		result, err := powerFloats(f, g)
		if err != nil {
			return nil, err
		}
		return Float(result), nil
	}
	if i.large == nil && -1 <= i.small && i.small <= 1 {
		return powerOfUnit(i, j), nil
	}
	exponent, ok := j.Int64()
	if !ok || exponent > math.MaxInt32 {
		return nil, limitError("it makes an integer of more than %d digits", b.Limits.Digits)
	}
	if err := b.integer((i.bits() - 1) * int(exponent)); err != nil {
		return nil, err
	}
	return NewBigInt(new(big.Int).Exp(i.Big(), big.NewInt(exponent), nil)), nil
}

// powerOfUnit returns the power of -1, 0 or 1.
func powerOfUnit(i, j Int) Int {
	switch {
	case j.Sign() == 0:
		return Int{small: 1}
	case i.small == -1 && j.Big().Bit(0) == 0:
		return Int{small: 1}
	}
	return i
}

// Negative returns -v.
func Negative(b *Budget, v Value) (Value, error) {
	if f, ok := v.(Float); ok {
		return b.float(float64(-f)), nil
	}
	i, err := unaryOperand("-", v)
	if err != nil {
		return nil, err
	}
	return calculateInts(b, OpSub, Int{}, i)
}

// Positive returns +v.
func Positive(_ *Budget, v Value) (Value, error) {
	if f, ok := v.(Float); ok {
		return f, nil
	}
	i, err := unaryOperand("+", v)
	if err != nil {
		return nil, err
	}
	return i, nil
}

func unaryOperand(sign string, v Value) (Int, error) {
	if u, ok := v.(*Undefined); ok {
		return Int{}, u.Err()
	}
	i, ok := asInt(v)
	if !ok {
		return Int{}, typeError("bad operand type for unary %s: '%s'", sign, v.TypeName())
	}
	return i, nil
}

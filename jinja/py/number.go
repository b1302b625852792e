package py

import (
	"cmp"
	"math"
	"math/big"
)

// NewInt returns n.
func NewInt(n int64) Int { return Int{small: n} }

// NewBigInt returns n, which must not be changed afterwards.
func NewBigInt(n *big.Int) Int {
	if n.IsInt64() {
		return Int{small: n.Int64()}
	}
	return Int{large: n}
}

// Int64 returns i, if it fits.
func (i Int) Int64() (int64, bool) { return i.small, i.large == nil }

// Big returns i. The result must not be changed.
func (i Int) Big() *big.Int {
	if i.large != nil {
		return i.large
	}
	return big.NewInt(i.small)
}

// Sign returns -1, 0 or 1.
func (i Int) Sign() int {
	if i.large != nil {
		return i.large.Sign()
	}
	switch {
	case i.small < 0:
		return -1
	case i.small > 0:
		return 1
	}
	return 0
}

// bits is how many bits the magnitude of i takes.
func (i Int) bits() int {
	if i.large != nil {
		return i.large.BitLen()
	}
	return big.NewInt(i.small).BitLen()
}

// float returns i as the nearest float. Python: "int too large to convert to float".
func (i Int) float() (float64, error) {
	if i.large == nil {
		return float64(i.small), nil
	}
	f, _ := new(big.Float).SetInt(i.large).Float64()
	if math.IsInf(f, 0) {
		return 0, exception("OverflowError", "int too large to convert to float")
	}
	return f, nil
}

// compare returns the order of i and j.
func (i Int) compare(j Int) int {
	if i.large == nil && j.large == nil {
		switch {
		case i.small < j.small:
			return -1
		case i.small > j.small:
			return 1
		}
		return 0
	}
	return i.Big().Cmp(j.Big())
}

// asInt returns v as an integer: a bool is one.
func asInt(v Value) (Int, bool) {
	switch v := v.(type) {
	case Int:
		return v, true
	case Bool:
		if v {
			return Int{small: 1}, true
		}
		return Int{}, true
	}
	return Int{}, false
}

// isNumber reports whether v takes part in arithmetic.
func isNumber(v Value) bool {
	switch v.(type) {
	case Int, Bool, Float:
		return true
	}
	return false
}

// asFloat returns a number as a float.
func asFloat(v Value) (float64, error) {
	if f, ok := v.(Float); ok {
		return float64(f), nil
	}
	i, _ := asInt(v)
	return i.float()
}

// Index returns v as an integer, or a TypeError if it is not one.
func Index(v Value) (Int, error) {
	if i, ok := asInt(v); ok {
		return i, nil
	}
	return Int{}, typeError("'%s' object cannot be interpreted as an integer", v.TypeName())
}

// isExactFloat reports whether i can be converted to a float without rounding.
func (i Int) isExactFloat() bool {
	const exact = 1 << 53
	return i.large == nil && -exact <= i.small && i.small <= exact
}

// compareIntFloat returns the order of i and f, which is not NaN, exactly.
func compareIntFloat(i Int, f float64) int {
	if i.isExactFloat() {
		return cmp.Compare(float64(i.small), f)
	}
	if math.IsInf(f, 0) {
		if f > 0 {
			return -1
		}
		return 1
	}
	return new(big.Float).SetInt(i.Big()).Cmp(big.NewFloat(f))
}

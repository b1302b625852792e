package py

import (
	"math"
	"math/big"
)

// Python prints a float to its last digit, so a power has to be correct to the last digit, which math.Pow is not. It is
// calculated with additional bits: the error is smaller than what rounding to snapped bits removes.
const (
	precision = 256
	snapped   = 230
	ln2       = "0.69314718055994530941723212145817656807550013436025525412068000949339362196969471560586332699641868754200148"
)

// powerSteps is how many steps a power of floats takes.
const powerSteps = 256

// accuratePower returns the float nearest to x**y.
func accuratePower(x, y float64) float64 {
	size := math.Abs(x)
	scale := y * math.Log2(size)
	// No calculation is needed for 0, 1 and infinity, and for results that are far too large or too small.
	const largest = 1100
	if math.IsNaN(scale) || scale == 0 || math.Abs(scale) > largest {
		return math.Pow(x, y)
	}
	product := exact(y)
	power := exponential(product.Mul(product, logarithm(size)))
	result, _ := power.SetPrec(snapped).Float64()
	if x < 0 && math.Mod(y, 2) != 0 {
		return -result
	}
	return result
}

func exact(x float64) *big.Float { return new(big.Float).SetPrec(precision).SetFloat64(x) }

// binaryLogarithms returns the logarithm of two to the power of n.
func binaryLogarithms(n int) *big.Float {
	one, _ := new(big.Float).SetPrec(precision).SetString(ln2)
	return one.Mul(one, exact(float64(n)))
}

// logarithm returns the natural logarithm of x > 0 as that of 2**exponent and twice the artanh of z = (m-1)/(m+1), where
// m is near one.
func logarithm(x float64) *big.Float {
	m, exponent := math.Frexp(x)
	if m < math.Sqrt2/2 {
		m *= 2
		exponent--
	}
	below, above := exact(m), exact(m)
	z := below.Quo(below.Sub(below, exact(1)), above.Add(above, exact(1)))
	square := new(big.Float).Mul(z, z)
	sum := exact(0)
	const terms = 53 // z*z < 2**-5
	for i := range terms {
		term := exact(float64(2*i + 1))
		sum.Add(sum, term.Quo(z, term))
		z.Mul(z, square)
	}
	return sum.Add(sum.Mul(sum, exact(2)), binaryLogarithms(exponent))
}

// exponential returns e**x as 2**n * (e**(r/2**halvings))**(2**halvings).
func exponential(x *big.Float) *big.Float {
	const halvings, terms = 16, 16 // (r/2**16)**16 < 2**-272
	approximate, _ := x.Float64()
	n := int(math.Round(approximate / math.Ln2))
	r := new(big.Float).Sub(x, binaryLogarithms(n))
	r.SetMantExp(r, -halvings)
	sum, term := exact(1), exact(1)
	for i := range terms {
		term.Quo(term.Mul(term, r), exact(float64(i+1)))
		sum.Add(sum, term)
	}
	for range halvings {
		sum.Mul(sum, sum)
	}
	return sum.SetMantExp(sum, n)
}

package sample

import (
	"math"
	"math/big"
	"slices"
)

// Sample has the figures of one thing that was measured several times.
type Sample []float64

// Median returns the median of the figures, or 0 if there are none.
func (s Sample) Median() float64 {
	if len(s) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// Quantile returns the smallest figure that at least a share of all figures does not exceed, or 0 if there are none.
func (s Sample) Quantile(share float64) float64 {
	if len(s) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s))
	return sorted[min(max(int(math.Ceil(share*float64(len(sorted)))), 1), len(sorted))-1]
}

// Range returns the smallest range that has the median of all possible figures with a probability of at least 95%. It
// begins and ends with figures that were measured. With fewer than 6 figures there is no such range.
func (s Sample) Range() (low, high float64, ok bool) {
	rank := lowRank(len(s))
	if rank == 0 {
		return 0, 0, false
	}
	sorted := slices.Sorted(slices.Values(s))
	return sorted[rank-1], sorted[len(sorted)-rank], true
}

// lowRank returns the rank, from 1, of the figure with which the range begins, or 0 if there is none. The range ends with
// the figure of the same rank from above.
//
// Each figure is below the median with a probability of one half. So the range that begins with rank k is above the
// median with the probability that fewer than k of n tosses of a coin are heads, which may be at most 2.5%.
func lowRank(n int) int {
	// More than one of 40 of the 2ⁿ results of n tosses is too many.
	results := new(big.Int).Lsh(big.NewInt(1), uint(n)) //nolint:gosec // A number of figures is not negative.
	fewer, rank := new(big.Int), 0
	for heads := int64(0); heads < int64(n); heads++ {
		fewer.Add(fewer, new(big.Int).Binomial(int64(n), heads))
		if new(big.Int).Mul(fewer, big.NewInt(40)).Cmp(results) > 0 {
			break
		}
		rank++
	}
	return rank
}

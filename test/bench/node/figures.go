package main

import (
	"fmt"
	"slices"
)

// figures are measurements of one thing.
type figures []float64

// median returns the median of the figures, or 0 if there are none.
func (f figures) median() float64 { return f.quantile(0.5) }

// quantile returns the value below which a share of the figures lies. It interpolates between two figures if necessary.
func (f figures) quantile(share float64) float64 {
	if len(f) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(f))
	at := share * float64(len(sorted)-1)
	below := int(at)
	above := min(below+1, len(sorted)-1)
	return sorted[below] + (at-float64(below))*(sorted[above]-sorted[below])
}

// over returns the ratios of the figures to those of the floor, which were measured in the same rounds.
func (f figures) over(floor figures) figures {
	ratios := make(figures, len(f))
	for i := range f {
		ratios[i] = f[i] / floor[i]
	}
	return ratios
}

// middle returns the range of the middle half of the figures, as a text.
func (f figures) middle() string {
	return fmt.Sprintf("%.2f … %.2f", f.quantile(0.25), f.quantile(0.75))
}

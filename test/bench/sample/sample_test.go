package sample

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMedian(t *testing.T) {
	for name, test := range map[string]struct {
		sample Sample
		want   float64
	}{
		"of nothing":         {nil, 0},
		"of one":             {Sample{3}, 3},
		"of an odd number":   {Sample{9, 1, 5}, 5},
		"of an even number":  {Sample{9, 1, 5, 7}, 6},
		"of figures in rows": {Sample{2, 2, 2, 100}, 2},
	} {
		if got := test.sample.Median(); got != test.want {
			t.Errorf("%s: got %v, want %v", name, got, test.want)
		}
	}
}

// The ranks are those of published tables, such as W. J. Conover, Practical Nonparametric Statistics.
func TestRangeBeginsWithTheRankOfTheTables(t *testing.T) {
	for n, want := range map[int]int{0: 0, 1: 0, 5: 0, 6: 1, 8: 1, 9: 2, 15: 4, 20: 6, 30: 10, 50: 18, 100: 40} {
		if got := lowRank(n); got != want {
			t.Errorf("of %d figures: got rank %d, want %d", n, got, want)
		}
	}
}

func TestRangeHasTheFiguresOfItsRanks_AndTheirOrderIsKept(t *testing.T) {
	measured := Sample{50, 10, 30, 20, 60, 40, 80, 70, 90}
	low, high, ok := measured.Range()
	if low != 20 || high != 80 || !ok {
		t.Errorf("got %v to %v, %v; want 20 to 80", low, high, ok)
	}
	if diff := cmp.Diff(Sample{50, 10, 30, 20, 60, 40, 80, 70, 90}, measured); diff != "" {
		t.Errorf("the figures have changed (-want +got):\n%s", diff)
	}
	if _, _, ok := measured[:5].Range(); ok {
		t.Error("5 figures have a range, which they cannot have with 95%")
	}
}

// Figures of a skewed distribution, as times are, whose median is known.
func TestRangeHasTheMedianInAtLeast95OfHundred(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // It must be repeatable.
	const ranges, median = 4000, 0.6931471805599453
	within := 0
	for range ranges {
		var s Sample
		for range 30 {
			s = append(s, random.ExpFloat64())
		}
		if low, high, _ := s.Range(); low <= median && median <= high {
			within++
		}
	}
	// 95.7% are expected of 30 figures; fewer than 94.7% come by chance once in a thousand times.
	if share := float64(within) / ranges; share < 0.947 || share > 0.97 {
		t.Errorf("%.1f%% of the ranges have the median", share*100)
	}
}

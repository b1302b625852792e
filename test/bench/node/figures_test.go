package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMedian(t *testing.T) {
	for name, test := range map[string]struct {
		figures figures
		want    float64
	}{
		"of nothing":         {nil, 0},
		"of one":             {figures{3}, 3},
		"of an odd number":   {figures{9, 1, 5}, 5},
		"of an even number":  {figures{9, 1, 5, 7}, 6},
		"of figures in rows": {figures{2, 2, 2, 100}, 2},
	} {
		if got := test.figures.median(); got != test.want {
			t.Errorf("%s: got %v, want %v", name, got, test.want)
		}
	}
}

func TestQuantileOfAShare(t *testing.T) {
	for share, want := range map[float64]float64{0: 10, 0.25: 20, 0.3: 22, 0.5: 30, 1: 50} {
		if got := (figures{50, 10, 30, 20, 40}).quantile(share); got != want {
			t.Errorf("%v: got %v, want %v", share, got, want)
		}
	}
}

func TestRatiosAreOfTheSameRound_AndOrderIsKept(t *testing.T) {
	measured, floor := figures{10, 30, 90}, figures{10, 20, 30}
	if diff := cmp.Diff(figures{1, 1.5, 3}, measured.over(floor)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := measured.over(floor).middle(); got != "1.25 … 2.25" {
		t.Errorf("got %q", got)
	}
	if diff := cmp.Diff(figures{10, 30, 90}, measured); diff != "" {
		t.Errorf("measuring has changed the figures:\n%s", diff)
	}
}

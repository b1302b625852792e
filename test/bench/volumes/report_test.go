package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/albertofaria/pav/test/bench/sample"
)

func TestTablesHaveRatiosToFloorAndPeers_AndLeaveOutWhatWasNotMeasured(t *testing.T) {
	r := result{
		of: benchCase{
			name: "running", title: "Claim and client", figures: []figure{{"client runs", "s"}, {"agent ready", "s"}},
			subjects: []subject{{name: "emptyDir", role: floor}, {name: "made before", role: reference}, {name: "other", role: peer}, {name: "PaV", role: product}},
		},
		taken: [][]sample.Sample{
			{{0.5, 0.4, 0.6}, {0.75}, {4}, {1, 1, 1, 1, 1.25, 2}},
			{nil, nil, {0}, {2}},
		},
		notes: "That is all.",
	}
	want := `
## Claim and client

Case ` + "`running`" + `.

| client runs     |  n | median, s |    95% range | × floor | × other |
| --------------- | -: | --------: | -----------: | ------: | ------: |
| floor: emptyDir |  3 |     0.500 |            – |    1.00 |    0.12 |
| made before     |  1 |     0.750 |            – |    1.50 |    0.19 |
| other           |  1 |      4.00 |            – |    8.00 |    1.00 |
| PaV             |  6 |      1.00 | 1.00 to 2.00 |    2.00 |    0.25 |

| agent ready |  n | median, s | 95% range | × other |
| ----------- | -: | --------: | --------: | ------: |
| other       |  1 |     0.000 |         – |       – |
| PaV         |  1 |      2.00 |         – |       – |

That is all.
`
	if diff := cmp.Diff(want, r.tables()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestNumbersHaveAboutThreeDigits(t *testing.T) {
	for value, want := range map[float64]string{0.0004: "0.000", 0.0456: "0.046", 9.994: "9.99", 12.34: "12.3", 123.4: "123", 4567: "4567"} {
		if got := (figure{unit: "s"}).text(value); got != want {
			t.Errorf("%v: got %q, want %q", value, got, want)
		}
	}
	if got := (figure{unit: count}).text(7); got != "7" {
		t.Errorf("got %q files", got)
	}
}

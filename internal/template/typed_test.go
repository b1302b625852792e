package template

import (
	"strings"
	"testing"
	"time"
)

func TestParseCapacity(t *testing.T) {
	for text, want := range map[string]int64{"1": 1, "10Gi": 10 << 30, "1e3": 1000, "1.5Ki": 1536, "9223372036854775807": 9223372036854775807} {
		if got, err := ParseCapacity(text); err != nil || got != want {
			t.Errorf("%q: got %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", "0", "-1", "x", "1.5", "100m", "NaN", "1e30", "9223372036854775808",
		"1e2147483647", "1e-2147483647", "1E+999999999", strings.Repeat("1", 1<<20), "0." + strings.Repeat("0", 1<<20) + "1",
	} {
		start := time.Now()
		if got, err := ParseCapacity(text); err == nil {
			t.Errorf("%.20q: got %d, want an error", text, got)
		}
		if took := time.Since(start); took > time.Minute {
			t.Errorf("%.20q took %s", text, took)
		}
	}
}

func TestText(t *testing.T) {
	for want, value := range map[string]any{"x": "x", "10": int64(10), "1.5": 1.5, "1234567.0": 1234567.0, "1e+21": 1e21} {
		if got, err := Text("spec.x", value); err != nil || got != want {
			t.Errorf("%v: got %q, %v, want %q", value, got, err, want)
		}
	}
	for _, value := range []any{nil, true, []any{}, map[string]any{}} {
		if got, err := Text("spec.x", value); err == nil {
			t.Errorf("%v: got %q, want an error", value, got)
		}
	}
}

func TestCount(t *testing.T) {
	for text, want := range map[string]int64{"0": 0, "5": 5, "9223372036854775807": 9223372036854775807} {
		if got, err := Count("spec.x", text); err != nil || got != want {
			t.Errorf("%q: got %d, %v, want %d", text, got, err, want)
		}
	}
	if got, err := Count("spec.x", int64(7)); err != nil || got != 7 {
		t.Errorf("7: got %d, %v", got, err)
	}
	for _, value := range []any{"", "-1", "1.5", "1Gi", "x", "9223372036854775808", int64(-1), 1.5, nil, true, []any{}} {
		if got, err := Count("spec.x", value); err == nil || !strings.HasPrefix(err.Error(), "spec.x: must be a whole number") {
			t.Errorf("%v: got %d, %v, want an error", value, got, err)
		}
	}
}

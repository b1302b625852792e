package machine

import "testing"

func TestValuesAreFoundByTheWholeName(t *testing.T) {
	const text = "model\t\t: 85\nmodel name\t: A Processor: @ 2 GHz\nmodel name\t: Another\n"
	for name, want := range map[string]string{"model": "85", "model name": "A Processor: @ 2 GHz", "name": ""} {
		if got := Value(text, name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

package cli

import "testing"

func TestPhase(t *testing.T) {
	for word, want := range map[string]string{"stage": "staging", "staging": "staging", "delete": "deletion", "other": "other", "": ""} {
		if got := Phase(word); got != want {
			t.Errorf("%q: got %q, want %q", word, got, want)
		}
	}
}

package volume

import "testing"

func TestHandles(t *testing.T) {
	h := &handles{}
	if got := h.take("x", "a"); got != "a" {
		t.Errorf("the first to take a handle: got %q", got)
	}
	if got := h.take("x", "b"); got != "a" {
		t.Errorf("another volume: got %q", got)
	}
	if got := h.take("x", "a"); got != "a" {
		t.Errorf("the same volume again: got %q", got)
	}
	h.release("a")
	if got := h.take("x", "b"); got != "b" {
		t.Errorf("after the release: got %q", got)
	}
}

package volume

import "testing"

func TestHandles(t *testing.T) {
	h := &handleReservations{}
	if got := h.reserve("x", "a"); got != "a" {
		t.Errorf("the first to take a handle: got %q", got)
	}
	if got := h.reserve("x", "b"); got != "a" {
		t.Errorf("another volume: got %q", got)
	}
	if got := h.reserve("x", "a"); got != "a" {
		t.Errorf("the same volume again: got %q", got)
	}
	h.release("a")
	if got := h.reserve("x", "b"); got != "b" {
		t.Errorf("after the release: got %q", got)
	}
}

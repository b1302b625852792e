package reconcile

import "testing"

func TestReservations(t *testing.T) {
	h := &Reservations{}
	if got := h.Reserve("x", "a"); got != "a" {
		t.Errorf("the first to take a handle: got %q", got)
	}
	if got := h.Reserve("x", "b"); got != "a" {
		t.Errorf("another volume: got %q", got)
	}
	if got := h.Reserve("x", "a"); got != "a" {
		t.Errorf("the same volume again: got %q", got)
	}
	h.Release("a")
	if got := h.Reserve("x", "b"); got != "b" {
		t.Errorf("after the release: got %q", got)
	}
}

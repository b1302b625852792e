package observability

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestClip_KeepsBeginningAndEnd(t *testing.T) {
	if got := Clip("short", 10); got != "short" {
		t.Errorf("got %q", got)
	}
	got := Clip("what failed "+strings.Repeat("é", 3000)+" see kubectl logs", MaxNote)
	if len(got) > MaxNote || !utf8.ValidString(got) || !strings.HasPrefix(got, "what failed ") || !strings.HasSuffix(got, " see kubectl logs") {
		t.Errorf("got %d bytes: %q", len(got), got)
	}
}

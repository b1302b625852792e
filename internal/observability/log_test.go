package observability

import (
	"bytes"
	"strings"
	"testing"
)

func TestNewLogger(t *testing.T) {
	for verbosity, want := range []int{1, 2, 3} {
		out := &bytes.Buffer{}
		log := NewLogger(out, LogOptions{Verbosity: verbosity})
		log.Info("said", "key", "value")
		log.V(1).Info("whispered")
		log.V(2).Info("decided")
		if got := strings.Count(out.String(), "\n"); got != want {
			t.Errorf("verbosity %d: got %d lines, want %d", verbosity, got, want)
		}
		if !strings.Contains(out.String(), `"msg":"said","key":"value"`) {
			t.Errorf("not the JSON that was expected: %s", out)
		}
	}
}

func TestLogOptions_Validate(t *testing.T) {
	for verbosity, valid := range map[int]bool{-1: false, 0: true, 2: true, 3: false} {
		if err := (&LogOptions{Verbosity: verbosity}).Validate(); (err == nil) != valid {
			t.Errorf("verbosity %d: %v", verbosity, err)
		}
	}
}

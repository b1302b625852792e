package main

import (
	"testing"

	"github.com/albertofaria/pav/internal/template"
)

func TestCheck(t *testing.T) {
	if err := check(t.Context(), 1, 20_000); err != nil {
		t.Error(err)
	}
}

// A word of a shell cannot contain a NUL.
func TestQuoteOne_NULIsRefused(t *testing.T) {
	filter, err := template.NewEnvironment(template.DefaultLimits()).Compile("{{ text|tobash }}")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"\x00", "a\x00b", "\n\x00'"} {
		if word, err := quoteOne(t.Context(), filter, text); err == nil {
			t.Errorf("tobash of %q is %q, want an error", text, word)
		}
	}
}

// The check detects words that are not quoted correctly.
func TestExecute_NoticesTheCanary(t *testing.T) {
	for _, word := range []string{"$(>canary)", "`>canary`", ";>canary;", "a\n>canary", "'$(>.canary)'\"$(>.canary)\"", "no-such-function; no-such-program"} {
		if _, err := execute(t.Context(), t.TempDir(), prelude+"p "+word+"\n"); err == nil {
			t.Errorf("%q went unnoticed", word)
		}
	}
	if err := compare([]string{"a b"}, []string{"a b"}, []byte("2\x00a\x00")); err == nil {
		t.Error("two words went unnoticed")
	}
}

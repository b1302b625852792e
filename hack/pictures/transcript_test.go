package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRecorded(t *testing.T) {
	const page = "text\n```console\n$ kubectl pav get\nNAME\n```\n\n```console\n$ kubectl pav get all\nALL\n(exit status 1)\n```\n\n```console\n$ cut off\n"
	tests := map[string]struct {
		command, want string
		fails         bool
	}{
		"the first":                        {command: "kubectl pav get", want: "NAME\n"},
		"one whose beginning is a command": {command: "kubectl pav get all", want: "ALL\n(exit status 1)\n"},
		"the beginning of one":             {command: "kubectl pav", fails: true},
		"one that is not there":            {command: "kubectl pav logs", fails: true},
		"one without an end":               {command: "cut off", fails: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := recorded(page, test.command)
			if got != test.want || (err != nil) != test.fails {
				t.Errorf("got %q (%v), want %q", got, err, test.want)
			}
		})
	}
}

// A command that needs no cluster still says what the transcripts say.
func TestTranscripts_OfLint(t *testing.T) {
	page, err := os.ReadFile("../../docs/transcripts.md")
	if err != nil {
		t.Fatal(err)
	}
	const mistakes = "test/demo/transcripts.d/mistakes.yaml"
	want, err := recorded(string(page), "kubectl pav lint "+mistakes)
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir("../..")
	var got bytes.Buffer
	if err := execute(&got, []string{"lint", mistakes}); err == nil {
		t.Error("lint finds no mistakes")
	}
	if diff := cmp.Diff(want, got.String()+"(exit status 1)\n"); diff != "" {
		t.Errorf("'make transcripts' records it again (-transcript +lint):\n%s", diff)
	}
}

func TestOnTerminal(t *testing.T) {
	t.Setenv("NO_COLOR", "1")
	t.Setenv("TERM", "dumb")
	t.Chdir("../..")
	got, err := onTerminal("kubectl pav lint test/demo/transcripts.d/mistakes.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		colours.Bold("test/demo/transcripts.d/mistakes.yaml:6:1:") + " " + colours.Bad("error") + ": ",
		colours.Dim("    6 | ") + "spec:\n",
		colours.Bad("4 errors") + ", " + colours.Warn("1 warning") + "\n" + colours.Dim("(exit status 1)") + "\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("it has no %q:\n%s", want, got)
		}
	}
	for _, wrong := range []string{"kubectl get pods", "kubectl pav no-such-command"} {
		if got, err := onTerminal(wrong); err == nil {
			t.Errorf("%s: got %q, want an error", wrong, got)
		}
	}
}

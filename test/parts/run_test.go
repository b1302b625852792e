package parts

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// makefile has two parts that pass, two parts that pass only if they run at the same time, and one part that fails.
const makefile = `
good:
	@echo "seed $$PAV_SEED"
fine:
ping:
	@touch ping; for i in $$(seq 600); do test -e pong && exit; sleep 0.1; done; exit 1
pong:
	@touch pong; for i in $$(seq 600); do test -e ping && exit; sleep 0.1; done; exit 1
bad:
	@test -e fixed
tests:
	@cat said; exit 1
`

// checkout returns a repository with the script and the Makefile above.
func checkout(t *testing.T) string {
	t.Helper()
	script, err := os.ReadFile("run")
	if err != nil {
		t.Fatal(err)
	}
	top := t.TempDir()
	for name, text := range map[string]string{"test/parts/run": string(script), "Makefile": makefile, ".gitignore": "/bin/\n/p?ng\n/fixed\n"} {
		path := filepath.Join(top, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o755)); err != nil { //nolint:gosec // The script must be executable.
			t.Fatal(err)
		}
	}
	if out, err := exec.CommandContext(t.Context(), "sh", "-ec", "cd '"+top+"' && git init --quiet && git add .").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return top
}

// runParts runs the script. It returns the result of each part, without times and seeds, the output, and whether the
// script succeeded.
func runParts(t *testing.T, top, seed string, args ...string) (results []string, out string, passed bool) {
	t.Helper()
	command := exec.CommandContext(t.Context(), filepath.Join(top, "test/parts/run"), args...)
	command.Env = append(os.Environ(), "PAV_SEED="+seed, "MAKEFLAGS=")
	text, err := command.CombinedOutput()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		t.Fatal(err)
	}
	for _, found := range regexp.MustCompile(`(?m)^  (\w+) +[0-9.-]+  (.*?)(, PAV_SEED=\d+)?$`).FindAllStringSubmatch(string(text), -1) {
		if found[1] != "all" {
			results = append(results, found[1]+" "+found[2])
		}
	}
	return results, string(text), err == nil
}

func TestParts_AreRunAndTimed(t *testing.T) {
	for name, test := range map[string]struct {
		args   []string
		want   []string
		passed bool
	}{
		"all pass":                     {args: []string{"test", "good"}, want: []string{"good passed"}, passed: true},
		"side by side":                 {args: []string{"test", "ping+pong"}, want: []string{"ping passed", "pong passed"}, passed: true},
		"side by side, and in turn":    {args: []string{"test", "good,ping+pong,fine"}, want: []string{"good passed", "ping passed", "pong passed", "fine passed"}, passed: true},
		"nothing follows one in turn":  {args: []string{"test", "bad,fine+good"}, want: []string{"bad FAILED", "fine not run", "good passed"}},
		"nothing follows a failure":    {args: []string{"test", "bad", "good"}, want: []string{"bad FAILED", "good not run"}},
		"what runs beside one ends":    {args: []string{"test", "bad+good"}, want: []string{"bad FAILED", "good passed"}},
		"a long run goes on after one": {args: []string{"--long", "test-long", "bad", "good"}, want: []string{"bad FAILED", "good passed"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, out, passed := runParts(t, checkout(t), "", test.args...)
			if !slices.Equal(got, test.want) || passed != test.passed {
				t.Errorf("it passed: %t, want %t; parts %q, want %q:\n%s", passed, test.passed, got, test.want, out)
			}
		})
	}
}

// What failed tests said is repeated at the end: tests that run side by side say it among much else.
func TestParts_ThatFail_SayAtTheEndWhatFailed(t *testing.T) {
	const verbose = `=== RUN   TestRight
=== RUN   TestWrong
=== RUN   TestWrong/part
=== NAME  TestWrong/part
    wrong_test.go:1: got 1:
        but want 2
        and not 3
    harness_test.go:2: to explain the failure: get pods
        many of them
=== NAME  TestRight
    right_test.go:1: took 3 s
        as always
--- PASS: TestRight (3.00s)
--- FAIL: TestWrong (0.00s)
    --- FAIL: TestWrong/part (1.00s)
FAIL
`
	const brief = `--- FAIL: TestWrong (0.00s)
    --- FAIL: TestWrong/part (1.00s)
    wrong_test.go:1: got 1:
        but want 2
        and not 3
    harness_test.go:2: to explain the failure: get pods
        many of them
FAIL
`
	const want = "--- FAIL: TestWrong (0.00s)\n    --- FAIL: TestWrong/part (1.00s)\n    wrong_test.go:1: got 1:\n        but want 2\n        and not 3\n"
	for name, said := range map[string]string{"verbose": verbose, "brief": brief} {
		t.Run(name, func(t *testing.T) {
			top := checkout(t)
			if err := os.WriteFile(filepath.Join(top, "said"), []byte(said), 0o600); err != nil {
				t.Fatal(err)
			}
			_, out, _ := runParts(t, top, "", "test", "tests")
			_, summary, _ := strings.Cut(out, "minutes  result\n")
			if !strings.Contains(summary, want) {
				t.Errorf("the summary is %q, want in it %q", summary, want)
			}
			for _, other := range []string{"TestRight", "took 3 s", "as always", "get pods", "many of them"} {
				if strings.Contains(summary, other) {
					t.Errorf("the summary is %q, want nothing in it of %q", summary, other)
				}
			}
		})
	}
}

func TestPartsOfALongRun_AreNotRepeated(t *testing.T) {
	top := checkout(t)
	steps := []struct {
		name, seed string
		change     string // a file that is created before the run
		want       []string
	}{
		{name: "the first run", want: []string{"good passed", "bad FAILED"}},
		{name: "what failed is repeated", change: "fixed", want: []string{"good passed before", "bad passed"}},
		{name: "a seed is asked for", seed: "7", want: []string{"good passed", "bad passed"}},
		{name: "nothing is left to do", want: []string{"good passed before", "bad passed before"}},
		{name: "a file has changed", change: "added", want: []string{"good passed", "bad passed"}},
	}
	for _, step := range steps {
		if step.change != "" {
			if err := os.WriteFile(filepath.Join(top, step.change), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		got, out, _ := runParts(t, top, step.seed, "--long", "test-long", "good", "bad")
		if !slices.Equal(got, step.want) {
			t.Errorf("%s: parts %q, want %q:\n%s", step.name, got, step.want, out)
		}
		if step.seed != "" && !strings.Contains(out, "seed 7\n") {
			t.Errorf("%s: the parts have another seed:\n%s", step.name, out)
		}
	}
}

func TestSlow_SaysWhetherCommandsTakeLong(t *testing.T) {
	for command, want := range map[string]string{"sleep 0.01": "slow\n", ":": ""} { // the latter is no process
		out, err := exec.CommandContext(t.Context(), "./slow", strings.Fields(command)...).Output() //nolint:gosec // These are the commands above.
		if err != nil || string(out) != want {
			t.Errorf("%s: got %q, %v, want %q", command, out, err, want)
		}
	}
}

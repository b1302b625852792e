package doctor

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/albertofaria/pav/internal/kubectl/cli"
	"github.com/albertofaria/pav/internal/kubectl/status"
)

func TestWrite_IsAlignedText(t *testing.T) {
	step := status.Step{Text: "see why", Command: "kubectl describe node n\x1b[31m"}
	for name, test := range map[string]struct {
		rows []Row
		want string
	}{
		"all is well": {[]Row{{Check: "webhooks", Result: OK, Message: "all 3"}}, "ok   webhooks   all 3\n\nall is well\n"},
		"a problem, with the next step": {
			[]Row{{Check: "webhooks", Result: OK, Message: "all 3"}, {Check: "node agents", Result: Problem, Message: "two\nlines", Next: []status.Step{step}}},
			"ok        webhooks      all 3\nproblem   node agents   two | lines\n                        see why: kubectl describe node n[31m\n\n1 problem\n",
		},
		"unknown":               {[]Row{{Check: "c", Result: Unknown, Message: "you may not"}}, "unknown   c   you may not\n\nno problem was found, but 1 thing is unknown\n"},
		"problems, and unknown": {[]Row{{Result: Problem}, {Result: Problem}, {Result: Unknown}, {Result: Unknown}}, "problem\nproblem\nunknown\nunknown\n\n2 problems; 2 things are unknown\n"},
	} {
		t.Run(name, func(t *testing.T) {
			streams, _, out, _ := genericiooptions.NewTestIOStreams()
			if err := write(&cli.Env{IOStreams: streams}, &cli.Output{}, &Report{Rows: test.rows}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, out.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestWrite_ForPrograms(t *testing.T) {
	streams, _, out, _ := genericiooptions.NewTestIOStreams()
	output := &cli.Output{}
	if err := output.Set("yaml"); err != nil {
		t.Fatal(err)
	}
	report := &Report{Result: Problem, Version: "0.2.0", Namespace: "pav", Rows: []Row{{Check: "c", Result: Problem, Message: "m", Next: []status.Step{{Text: "t", Command: "x"}}}}}
	if err := write(&cli.Env{IOStreams: streams}, output, report); err != nil {
		t.Fatal(err)
	}
	want := "namespace: pav\nresult: problem\nrows:\n- check: c\n  message: m\n  next:\n  - command: x\n    text: t\n  result: problem\nversion: 0.2.0\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestExitOf(t *testing.T) {
	for result, want := range map[Result]int{OK: 0, Problem: 1, Unknown: 2} {
		code := 0
		if exit, is := errors.AsType[*cli.ExitError](exitOf(&Report{Result: result})); is {
			code = exit.Code
		}
		if code != want {
			t.Errorf("%s: exit status %d, want %d", result, code, want)
		}
	}
}

// Command jinja evaluates cases of the acceptance data with PaV's template engine.
//
// It reads the cases from standard input, one JSON object per line. A line may define contexts, to which later lines
// can refer by name:
//
//	{"contexts": {"small": {"x": 1}}}
//	{"id": "a-1", "cat": "a", "template": "{{ x }}", "ctx": "small", "expect": {"ok": "1", "yaml": false}}
//
// It writes one line for each case to standard output, with the outcome and with "pass". The latter says whether the
// outcome is an expected one (expect, expect_sync or expect_303), and is null if the case has none of these. It writes
// a summary to standard error. The exit status is 1 if any case fails, and 2 if a line is invalid.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"

	"github.com/albertofaria/pav/test/jinja/cases"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt) //nolint:forbidigo // The root context is created here.
	total, err := run(ctx, os.Stdin, os.Stdout)
	stop()
	fmt.Fprint(os.Stderr, total)
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "jinja:", err)
		os.Exit(2)
	case total.failed() > 0:
		os.Exit(1)
	}
}

// answer is one line of the output, for one case.
type answer struct {
	ID   string        `json:"id"`
	Got  cases.Outcome `json:"got"`
	Pass *bool         `json:"pass"`
}

func run(ctx context.Context, in io.Reader, out io.Writer) (summary, error) {
	total := summary{}
	buffered := bufio.NewWriter(out)
	encoder := json.NewEncoder(buffered)
	encoder.SetEscapeHTML(false)
	for c, err := range cases.NewReader(in).All() {
		if err = errors.Join(err, ctx.Err()); err != nil {
			return total, errors.Join(err, buffered.Flush())
		}
		result := answer{ID: c.ID, Got: cases.Evaluate(ctx, c.Template, c.Context)}
		if len(c.Expected) > 0 {
			pass := c.Passes(result.Got)
			result.Pass = &pass
		}
		total.add(c, result)
		if err := encoder.Encode(result); err != nil {
			return total, err
		}
	}
	return total, buffered.Flush()
}

// summary has the counts of each category.
type summary map[string]*count

type count struct{ passed, failed, wrongStage, unjudged int }

func (s summary) add(c cases.Case, result answer) {
	if s[c.Category] == nil {
		s[c.Category] = &count{}
	}
	n := s[c.Category]
	switch {
	case result.Pass == nil:
		n.unjudged++
	case *result.Pass:
		n.passed++
	default:
		n.failed++
		if c.Verdict(result.Got) == cases.WrongStage {
			n.wrongStage++
		}
	}
}

func (s summary) failed() int {
	failed := 0
	for _, n := range s {
		failed += n.failed
	}
	return failed
}

// String returns a line for each category and a line for the total. The column "stage only" counts failed cases with
// the expected error at another stage.
func (s summary) String() string {
	var out strings.Builder
	fmt.Fprintf(&out, "%-20s %8s %8s %12s %10s\n", "category", "passed", "failed", "(stage only)", "unjudged")
	line := func(name string, n count) {
		fmt.Fprintf(&out, "%-20s %8d %8d %12d %10d\n", name, n.passed, n.failed, n.wrongStage, n.unjudged)
	}
	all := count{}
	for _, category := range slices.Sorted(maps.Keys(s)) {
		n := *s[category]
		line(category, n)
		all = count{all.passed + n.passed, all.failed + n.failed, all.wrongStage + n.wrongStage, all.unjudged + n.unjudged}
	}
	line("total", all)
	return out.String()
}

package main

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/albertofaria/pav/test/jinja/cases"
	"github.com/albertofaria/pav/test/jinja/generate"
	"github.com/albertofaria/pav/test/jinja/oracle"
)

type options struct {
	seed, from, cases   uint64
	oracles, reductions int
	verbose             bool
	logf                func(format string, arguments ...any)
}

const (
	batchSize     = 128
	progressEvery = 5 * time.Second
)

// fuzzer is the state of one run.
type fuzzer struct {
	options
	// next is the number of the next case that no worker has taken yet.
	next atomic.Uint64

	mu     sync.Mutex
	report *report
}

func fuzz(ctx context.Context, o options) (*report, error) {
	f := &fuzzer{options: o, report: newReport(o.seed)}
	f.next.Store(o.from)
	stopped := f.showProgress(ctx)
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var workers sync.WaitGroup
	for range o.oracles {
		workers.Go(func() {
			if err := f.work(ctx); err != nil {
				fail(err)
			}
		})
	}
	workers.Wait()
	stopped()
	return f.report, context.Cause(ctx)
}

// work handles batches until none is left.
func (f *fuzzer) work(ctx context.Context) error {
	var jinja oracle.Oracle
	defer jinja.Close()
	for {
		end := f.next.Add(batchSize)
		start, last := end-batchSize, f.from+f.cases
		if start >= last {
			return nil
		}
		if err := f.batch(ctx, &jinja, start, min(end, last)); err != nil {
			return err
		}
	}
}

func (f *fuzzer) batch(ctx context.Context, jinja *oracle.Oracle, start, end uint64) error {
	questions := make([]oracle.Question, 0, end-start)
	for number := start; number < end; number++ {
		c := generate.New(f.seed, number)
		questions = append(questions, oracle.Question{Template: c.Template, Context: c.Context})
	}
	answers, err := jinja.Ask(ctx, questions)
	if err != nil {
		return err
	}
	for i, question := range questions {
		got := evaluate(ctx, question)
		if err := ctx.Err(); err != nil {
			return err
		}
		number := start + uint64(i)
		if f.verbose {
			f.show(number, question, answers[i], got)
		}
		if !f.note(number, question, answers[i], got) {
			continue
		}
		pav := func(q oracle.Question) cases.Outcome { return evaluate(ctx, q) }
		small := reduce(ctx, jinja, pav, difference{question, answers[i], got})
		f.mu.Lock()
		f.report.group(number, small)
		f.mu.Unlock()
	}
	return nil
}

// note counts a case, and reports whether it is a difference that should be reduced.
func (f *fuzzer) note(number uint64, question oracle.Question, want, got cases.Outcome) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.report.count(number, question, want, got) {
		return false
	}
	f.reductions--
	return f.reductions >= 0
}

func (f *fuzzer) show(number uint64, question oracle.Question, want, got cases.Outcome) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.logf("%d: %q\n  in   %s\n  want %s\n  got  %s\n", number, question.Template, question.Context, want, got)
}

// showProgress prints a line from time to time. The returned function stops it.
func (f *fuzzer) showProgress(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	began := time.Now()
	var done sync.WaitGroup
	done.Go(func() {
		ticker := time.NewTicker(progressEvery)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				f.mu.Lock()
				f.logf("%s", f.report.progress(f.cases, time.Since(began)))
				f.mu.Unlock()
			}
		}
	})
	return func() { cancel(); done.Wait() }
}

func evaluate(ctx context.Context, question oracle.Question) cases.Outcome {
	variables, err := cases.DecodeContext(question.Context)
	if err != nil {
		return cases.Outcome{Class: "context", Message: err.Error()}
	}
	return cases.Evaluate(ctx, question.Template, variables)
}

// differs reports whether got differs from the outcome of real Jinja2 without an explanation.
func differs(question oracle.Question, want, got cases.Outcome) bool {
	return isComparable(want) && cases.Judge(want, got) != cases.Same && explain(question, want, got) == ""
}

// isComparable reports whether an outcome of real Jinja2 can be compared. It cannot if Python gave up, or if the text
// contains the memory address of an object.
func isComparable(want cases.Outcome) bool {
	return want.Class != cases.ClassLimit && !strings.Contains(want.Text, " at 0x")
}

package sandbox

import (
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/albertofaria/pav/test/jinja/cases"
)

// Limits for one template. The engine stops a template after 1.5 s. On an idle machine, the evaluation ends within 2 s.
// On a busy machine, which runs other tests at the same time, it can take a while until the evaluation gets a processor
// again.
const (
	maxTime   = 6 * time.Second
	maxMemory = 64 << 20
)

const (
	// secret is in the context, and sourceText is in the source. Errors must contain neither.
	secret     = "hunter2-in-the-context"
	sourceText = "hunter2-in-the-source"
)

// hostile is a template that asks for too much. It must give an error. If result is true, it may also give a correct
// result.
type hostile struct {
	template string
	result   bool
}

func variables(tb testing.TB) any {
	tb.Helper()
	decoded, err := cases.DecodeContext([]byte(`{
		"secret": "` + secret + `", "d": {"a": 1, "secret": "` + secret + `"}, "words": ["` + secret + `", "b"],
		"nums": [3, 1, 2], "s": "text", "x": 2.5, "tree": [{"kids": [{"kids": []}]}]}`))
	if err != nil {
		tb.Fatal(err)
	}
	return decoded
}

// While other templates are evaluated, a hostile template ends in time, and its error contains no secrets.
func TestHostile(t *testing.T) {
	stop := renderHonestOnes(t)
	defer stop()
	context := variables(t)
	for _, name := range slices.Sorted(maps.Keys(hostiles)) {
		h := hostiles[name]
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			got, ended := evaluate(t, "{# "+sourceText+" #}"+h.template, context)
			if !ended {
				t.Fatalf("it does not end")
			}
			if took := time.Since(began); took > maxTime {
				t.Errorf("it takes %s", took)
			}
			if got.Class == "" && !h.result {
				t.Errorf("it yields %d bytes, and no error", len(got.Text))
			}
			if strings.Contains(got.Message, secret) || strings.Contains(got.Message, sourceText) {
				t.Errorf("its error tells too much: %s", got.Message)
			}
		})
	}
}

// A hostile template does not exceed the memory limit.
func TestHostile_Memory(t *testing.T) {
	context := variables(t)
	for _, name := range slices.Sorted(maps.Keys(hostiles)) {
		h := hostiles[name]
		t.Run(name, func(t *testing.T) {
			if used := uses(t, func() { evaluate(t, h.template, context) }); used > maxMemory {
				t.Errorf("it uses %d MiB", used>>20)
			}
		})
	}
}

// evaluate evaluates a template. ended is false if the evaluation does not end.
func evaluate(t *testing.T, source string, context any) (got cases.Outcome, ended bool) {
	t.Helper()
	done := make(chan cases.Outcome, 1)
	go func() { done <- cases.Evaluate(t.Context(), source, context) }()
	select {
	case got = <-done:
		return got, true
	case <-time.After(3 * maxTime):
		return cases.Outcome{}, false
	}
}

// renderHonestOnes evaluates cases of the corpus repeatedly. The returned function stops it. It fails the test if the
// outcome of a case is not an expected one.
func renderHonestOnes(t *testing.T) (stop func()) {
	t.Helper()
	honest := corpus(t)
	stopped := make(chan struct{})
	var rendered atomic.Int64
	var workers sync.WaitGroup
	workers.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stopped:
				return
			default:
			}
			c := honest[i%len(honest)]
			if got := cases.Evaluate(t.Context(), c.Template, c.Context); !c.Passes(got) {
				t.Errorf("meanwhile, %s (%q) gives %s, want %s", c.ID, c.Template, got, c.Expected[0])
				return
			}
			rendered.Add(1)
		}
	})
	return func() {
		close(stopped)
		workers.Wait()
		t.Logf("%d other templates were evaluated meanwhile", rendered.Load())
	}
}

// corpus returns the cases that pass when they are evaluated alone.
func corpus(tb testing.TB) []cases.Case {
	tb.Helper()
	file, err := os.Open("../testdata/corpus.jsonl")
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	var all []cases.Case
	for c, err := range cases.NewReader(file).All() {
		if err != nil {
			tb.Fatal(err)
		}
		all = append(all, c)
	}
	return slices.DeleteFunc(all, func(c cases.Case) bool { return !c.Passes(cases.Evaluate(tb.Context(), c.Template, c.Context)) })
}

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

// What one template may take. It is stopped after 1.5 s, and on a machine that has nothing else to do it is
// over within 2 s; a busy one, which runs other tests beside, takes a while to give it the processor back.
const (
	maxTime   = 6 * time.Second
	maxMemory = 64 << 20
)

const (
	// secret is in the context, and sourceText in the source; errors have neither.
	secret     = "hunter2-in-the-context"
	sourceText = "hunter2-in-the-source"
)

// hostile is a template that asks for too much. It yields an error, or, where result says so, an honest result.
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

// A hostile template ends in time and in bounds, and its error tells nothing, while others are evaluated.
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

// A hostile template uses no more memory than it may.
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

// evaluate evaluates a template; it says so if it does not come to an end.
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

// renderHonestOnes evaluates cases of the corpus, again and again, until what it returns is called. It
// fails the test if one of them yields anything but what is expected.
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

// corpus returns cases that pass on their own.
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

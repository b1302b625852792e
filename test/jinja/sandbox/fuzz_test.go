package sandbox

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/albertofaria/pav/internal/template"
	"github.com/albertofaria/pav/test/jinja/cases"
)

// maxFuzzTime is the time limit for one source, even on a busy machine.
const maxFuzzTime = 10 * time.Second

// FuzzCompile compiles arbitrary sources.
func FuzzCompile(f *testing.F) {
	environment := template.NewEnvironment(template.DefaultLimits())
	seed(f)
	f.Fuzz(func(t *testing.T, source string) {
		bounded(t, func() {
			if _, err := environment.Compile(source); err != nil && err.Error() == "" {
				t.Error("an error says nothing")
			}
		})
	})
}

// FuzzSurvey surveys arbitrary sources.
func FuzzSurvey(f *testing.F) {
	environment, q := template.NewEnvironment(template.DefaultLimits()), asked(variables(f))
	seed(f)
	f.Fuzz(func(t *testing.T, source string) {
		bounded(t, func() { environment.Survey(source, q) })
	})
}

// FuzzRender evaluates arbitrary sources twice, and compares the results.
func FuzzRender(f *testing.F) {
	context := variables(f)
	seed(f)
	f.Fuzz(func(t *testing.T, source string) {
		var first cases.Outcome
		bounded(t, func() { first = cases.Evaluate(t.Context(), source, context) })
		if second := cases.Evaluate(t.Context(), source, context); cases.Judge(first, second) != cases.Same {
			t.Errorf("it gives %s, and then %s", first, second)
		}
	})
}

// bounded fails the test if a call takes too long or uses too much memory. The measurement of memory is valid because
// the fuzzer's worker processes do nothing else at the same time.
func bounded(t *testing.T, call func()) {
	t.Helper()
	var took time.Duration
	used := uses(t, func() {
		began := time.Now()
		call()
		if took == 0 {
			took = time.Since(began)
		}
	})
	if took > maxFuzzTime {
		t.Errorf("it takes %s", took)
	}
	if used > maxMemory {
		t.Errorf("it uses %d MiB", used>>20)
	}
}

// seed adds the seed corpus.
func seed(f *testing.F) {
	f.Helper()
	for i, c := range corpus(f) {
		if i%4 == 0 {
			f.Add(c.Template)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(hostiles)) {
		if h := hostiles[name]; len(h.template) < 1000 {
			f.Add(h.template)
		}
	}
}

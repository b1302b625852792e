package sandbox

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/albertofaria/pav/internal/template"
	"github.com/albertofaria/pav/jinja"
	"github.com/albertofaria/pav/jinja/py"
	"github.com/albertofaria/pav/test/jinja/cases"
)

// maxSurveyTime is the time limit for the survey of any template.
const maxSurveyTime = maxTime

// asked returns a question about all variables of the given context.
func asked(context any) jinja.Question {
	q := jinja.Question{Names: map[string]bool{"get_pvc": true}, Functions: map[string]bool{"get_pvc": true}, Words: map[string]bool{"tobash": true}}
	if members, ok := context.(py.Object); ok {
		for _, member := range members {
			q.Names[member.Key] = true
		}
	}
	q.Objects = q.Names
	return q
}

// A survey of a hostile template stays within the limits of time and memory.
func TestSurvey_Hostile(t *testing.T) {
	environment, q := template.NewEnvironment(template.DefaultLimits()), asked(variables(t))
	for _, name := range slices.Sorted(maps.Keys(hostiles)) {
		t.Run(name, func(t *testing.T) {
			var took time.Duration
			used := uses(t, func() {
				began := time.Now()
				environment.Survey(hostiles[name].template, q)
				took = time.Since(began)
			})
			if took > maxSurveyTime {
				t.Errorf("it takes %s", took)
			}
			if used > maxMemory {
				t.Errorf("it uses %d MiB", used>>20)
			}
		})
	}
}

// meantMissing are names that are intentionally undefined in the corpus. unmet are the cases that render although they
// have a mistake, because the render does not reach the mistake.
var (
	meantMissing = map[string]bool{"nope": true, "nope2": true, "undefined_thing": true, "raise_error": true}
	unmet        = map[string]bool{"errors_runtime-096": true, "errors_runtime-097": true, "set_ns-042": true}
)

// For a template that renders, a survey reports nothing but intentionally undefined names.
func TestSurvey_Corpus(t *testing.T) {
	environment := template.NewEnvironment(template.DefaultLimits())
	surveyed := 0
	for _, c := range corpus(t) {
		if unmet[c.ID] || cases.Evaluate(t.Context(), c.Template, c.Context).Class != "" {
			continue
		}
		surveyed++
		survey := environment.Survey(c.Template, asked(c.Context))
		for _, problem := range survey.Problems {
			t.Errorf("%s: %q: %s", c.ID, c.Template, problem)
		}
		for _, unknown := range survey.Unknown {
			if !unknown.Harmless && !meantMissing[unknown.Name] {
				t.Errorf("%s: %q: %s", c.ID, c.Template, unknown.Name)
			}
		}
	}
	if surveyed < 1400 {
		t.Errorf("only %d templates render", surveyed)
	}
}

// If a part of a variable is in the output, the survey has reported a flow from that variable.
func TestSurvey_MissesNoFlow(t *testing.T) {
	environment := template.NewEnvironment(template.DefaultLimits())
	found := 0
	for _, c := range corpus(t) {
		members, ok := c.Context.(py.Object)
		if !ok {
			continue
		}
		marked := make(py.Object, len(members))
		for i, member := range members {
			marked[i] = py.Member{Key: member.Key, Value: mark(member.Value, marker(i))}
		}
		got := cases.Evaluate(t.Context(), c.Template, marked)
		if got.Class != "" {
			continue
		}
		told := map[string]bool{}
		for _, flow := range environment.Survey(c.Template, asked(c.Context)).Flows {
			told[flow.Root] = true
		}
		for i, member := range members {
			if strings.Contains(strings.ToLower(got.Text), marker(i)) {
				found++
				if !told[member.Key] {
					t.Errorf("%s: %q prints a part of %s", c.ID, c.Template, member.Key)
				}
			}
		}
	}
	if found < 150 {
		t.Errorf("only %d templates print a part of a variable", found)
	}
}

func marker(i int) string { return fmt.Sprintf("zq%dqz", i) }

// mark returns a copy of data in which each string, except for keys, is replaced.
func mark(data any, text string) any {
	switch v := data.(type) {
	case string:
		return text
	case []any:
		marked := make([]any, len(v))
		for i, item := range v {
			marked[i] = mark(item, text)
		}
		return marked
	case py.Object:
		marked := make(py.Object, len(v))
		for i, member := range v {
			marked[i] = py.Member{Key: member.Key, Value: mark(member.Value, text)}
		}
		return marked
	default:
		return data
	}
}

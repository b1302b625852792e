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

// maxSurveyTime is how long looking at a template may take, whatever it is.
const maxSurveyTime = maxTime

// asked returns a question about templates with that context: all of it is of interest.
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

// No template, however hostile, is too much for a survey.
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

// meantMissing are the names that the corpus means not to be there, and unmet the cases that render although they have
// a mistake: the render does not meet it.
var (
	meantMissing = map[string]bool{"nope": true, "nope2": true, "undefined_thing": true, "raise_error": true}
	unmet        = map[string]bool{"errors_runtime-096": true, "errors_runtime-097": true, "set_ns-042": true}
)

// Of a template that renders, a survey reports nothing else.
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

// Whatever of a variable is in the output, a survey has told of.
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

// mark returns data with all strings in it replaced, but for keys.
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

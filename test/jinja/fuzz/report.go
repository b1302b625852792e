package main

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/albertofaria/pav/test/jinja/cases"
	"github.com/albertofaria/pav/test/jinja/oracle"
)

// report has the results of a run.
type report struct {
	seed        uint64
	compared    int
	rendered    int
	classes     map[string]int
	unclear     int
	explained   map[string]int
	differences int
	groups      map[string]*group
	// unreduced are the numbers of the first differences that have not been reduced.
	unreduced []uint64
	// symptoms counts differences by their symptom, before they are reduced.
	symptoms map[string]int
}

// group is a group of similar differences.
type group struct {
	numbers  []uint64
	smallest difference
}

// difference is a template for which the engines have different outcomes.
type difference struct {
	question  oracle.Question
	want, got cases.Outcome
}

func newReport(seed uint64) *report {
	return &report{seed: seed, classes: map[string]int{}, explained: map[string]int{}, groups: map[string]*group{}, symptoms: map[string]int{}}
}

// sameSymptom is the number of differences with the same symptom that are reduced. The reduced forms show whether they
// really are the same.
const sameSymptom = 4

// count counts a case, and reports whether it is a difference that should be reduced.
func (r *report) count(number uint64, question oracle.Question, want, got cases.Outcome) bool {
	if !isComparable(want) {
		r.unclear++
		return false
	}
	r.compared++
	if want.Class == "" {
		r.rendered++
	} else {
		r.classes[want.Class]++
	}
	if cases.Judge(want, got) == cases.Same {
		return false
	}
	if reason := explain(question, want, got); reason != "" {
		r.explained[reason]++
		return false
	}
	r.differences++
	if len(r.unreduced) < 1000 {
		r.unreduced = append(r.unreduced, number)
	}
	look := symptom(want, got)
	r.symptoms[look]++
	return r.symptoms[look] <= sameSymptom
}

// symptom returns a short description of a difference: its errors, or the place where the texts begin to differ.
func symptom(want, got cases.Outcome) string {
	parts := []string{kind(want), shape(want.Message), kind(got), shape(got.Message)}
	if want.Class == "" && got.Class == "" {
		first := 0
		for first < min(len(want.Text), len(got.Text)) && want.Text[first] == got.Text[first] {
			first++
		}
		parts = append(parts, shape(excerpt(want.Text[first:])), shape(excerpt(got.Text[first:])))
	}
	return strings.Join(parts, "\n")
}

func excerpt(text string) string { return text[:min(len(text), 8)] }

// group adds a reduced difference to its group of similar differences.
func (r *report) group(number uint64, d difference) {
	r.unreduced = slices.DeleteFunc(r.unreduced, func(n uint64) bool { return n == number })
	key := kind(d.want) + "/" + kind(d.got) + " " + shape(d.question.Template)
	g := r.groups[key]
	if g == nil {
		g = &group{smallest: d}
		r.groups[key] = g
	}
	g.numbers = append(g.numbers, number)
	if len(d.question.Template) < len(g.smallest.question.Template) {
		g.smallest = d
	}
}

// kind returns the part of an outcome that must be the same in similar differences.
func kind(o cases.Outcome) string {
	if o.Class == "" {
		return "ok"
	}
	return o.Class + " at " + o.Stage
}

var (
	variables = regexp.MustCompile(`\b(?:[a-z]|nl|nums|fl|words|mixed|empty|nested|pairs|pods|tree|big)\b`)
	literals  = regexp.MustCompile(`'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"`)
	numbers   = regexp.MustCompile(`\b\d[\w.]*`)
	padding   = regexp.MustCompile(`\s+`)
)

// shape returns a template without its literals and without the names of its variables.
func shape(template string) string {
	template = literals.ReplaceAllString(template, "''")
	template = variables.ReplaceAllString(template, "x")
	template = numbers.ReplaceAllString(template, "0")
	return padding.ReplaceAllString(template, " ")
}

func (r *report) progress(of uint64, elapsed time.Duration) string {
	done := r.compared + r.unclear
	return fmt.Sprintf("%d of %d cases, %.0f/s, %d%% rendered, %d differences",
		done, of, float64(done)/elapsed.Seconds(), percent(r.rendered, r.compared), r.differences)
}

func percent(part, whole int) int { return 100 * part / max(whole, 1) }

// String returns the differences and the statistics of the run.
func (r *report) String() string {
	var out strings.Builder
	groups := slices.SortedFunc(maps.Values(r.groups), func(a, b *group) int {
		return cmp.Or(cmp.Compare(len(b.numbers), len(a.numbers)), cmp.Compare(a.smallest.question.Template, b.smallest.question.Template))
	})
	for _, g := range groups {
		d := g.smallest
		fmt.Fprintf(&out, "\n%d differences such as that of case %d\n  template %q\n  context  %s\n  jinja2   %s\n  pav      %s\n",
			len(g.numbers), g.numbers[0], d.question.Template, d.question.Context, d.want, d.got)
	}
	if len(r.unreduced) > 0 {
		fmt.Fprintf(&out, "\nnot made small, as most look the same: %d, the first of which are cases %v\n", len(r.unreduced), r.unreduced[:min(len(r.unreduced), 20)])
	}
	fmt.Fprintf(&out, "\nseed %d: %d cases compared, of which %d%% rendered", r.seed, r.compared, percent(r.rendered, r.compared))
	for _, class := range slices.Sorted(maps.Keys(r.classes)) {
		fmt.Fprintf(&out, ", %d %s", r.classes[class], class)
	}
	fmt.Fprintf(&out, "; %d not comparable\n", r.unclear)
	for _, reason := range slices.Sorted(maps.Keys(r.explained)) {
		fmt.Fprintf(&out, "%d explained: %s\n", r.explained[reason], reason)
	}
	fmt.Fprintf(&out, "%d differences\n", r.differences)
	return out.String()
}

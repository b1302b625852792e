package definition

import (
	"fmt"
	"runtime"
	"time"

	"github.com/albertofaria/pav/internal/template"
)

// Checker checks definitions. It is safe for concurrent use.
type Checker struct {
	limits    template.Limits
	templates *template.Evaluator

	// slots has room for the checks that run at once: each is held to a time, which more would use up for each other.
	slots chan struct{}
}

// NewChecker returns a checker that holds templates to the limits that the agents hold them to.
func NewChecker(limits template.Limits) *Checker {
	return &Checker{
		limits: limits, templates: template.NewEvaluator(limits),
		slots: make(chan struct{}, runtime.GOMAXPROCS(0)),
	}
}

const (
	// maxFindings is how many errors are told of one definition, and how many warnings.
	maxFindings = 100

	// patience is how many times as long as a field's evaluation a check may take, and longest is how long
	// it may take at all: an API server waits 10 s for admission, which does more than this.
	patience = 4
	longest  = 6 * time.Second
)

// Check says all that can be said about a PavProvisioner without a cluster and without evaluating it.
// Object is the whole object as plain data: nil, bool, int64, float64, string, []any and map[string]any,
// to any depth; also one that no API server would take. The findings are sorted by field, then by place.
// Where there was no time to look at all of it, one of them says so: see [Late].
func (c *Checker) Check(object map[string]any) []Finding {
	k := &check{
		checker: c, deadline: time.Now().Add(min(patience*c.limits.Timeout, longest)),
		analyses: map[string]*template.Analysis{}, said: map[Severity]int{},
	}
	if c.enter(k.deadline) {
		k.object(object)
		<-c.slots
	} else {
		k.giveUp("spec")
	}
	findings := order(k.findings)
	for _, severity := range []Severity{Error, Warning} {
		if k.said[severity] > maxFindings {
			findings = append(findings, Finding{
				Severity: severity, Field: "spec", Message: fmt.Sprintf("there are more %ss than these", severity),
			})
		}
	}
	return findings
}

// enter waits until one of the slots is free, which is then the caller's, or until the deadline.
func (c *Checker) enter(deadline time.Time) bool {
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	select {
	case c.slots <- struct{}{}:
		return true
	case <-timer.C:
		return false
	}
}

// check is one call of Check.
type check struct {
	checker  *Checker
	deadline time.Time

	// late means that the check took too long, which ends it; so does that there are too many errors.
	late bool

	findings []Finding

	// said is how many findings there are of each severity, also of those that are not told.
	said map[Severity]int

	// analyses has, by field, what is known of the strings that are templates.
	analyses map[string]*template.Analysis
}

func (c *check) add(f Finding) {
	c.said[f.Severity]++
	if c.said[f.Severity] <= maxFindings {
		c.findings = append(c.findings, f)
	}
}

// over reports whether nothing more is to be looked at, which it tells of if that is for lack of time.
func (c *check) over(field string) bool {
	if !c.late && !c.full() && time.Now().After(c.deadline) {
		c.giveUp(field)
	}
	return c.late || c.full()
}

// full reports whether there are more errors than are told.
func (c *check) full() bool { return c.said[Error] > maxFindings }

// giveUp tells that not all from a field on was looked at. There is always room for that.
func (c *check) giveUp(field string) {
	c.late = true
	c.findings = append(c.findings, Finding{
		Severity: Warning, Field: "spec", Late: true,
		Message: "not all from " + quote(field) + " on was checked, as that takes too long at present; if the definition is large, make it smaller",
	})
}

func (c *check) errorf(field, format string, args ...any) {
	c.add(Finding{Severity: Error, Field: field, Message: fmt.Sprintf(format, args...)})
}

func (c *check) warnf(field, format string, args ...any) {
	c.add(Finding{Severity: Warning, Field: field, Message: fmt.Sprintf(format, args...)})
}

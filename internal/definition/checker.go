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

	// slots limits the number of concurrent checks: each has a time limit, and too many would use up each other's time.
	slots chan struct{}
}

// NewChecker returns a checker with the template limits of the agents.
func NewChecker(limits template.Limits) *Checker {
	return &Checker{
		limits: limits, templates: template.NewEvaluator(limits),
		slots: make(chan struct{}, runtime.GOMAXPROCS(0)),
	}
}

const (
	// maxFindings is the maximum number of errors that are reported for one definition, and of warnings.
	maxFindings = 100

	// A check may take timeoutFactor times as long as the evaluation of a field, but at most longest: an API server waits
	// 10 s for admission, which does more than this check.
	timeoutFactor = 4
	longest       = 6 * time.Second
)

// Check returns everything that can be found out about a PavProvisioner without a cluster and without evaluating its
// templates.
// Object is the whole object as plain data: nil, bool, int64, float64, string, []any and map[string]any,
// nested to any depth; it may be an object that no API server would accept. The findings are sorted by field, then by
// position. If there was not enough time to check everything, one of them says so: see [Late].
func (c *Checker) Check(object map[string]any) []Finding {
	k := &check{
		checker: c, deadline: time.Now().Add(min(timeoutFactor*c.limits.Timeout, longest)),
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

// enter waits until a slot is free and takes it, or until the deadline.
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

	// late means that the check took too long, which ends it. Too many errors end it as well.
	late bool

	findings []Finding

	// said is the number of findings of each severity, including those that are not reported.
	said map[Severity]int

	// unstaged says that no node has a volume staged while a snapshot of it is created.
	unstaged bool

	// clones says that volumes can be created from other volumes.
	clones bool

	// analyses maps each field whose string is a template to what is known about it.
	analyses map[string]*template.Analysis
}

func (c *check) add(f Finding) {
	c.said[f.Severity]++
	if c.said[f.Severity] <= maxFindings {
		c.findings = append(c.findings, f)
	}
}

// over reports whether the check must end. If the reason is the time limit, it adds the finding that says so.
func (c *check) over(field string) bool {
	if !c.late && !c.full() && time.Now().After(c.deadline) {
		c.giveUp(field)
	}
	return c.late || c.full()
}

// full reports whether there are more errors than are reported.
func (c *check) full() bool { return c.said[Error] > maxFindings }

// giveUp adds the finding that fields from this one on were not checked. maxFindings does not apply to it.
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

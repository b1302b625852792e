package summary

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/onsi/ginkgo/v2/types"
)

// Result is what became of a spec. A greater one outdoes a smaller one where several invocations selected
// the spec: what failed once has failed.
type Result int

const (
	// LeftOut specs were selected by no invocation.
	LeftOut Result = iota
	// Skipped specs were selected, and the suite found that they do not apply.
	Skipped
	// Passed specs ran to their end.
	Passed
	// Failed specs ran and did not pass: they failed, panicked, or were interrupted.
	Failed
)

// Spec is a spec of the driver and what became of it.
type Spec struct {
	// Name is all of its texts, as Ginkgo's focus sees them.
	Name string
	// Suite is the test suite's name without tags ("multiVolume"), Pattern what its volumes are
	// ("Dynamic PV (block volmode)").
	Suite, Pattern string
	Result         Result
	// Reason says why it was skipped, without the driver's name.
	Reason string
	// Failure is the first line of its failure, Location where that was ("test/e2e/…/subpath.go:123").
	Failure, Location string
	// Attempts is how often it ran, in all invocations. Flaky is whether it passed and failed.
	Attempts int
	Flaky    bool
	// Time is what all its attempts took.
	Time time.Duration
}

// Run is what the invocations for a driver came to.
type Run struct {
	// Specs are in the order of their names.
	Specs []Spec
	// Problems are what went wrong outside specs: an interruption, for one, after which specs that were
	// selected look as though they had not been.
	Problems []string
	// Started is when the first invocation did.
	Started time.Time
	// Wall is how long the invocations took, one after the other.
	Wall time.Duration
	// Processes are how many ran the specs, by invocation, in the order of time.
	Processes []int
}

// In gives the specs with a result, in the order of their names.
func (r Run) In(result Result) []Spec {
	return slices.DeleteFunc(slices.Clone(r.Specs), func(s Spec) bool { return s.Result != result })
}

// Merge takes the specs of a driver out of the reports of invocations that selected different ones. Specs of
// anything else are passed over: the suite's program has hundreds that its imports bring along. It is an
// error if the reports have no spec of the driver.
func Merge(driver string, reports []types.Report) (Run, error) {
	reports = slices.Clone(reports)
	slices.SortStableFunc(reports, func(a, b types.Report) int { return a.StartTime.Compare(b.StartTime) })

	run := Run{}
	specs := map[string]Spec{}
	others := map[string]bool{}
	for _, report := range reports {
		if run.Started.IsZero() {
			run.Started = report.StartTime
		}
		run.Wall += report.RunTime
		run.Processes = append(run.Processes, report.SuiteConfig.ParallelTotal)
		run.Problems = append(run.Problems, problems(driver, report)...)
		for _, got := range report.SpecReports {
			if name := driverOf(got); name != driver {
				others[name] = true
				continue
			}
			spec := newSpec(driver, got)
			if known, ok := specs[spec.Name]; ok {
				spec = known.and(spec)
			}
			specs[spec.Name] = spec
		}
	}
	delete(others, "")
	if len(specs) == 0 {
		return Run{}, fmt.Errorf("no spec of driver %q in the reports; they are of drivers %q",
			driver, slices.Sorted(maps.Keys(others)))
	}
	run.Specs = slices.SortedFunc(maps.Values(specs), func(a, b Spec) int { return cmp.Compare(a.Name, b.Name) })
	return run, nil
}

// and merges two results of a spec.
func (s Spec) and(other Spec) Spec {
	merged, lesser := s, other
	if other.Result > s.Result {
		merged, lesser = other, s
	}
	merged.Flaky = s.Flaky || other.Flaky || merged.Result == Failed && lesser.Result == Passed
	merged.Attempts = s.Attempts + other.Attempts
	merged.Time = s.Time + other.Time
	return merged
}

var (
	driverName = regexp.MustCompile(`^External Storage \[Driver: ([^\]]+)\]`)
	// Names of patterns may have brackets of their own; tags of the pattern follow, then the suite's name.
	patternAndSuite = regexp.MustCompile(`\[Testpattern: ([^\[\]]*(?:\[[^\]]*\])?)\](?: \[[^\]]*\])* ([\w-]+)`)
)

// driverOf gives the name of the driver that a spec is of, or nothing.
func driverOf(report types.SpecReport) string {
	if match := driverName.FindStringSubmatch(report.FullText()); match != nil && report.LeafNodeType.Is(types.NodeTypeIt) {
		return match[1]
	}
	return ""
}

func newSpec(driver string, report types.SpecReport) Spec {
	spec := Spec{Name: report.FullText(), Suite: "other"}
	if match := patternAndSuite.FindStringSubmatch(spec.Name); match != nil {
		spec.Pattern, spec.Suite = strings.TrimSpace(match[1]), match[2]
	}
	switch {
	case report.State.Is(types.SpecStatePending), report.State.Is(types.SpecStateSkipped) && report.Failure.Message == "":
		return spec
	case report.State.Is(types.SpecStateSkipped):
		spec.Result, spec.Reason = Skipped, reason(report.Failure.Message, driver)
		return spec
	case report.State.Is(types.SpecStatePassed):
		spec.Result = Passed
	default:
		spec.Result, spec.Failure, spec.Location = Failed, failure(report), location(report.Failure.Location)
	}
	spec.Attempts, spec.Time = max(1, report.NumAttempts), report.RunTime
	// A spec that must pass repeatedly has attempts too, and none of those failed.
	spec.Flaky = spec.Result == Passed && spec.Attempts > 1 && report.MaxMustPassRepeatedly <= 1
	return spec
}

// problems gives what went wrong in an invocation that is no spec's failure.
func problems(driver string, report types.Report) []string {
	var found []string
	explained := report.SuiteSucceeded
	for _, reason := range report.SpecialSuiteFailureReasons {
		found = append(found, "The invocation: "+firstLine(reason))
	}
	for _, got := range report.SpecReports {
		if !got.Failed() {
			continue
		}
		if driverOf(got) == driver {
			explained = true
			continue
		}
		found = append(found, fmt.Sprintf("%s %s: %s (%s)",
			got.LeafNodeType, got.FullText(), failure(got), location(got.Failure.Location)))
	}
	if !explained && len(found) == 0 {
		found = append(found, "An invocation did not succeed, and none of its specs says why.")
	}
	return found
}

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

// Result is the result of a spec. If several invocations selected the spec, the greatest result counts. So a spec that
// failed once has failed.
type Result int

const (
	// LeftOut means that no invocation selected the spec.
	LeftOut Result = iota
	// Skipped means that the spec was selected, and that the suite found that it does not apply.
	Skipped
	// Passed means that the spec ran and passed.
	Passed
	// Failed means that the spec ran and did not pass: it failed, panicked, or was interrupted.
	Failed
)

// Spec is a spec of the driver and its result.
type Spec struct {
	// Name is the full text of the spec, which Ginkgo's focus is matched against.
	Name string
	// Suite is the test suite's name without tags ("multiVolume"). Pattern is the kind of its volumes ("Dynamic PV
	// (block volmode)").
	Suite, Pattern string
	Result         Result
	// Reason is the reason for skipping the spec, without the driver's name.
	Reason string
	// Failure is what failed, in one line or several. Location is the place of the failure ("test/e2e/…/subpath.go:123").
	Failure, Location string
	// Attempts is the number of runs in all invocations. Flaky means that some runs passed and others failed.
	Attempts int
	Flaky    bool
	// Time is the total duration of all attempts.
	Time time.Duration
}

// Run is the merged result of all invocations for a driver.
type Run struct {
	// Specs are sorted by their names.
	Specs []Spec
	// Problems are errors outside specs. After an interruption, for example, specs that were selected look as if they
	// had not been selected.
	Problems []string
	// Started is the start time of the first invocation.
	Started time.Time
	// Wall is the sum of the durations of the invocations.
	Wall time.Duration
	// Processes has the number of parallel processes of each invocation, in the order of their start times.
	Processes []int
}

// In returns the specs with a result, sorted by their names.
func (r Run) In(result Result) []Spec {
	return slices.DeleteFunc(slices.Clone(r.Specs), func(s Spec) bool { return s.Result != result })
}

// Merge merges the results of a driver's specs from the reports of several invocations, which may have selected
// different specs. It ignores all other specs: the suite's program includes hundreds of them through its imports. It
// returns an error if the reports have no spec of the driver.
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

// and returns the merged result of two runs of a spec.
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
	// The name of a pattern may contain brackets. It is followed by the tags of the pattern and by the suite's name.
	patternAndSuite = regexp.MustCompile(`\[Testpattern: ([^\[\]]*(?:\[[^\]]*\])?)\](?: \[[^\]]*\])* ([\w-]+)`)
)

// driverOf returns the name of the driver that a spec belongs to, or an empty string.
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
	// A spec with MustPassRepeatedly also has several attempts, but none of them failed.
	spec.Flaky = spec.Result == Passed && spec.Attempts > 1 && report.MaxMustPassRepeatedly <= 1
	return spec
}

// problems returns the errors of an invocation that are not failures of the driver's specs.
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
		found = append(found, fmt.Sprintf("%s %s\n%s: %s",
			got.LeafNodeType, got.FullText(), location(got.Failure.Location), failure(got)))
	}
	if !explained && len(found) == 0 {
		found = append(found, "An invocation did not succeed, and none of its specs says why.")
	}
	return found
}

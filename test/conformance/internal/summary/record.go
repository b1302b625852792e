package summary

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// Count is how many specs came to what.
type Count struct{ Passed, Failed, Skipped, LeftOut int }

func (c *Count) add(result Result) {
	switch result {
	case Passed:
		c.Passed++
	case Failed:
		c.Failed++
	case Skipped:
		c.Skipped++
	case LeftOut:
		c.LeftOut++
	}
}

// Counts gives the counts of all specs, and by suite.
func (r Run) Counts() (total Count, suites map[string]Count) {
	suites = map[string]Count{}
	for _, spec := range r.Specs {
		total.add(spec.Result)
		suite := suites[spec.Suite]
		suite.add(spec.Result)
		suites[spec.Suite] = suite
	}
	return total, suites
}

// Record is how many specs of each suite a run without failures has.
type Record struct {
	Suites map[string]Recorded `json:"suites"`
}

// Recorded is how many specs of a suite pass and are skipped.
type Recorded struct {
	Passed  int `json:"passed"`
	Skipped int `json:"skipped"`
}

// Record gives the run's numbers. A spec that failed counts as one that passed: it ran, and that is what is
// recorded. Suites that were left out as a whole are not in it.
func (r Run) Record() Record {
	record := Record{Suites: map[string]Recorded{}}
	_, suites := r.Counts()
	for name, count := range suites {
		if of := (Recorded{Passed: count.Passed + count.Failed, Skipped: count.Skipped}); of != (Recorded{}) {
			record.Suites[name] = of
		}
	}
	return record
}

// ReadRecord reads what Bytes wrote. An unknown key is an error.
func ReadRecord(data []byte) (Record, error) {
	var record Record
	if err := yaml.UnmarshalStrict(data, &record); err != nil {
		return Record{}, fmt.Errorf("reading the recorded numbers: %w", err)
	}
	return record, nil
}

// Bytes gives the record as YAML, a suite a line, so that its changes read well.
func (r Record) Bytes() []byte {
	var text strings.Builder
	text.WriteString("# How many specs of each suite run and are skipped: written with conformance-report --record.\nsuites:\n")
	for _, name := range slices.Sorted(maps.Keys(r.Suites)) {
		fmt.Fprintf(&text, "  %s: {passed: %d, skipped: %d}\n", name, r.Suites[name].Passed, r.Suites[name].Skipped)
	}
	return []byte(text.String())
}

// Differences gives a sentence for each suite of which another number of specs ran, or was skipped, than is
// recorded, in the order of the suites' names.
func (r Record) Differences(now Record) []string {
	names := map[string]bool{}
	for name := range r.Suites {
		names[name] = true
	}
	for name := range now.Suites {
		names[name] = true
	}
	var found []string
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if then, now := r.Suites[name], now.Suites[name]; then != now {
			found = append(found, fmt.Sprintf("Suite %s: recorded %d specs that ran and %d skipped, now %d and %d.",
				name, then.Passed, then.Skipped, now.Passed, now.Skipped))
		}
	}
	return found
}

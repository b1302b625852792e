package summary

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// Count has the number of specs with each result.
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

// Counts returns the counts of all specs and the counts of each suite.
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

// Record has the expected numbers of specs of each suite, in a run without failures.
type Record struct {
	Suites map[string]Recorded `json:"suites"`
}

// Recorded has the numbers of specs of one suite that pass and that are skipped.
type Recorded struct {
	Passed  int `json:"passed"`
	Skipped int `json:"skipped"`
}

// Record returns the run's numbers. A failed spec counts as passed, because the record is about which specs run. Suites
// without any spec that was selected are not in the record.
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

// ReadRecord reads a record that Bytes wrote. An unknown key is an error.
func ReadRecord(data []byte) (Record, error) {
	var record Record
	if err := yaml.UnmarshalStrict(data, &record); err != nil {
		return Record{}, fmt.Errorf("reading the recorded numbers: %w", err)
	}
	return record, nil
}

// Bytes returns the record as YAML, with one line for each suite, so that diffs are easy to read.
func (r Record) Bytes() []byte {
	var text strings.Builder
	text.WriteString("# How many specs of each suite run and are skipped: written with conformance-report --record.\nsuites:\n")
	for _, name := range slices.Sorted(maps.Keys(r.Suites)) {
		fmt.Fprintf(&text, "  %s: {passed: %d, skipped: %d}\n", name, r.Suites[name].Passed, r.Suites[name].Skipped)
	}
	return []byte(text.String())
}

// Differences returns a sentence for each suite whose number of run or of skipped specs differs from the record. The
// sentences are sorted by the suites' names.
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

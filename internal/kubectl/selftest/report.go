package selftest

import (
	"fmt"
	"strings"
	"time"
)

// Result is how a step went.
type Result string

// The results.
const (
	// Passed means that all is as it should be.
	Passed Result = "passed"

	// Warning means that something was found that may be as its author wants it.
	Warning Result = "warning"

	// Failed means that the provisioner does not do what it should.
	Failed Result = "failed"

	// Skipped means that the step could not be taken, and that this is nobody's mistake.
	Skipped Result = "skipped"
)

// Report is what came of a test. It is what -o json and -o yaml write.
type Report struct {
	// Provisioner is the PavProvisioner of the file, and Name that of its copy, of the StorageClass and of
	// the namespace, all of which were made for the test.
	Provisioner string `json:"provisioner"`
	Name        string `json:"name"`

	// Passed says that no step failed, and that nothing is left.
	Passed bool `json:"passed"`

	// Seconds is how long it all took.
	Seconds float64 `json:"seconds"`

	// Steps are the steps in their order.
	Steps []Step `json:"steps"`

	// Left is what could not be cleaned up.
	Left []Left `json:"left,omitempty"`
}

// Step is how one step went.
type Step struct {
	// Volume is the volume that it was about, as in "Filesystem, ReadWriteMany"; "" if it was about none.
	Volume string `json:"volume,omitempty"`

	// Name says what was done.
	Name string `json:"name"`

	// Result is how it went.
	Result Result `json:"result"`

	// Seconds is how long it took.
	Seconds float64 `json:"seconds"`

	// Message is what was found.
	Message string `json:"message,omitempty"`

	// Details are more lines about it, as of "kubectl pav describe" where it failed.
	Details []string `json:"details,omitempty"`
}

// Left is an object that could not be cleaned up.
type Left struct {
	// Kind, Namespace and Name tell which it is.
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`

	// Why it is still there.
	Why string `json:"why"`

	// Commands are what can be done about it.
	Commands []string `json:"commands"`
}

// count returns how many steps have the result.
func (r *Report) count(result Result) int {
	n := 0
	for i := range r.Steps {
		if r.Steps[i].Result == result {
			n++
		}
	}
	return n
}

// summary returns the report in one line, as in "passed: 14 steps in 21s, 1 warning".
func (r *Report) summary() string {
	word := "passed"
	if !r.Passed {
		word = "failed"
	}
	parts := []string{fmt.Sprintf("%s: %s", word, plural(len(r.Steps)-r.count(Skipped), "step"))}
	for _, other := range []struct {
		result Result
		noun   string
	}{{Failed, "failure"}, {Warning, "warning"}} {
		if n := r.count(other.result); n > 0 {
			parts = append(parts, plural(n, other.noun))
		}
	}
	if n := r.count(Skipped); n > 0 {
		parts = append(parts, fmt.Sprintf("%d skipped", n))
	}
	return strings.Join(parts, ", ")
}

func plural(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

func seconds(d time.Duration) float64 {
	return float64(d.Round(time.Millisecond).Milliseconds()) / 1000
}

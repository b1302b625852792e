package selftest

import (
	"fmt"
	"strings"
	"time"
)

// Result is the result of a step.
type Result string

// The results.
const (
	// Passed means that everything is right.
	Passed Result = "passed"

	// Warning means that the test found something that may be intended.
	Warning Result = "warning"

	// Failed means that the provisioner does not work as it must.
	Failed Result = "failed"

	// Skipped means that the step could not run, and that this is not a mistake.
	Skipped Result = "skipped"
)

// Report is the result of a test. It is the output of -o json and -o yaml.
type Report struct {
	// Provisioner is the PavProvisioner in the file. Name is the name of its copy, of the StorageClass and of the
	// namespace, which were created for the test.
	Provisioner string `json:"provisioner"`
	Name        string `json:"name"`

	// Passed means that no step failed and that nothing is left.
	Passed bool `json:"passed"`

	// Seconds is the total duration.
	Seconds float64 `json:"seconds"`

	// Steps are the steps in the order in which they ran.
	Steps []Step `json:"steps"`

	// Left are the objects that could not be cleaned up.
	Left []Left `json:"left,omitempty"`
}

// Step is the result of one step.
type Step struct {
	// Volume is the step's volume, as in "Filesystem, ReadWriteMany", or the API of its bucket; "" if it has none.
	Volume string `json:"volume,omitempty"`

	// Name is the name of the step.
	Name string `json:"name"`

	// Result is the step's result.
	Result Result `json:"result"`

	// Seconds is the step's duration.
	Seconds float64 `json:"seconds"`

	// Message is the outcome in words.
	Message string `json:"message,omitempty"`

	// Details are more lines about the result, for example the output of "kubectl pav describe" after a failure.
	Details []string `json:"details,omitempty"`
}

// Left is an object that could not be cleaned up.
type Left struct {
	// Kind, Namespace and Name identify the object.
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`

	// Why says why the object still exists.
	Why string `json:"why"`

	// Commands are commands that may help.
	Commands []string `json:"commands"`
}

// count returns the number of steps with the result.
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

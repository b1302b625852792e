package doctor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/albertofaria/pav/internal/kubectl/status"
)

// Result is the result of a check, in one word.
type Result string

// The results. A report has the worst of its rows: a problem, or else what is unknown.
const (
	OK      Result = "ok"
	Unknown Result = "unknown" // it could not be read
	Problem Result = "problem"
)

// Row is one thing that a check found.
type Row struct {
	Check  string `json:"check"`
	Result Result `json:"result"`

	// Message says what is right or wrong, or why that is not known.
	Message string `json:"message"`

	// Next are the steps to take, the best first.
	Next []status.Step `json:"next,omitempty"`
}

// Report is the result of all checks. Its JSON is the output of -o json.
type Report struct {
	Result Result `json:"result"`

	// Version is the version of the plugin, and Namespace that of the agents.
	Version   string `json:"version"`
	Namespace string `json:"namespace"`

	// Rows has at least one row of each check.
	Rows []Row `json:"rows"`
}

// check is a check of an installation. It returns what is wrong or unknown; if that is nothing, well says what is right.
type check struct {
	name  string
	judge func(*Facts) (rows []Row, well string)
}

// checks are the checks, in the order in which one depends on the other.
var checks = []check{
	{"definitions", checkDefinitions},
	{"controller agent", checkController},
	{"versions", checkVersions},
	{"node agents", checkNodeAgents},
	{"drivers", checkDrivers},
	{"webhooks", checkWebhooks},
	{"policies", checkPolicies},
	{"namespaces", checkNamespaces},
	{"provisioners", checkProvisioners},
	{"volumes", checkVolumes},
	{"buckets", checkBuckets},
	{"leftovers", checkLeftovers},
}

// Examine returns the report for the facts. It is a pure function.
func Examine(f *Facts) *Report {
	r := &Report{Result: OK, Version: f.Version, Namespace: f.Namespace}
	for _, c := range checks {
		rows, well := c.judge(f)
		if len(rows) == 0 {
			rows = []Row{{Result: OK, Message: well}}
		}
		for _, row := range rows {
			row.Check = c.name
			r.Rows = append(r.Rows, row)
			if row.Result == Problem || r.Result == OK {
				r.Result = row.Result
			}
		}
	}
	return r
}

// problem returns a row about something that is wrong.
func problem(message string, next ...status.Step) Row {
	return Row{Result: Problem, Message: message, Next: next}
}

// step returns a step whose command has parameters.
func step(text, command string, args ...any) status.Step {
	return status.Step{Text: text, Command: fmt.Sprintf(command, args...)}
}

// reinstall is the step that restores objects of the installation.
func reinstall() status.Step {
	return status.Step{Text: "apply the manifests of the installed version again, or run helm upgrade if Helm installed it",
		Command: "kubectl apply --server-side --force-conflicts -f deployment.yaml"}
}

// mostNames is the number of objects that a message names.
const mostNames = 5

// listed returns names for a message, without repeats: the first of them, and how many more there are.
func listed(names []string) string {
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	more := len(names) - mostNames
	if more <= 0 {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:mostNames], ", "), more)
}

// counted returns a number with a noun.
func counted(n int, noun string) string { return plural(n, noun, noun+"s") }

// plural returns a number with a phrase for one or for many.
func plural(n int, one, many string) string {
	if n == 1 {
		return fmt.Sprintf("%d %s", n, one)
	}
	return fmt.Sprintf("%d %s", n, many)
}

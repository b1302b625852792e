package status

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// State is how a volume is, in one word.
type State string

// The states, the best first.
const (
	Healthy State = "Healthy" // it does what it is for
	Working State = "Working" // PaV or Kubernetes is at it, and nothing is known to be wrong
	Waiting State = "Waiting" // nothing goes on until somebody or something acts
	Failing State = "Failing" // something is wrong
)

// severity orders the states, the best first.
var severity = map[State]int{Healthy: 0, Working: 1, Waiting: 2, Failing: 3}

// NotPaV is the code of a finding about a volume that is no business of PaV's.
const NotPaV = "NotPaV"

// Report is what there is to know about one volume. Its JSON is the output of "describe -o json".
type Report struct {
	// Namespace and Claim are those of the claim; empty for a volume that never had one.
	Namespace string `json:"namespace,omitempty"`
	Claim     string `json:"claim,omitempty"`

	// Volume is the name of the PersistentVolume, which may not exist yet.
	Volume string `json:"volume,omitempty"`

	Provisioner string `json:"provisioner,omitempty"`

	// State is that of the first finding.
	State State `json:"state"`

	// Details are what the objects say, in words.
	Details []Detail `json:"details"`

	// Timeline is what has happened, in the order of time.
	Timeline []Entry `json:"timeline"`

	// Findings are what is the matter, the worst first. There is one at least.
	Findings []Finding `json:"findings"`

	// Log is what the pod of the first finding that has one said last.
	Log *Log `json:"log,omitempty"`

	// Hidden names what the user may not read, and which is therefore left out.
	Hidden []string `json:"hidden,omitempty"`
}

// Detail is a name and a value.
type Detail struct {
	Name  string `json:"name"`
	Value string `json:"value"`

	// State colours the value; empty for no colour.
	State State `json:"state,omitempty"`
}

// Entry is something that has happened.
type Entry struct {
	// Time is when it happened, or last happened.
	Time metav1.Time `json:"time"`

	// Object is to what it happened: "claim", "pod NAME", "node NAME".
	Object string `json:"object"`

	// What is what happened, on one line.
	What string `json:"what"`

	// Duration is how long it took, where that is known; Of says what did: queue, start, run and so on.
	Duration *metav1.Duration `json:"duration,omitempty"`
	Of       string           `json:"of,omitempty"`

	// Count is how often it happened since First, if more than once.
	Count int          `json:"count,omitempty"`
	First *metav1.Time `json:"first,omitempty"`

	// State is Failing for what went wrong, Healthy for what was reached, and empty for the rest.
	State State `json:"state,omitempty"`

	rank int // orders what happened in the same second
}

// Finding is something that is the matter, and what to do about it.
type Finding struct {
	// Code is the finding in one word.
	Code string `json:"code"`

	State State `json:"state"`

	// Summary says what is the matter, on one line.
	Summary string `json:"summary"`

	// Reason is what is known of why: words of pods and of Kubernetes.
	Reason string `json:"reason,omitempty"`

	// Next is what to do, the best first.
	Next []Step `json:"next,omitempty"`

	// Pod is the pod whose log tells more, if there is one.
	Pod *PodRef `json:"pod,omitempty"`
}

// PodRef names a pod and the container of it that matters.
type PodRef struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Container string `json:"container,omitempty"`

	// Previous says that the container's last run matters, and not the present one.
	Previous bool `json:"previous,omitempty"`
}

// Step is something to do.
type Step struct {
	Text    string `json:"text"`
	Command string `json:"command,omitempty"`
}

// Log is the end of a container's log.
type Log struct {
	PodRef

	// Lines are the last ones, oldest first.
	Lines []string `json:"lines"`
}

// Build makes a report of what was found out. It is pure.
func Build(f *Facts) *Report {
	r := &Report{Volume: f.volumeName(), Provisioner: f.provisionerName(), Hidden: f.Hidden}
	r.Namespace, r.Claim = f.claimRef()
	r.Details = details(f)
	r.Timeline = entries(f)
	r.Findings = diagnose(f)
	r.State = r.Findings[0].State
	return r
}

// took returns a duration for an entry; nothing where a time is not known, or clocks disagree by much.
func took(from, to time.Time) *metav1.Duration {
	if from.IsZero() || to.IsZero() || to.Before(from.Add(-time.Minute)) {
		return nil
	}
	return &metav1.Duration{Duration: max(to.Sub(from), 0)}
}

package status

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// State is the state of a volume, in one word.
type State string

// The states, the best first.
const (
	Healthy State = "Healthy" // the volume works
	Working State = "Working" // PaV or Kubernetes is working on it, and no problem is known
	Waiting State = "Waiting" // nothing happens until a user or another component acts
	Slow    State = "Slow"    // a pod runs for so long that it may hang
	Failing State = "Failing" // there is a problem
)

// severity orders the states, the best first.
var severity = map[State]int{Healthy: 0, Working: 1, Waiting: 2, Slow: 3, Failing: 4}

// NotPaV is the code of a finding about a volume of another driver.
const NotPaV = "NotPaV"

// Report is everything that is known about one volume, snapshot, bucket or access to a bucket. Its JSON is the output of "describe -o json".
type Report struct {
	// Namespace and Claim identify the claim; they are empty for a volume that never had one. A snapshot is of that claim.
	Namespace string `json:"namespace,omitempty"`
	Claim     string `json:"claim,omitempty"`

	// Snapshot is the name of the VolumeSnapshot if the report is about a snapshot or, if there is no VolumeSnapshot, of the
	// PavSnapshot or VolumeSnapshotContent.
	Snapshot string `json:"snapshot,omitempty"`

	// Bucket is the name of the claim of a bucket if the report is about a bucket or an access to one or, if the claim is not known, of
	// the PavBucket.
	Bucket string `json:"bucket,omitempty"`

	// Access is the name of the BucketAccess if the report is about an access to a bucket or, if it is not known, of the PavBucketAccess.
	Access string `json:"access,omitempty"`

	// Volume is the name of the PersistentVolume, which may not exist yet.
	Volume string `json:"volume,omitempty"`

	Provisioner string `json:"provisioner,omitempty"`

	// State is the state of the first finding.
	State State `json:"state"`

	// Details describe the objects in words.
	Details []Detail `json:"details"`

	// Timeline is everything that has happened, in the order of time.
	Timeline []Entry `json:"timeline"`

	// Findings are the diagnosis, the worst first. There is at least one.
	Findings []Finding `json:"findings"`

	// Log is the end of the log of the first finding's pod, if a finding has one.
	Log *Log `json:"log,omitempty"`

	// Hidden names what is left out because the user may not read it.
	Hidden []string `json:"hidden,omitempty"`
}

// Detail is a name and a value.
type Detail struct {
	Name  string `json:"name"`
	Value string `json:"value"`

	// State colours the value; empty for no colour.
	State State `json:"state,omitempty"`
}

// Entry is one line of the timeline.
type Entry struct {
	// Time is when it happened, or last happened.
	Time metav1.Time `json:"time"`

	// Object is the object to which it happened: "claim", "pod NAME", "node NAME".
	Object string `json:"object"`

	// What describes the event, on one line.
	What string `json:"what"`

	// Duration is the duration of the step that ended, if known. Of names that step: queue, start, run and so on.
	Duration *metav1.Duration `json:"duration,omitempty"`
	Of       string           `json:"of,omitempty"`

	// Count is how often it happened since First, if it happened more than once.
	Count int          `json:"count,omitempty"`
	First *metav1.Time `json:"first,omitempty"`

	// State is Failing for a failure, Healthy for a success, and empty otherwise.
	State State `json:"state,omitempty"`

	rank int // orders entries in the same second
}

// Finding is one part of the diagnosis, and what to do about it.
type Finding struct {
	// Code names the finding in one word.
	Code string `json:"code"`

	State State `json:"state"`

	// Summary describes the finding on one line.
	Summary string `json:"summary"`

	// Reason is the known cause: messages of pods and of Kubernetes.
	Reason string `json:"reason,omitempty"`

	// Next are the steps to take, the best first.
	Next []Step `json:"next,omitempty"`

	// Pod is the pod whose log explains more, if there is one.
	Pod *PodRef `json:"pod,omitempty"`
}

// PodRef names a pod and the relevant container.
type PodRef struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Container string `json:"container,omitempty"`

	// Previous means that the container's previous run is relevant, and not the current one.
	Previous bool `json:"previous,omitempty"`
}

// Step is a step to take.
type Step struct {
	Text    string `json:"text"`
	Command string `json:"command,omitempty"`
}

// Log is the end of a container's log.
type Log struct {
	PodRef

	// Lines are the last lines, oldest first.
	Lines []string `json:"lines"`
}

// Build returns the report for the facts. It is a pure function.
func Build(f *Facts) *Report {
	r := &Report{Volume: f.volumeName(), Provisioner: f.provisionerName(), Hidden: f.Hidden}
	r.Namespace, r.Claim = f.claimRef()
	if f.Snapshot != nil {
		r.Namespace, r.Snapshot = f.Snapshot.ref()
		if r.Snapshot == "" {
			r.Snapshot = f.Subject.Name
		}
	}
	if f.Bucket != nil {
		r.Namespace, r.Bucket, r.Access = f.Bucket.names(f.Subject)
	}
	r.Details = details(f)
	r.Timeline = entries(f)
	r.Findings = diagnose(f)
	hideCredentials(f, r.Findings)
	r.State = r.Findings[0].State
	return r
}

// took returns a duration for an entry; nothing if a time is not known, or if the clocks differ by too much.
func took(from, to time.Time) *metav1.Duration {
	if from.IsZero() || to.IsZero() || to.Before(from.Add(-time.Minute)) {
		return nil
	}
	return &metav1.Duration{Duration: max(to.Sub(from), 0)}
}

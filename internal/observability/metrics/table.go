package metrics

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// Type is the type of a metric.
type Type string

// The types.
const (
	Gauge     Type = "gauge"
	Counter   Type = "counter"
	Histogram Type = "histogram"
)

// Agent is one of PaV's two agents, by the name of its subcommand.
type Agent string

// The agents.
const (
	Controller Agent = "controller"
	Node       Agent = "node"
)

// Label is a label of a metric.
type Label struct {
	// Name of the label.
	Name string

	// Values are all possible values; none if the values are names.
	Values []string
}

// Metric is a row of the table.
type Metric struct {
	// Name is in full, with its unit at the end.
	Name string

	// Type is its type.
	Type Type

	// Labels in the order in which values are given.
	Labels []Label

	// Help is one sentence or more, for people.
	Help string

	// Agents are the agents that export it.
	Agents []Agent

	// Buckets are the upper bounds of a histogram's, in seconds.
	Buckets []float64
}

// Values of labels.
const (
	PodsWaiting = "waiting"
	PodsRunning = "running"
	PodsBlocked = "blocked"

	PartQueue  = "queue"
	PartStart  = "start"
	PartRun    = "run"
	PartResult = "result"

	ResultOK    = "ok"
	ResultError = "error"

	DriverRegistered = "registered"
	DriverAwaited    = "awaited"
	DriverRefused    = "refused"
)

var (
	provisioner = Label{Name: "provisioner"}
	workflows   = Label{Name: "workflow", Values: append(pavv1.WorkflowsOfController(), pavv1.WorkflowStaging, pavv1.WorkflowNodeExpansion, pavv1.WorkflowUnstaging)}
	results     = Label{Name: "result", Values: []string{ResultOK, ResultError}}
)

// Metrics of workflows, on both agents.
var (
	WorkflowDuration = Metric{
		Name: "pav_workflow_duration_seconds", Type: Histogram,
		Labels: []Label{provisioner, workflows, {Name: "part", Values: []string{PartQueue, PartStart, PartRun, PartResult}}},
		Help: "How long the parts of workflow pods with a recorded outcome took: queue, from when the pod was due until it was created " +
			"(only of pods that wait for a slot); start, until its first container ran; run, until its last container ended or, for a staging pod " +
			"that keeps running, until the volume was available; result, until the outcome was recorded. " +
			"Kubernetes' times are whole seconds, so a short part is 0 or 1, which is correct on average.",
		Agents: []Agent{Controller, Node}, Buckets: []float64{0.5, 1, 2, 5, 10, 15, 30, 60, 180, 600, 1800},
	}
	WorkflowFailures = Metric{
		Name: "pav_workflow_failures_total", Type: Counter,
		Labels: []Label{provisioner, workflows, {Name: "reason", Values: reasons}},
		Help: "Failed workflows by reason: refused, the template gave no valid pod, or the API server refused it; not_started, no container of the pod ever ran; " +
			"exit_code, a container failed; out_of_memory; evicted, by the node or for another pod; deadline, activeDeadlineSeconds; " +
			"stopped, the pod was deleted while it ran; vanished, it was removed by force; result, it succeeded with an invalid result; other.",
		Agents: []Agent{Controller, Node},
	}
)

// Metrics of the controller agent, which only the leader exports, so that sums are right.
var (
	Volumes = Metric{
		Name: "pav_volumes", Type: Gauge, Agents: []Agent{Controller},
		Labels: []Label{provisioner, {Name: "phase", Values: []string{"Pending", "Ready", "Deleting", "Retained"}}},
		Help:   "PavVolumes by phase.",
	}
	VolumeFailing = Metric{
		Name: "pav_volume_failing_seconds", Type: Gauge, Agents: []Agent{Controller},
		Labels: []Label{provisioner, {Name: "step", Values: []string{StepValidate, StepCreate, StepRevert, StepExpand, StepModify, StepDelete}}},
		Help: "The longest time since the provisioning, expansion, modification or deletion of a volume began that still fails, " +
			"by the step whose last attempt failed; absent if nothing fails.",
	}
	VolumePending = Metric{
		Name: "pav_volume_pending_seconds", Type: Gauge, Agents: []Agent{Controller},
		Labels: []Label{provisioner, {Name: "phase", Values: []string{"Pending", "Ready", "Deleting"}}},
		Help: "The longest time for which a volume has been provisioned, expanded or modified, in the phase Ready, or deleted, with or without failures, " +
			"and also if it waits for its source, for snapshots or for copies; volumes that wait for a claim's first consumer do not count.",
	}
	Snapshots = Metric{
		Name: "pav_snapshots", Type: Gauge, Agents: []Agent{Controller},
		Labels: []Label{provisioner, {Name: "phase", Values: []string{"Pending", "Cut", "Ready", "Deleting", "Retained"}}},
		Help:   "PavSnapshots by phase.",
	}
	SnapshotFailing = Metric{
		Name: "pav_snapshot_failing_seconds", Type: Gauge, Agents: []Agent{Controller},
		Labels: []Label{provisioner, {Name: "step", Values: []string{StepCreate, StepRevert, StepDelete}}},
		Help:   "The longest time since the creation or deletion of a snapshot began that still fails, by the step whose last attempt failed; absent if nothing fails.",
	}
	SnapshotPending = Metric{
		Name: "pav_snapshot_pending_seconds", Type: Gauge, Agents: []Agent{Controller},
		Labels: []Label{provisioner, {Name: "phase", Values: []string{"Pending", "Cut", "Deleting"}}},
		Help:   "The longest time for which a snapshot has been created or deleted, with or without failures.",
	}
	Buckets = Metric{
		Name: "pav_buckets", Type: Gauge, Agents: []Agent{Controller},
		Labels: []Label{provisioner, {Name: "phase", Values: []string{"Pending", "Ready", "Deleting", "Retained"}}},
		Help:   "PavBuckets by phase.",
	}
	BucketFailing = Metric{
		Name: "pav_bucket_failing_seconds", Type: Gauge, Agents: []Agent{Controller},
		Labels: []Label{provisioner, {Name: "step", Values: []string{StepCreate, StepUpdate, StepRevert, StepDelete}}},
		Help:   "The longest time since the creation, update or deletion of a bucket began that still fails, by the step whose last attempt failed; absent if nothing fails.",
	}
	Accesses = Metric{
		Name: "pav_bucket_accesses", Type: Gauge, Agents: []Agent{Controller},
		Labels: []Label{provisioner, {Name: "phase", Values: []string{"Pending", "Ready", "Rotating", "Revoking"}}},
		Help:   "PavBucketAccesses by phase.",
	}
	AccessFailing = Metric{
		Name: "pav_bucket_access_failing_seconds", Type: Gauge, Agents: []Agent{Controller},
		Labels: []Label{provisioner, {Name: "step", Values: []string{StepGrant, StepRotate, StepRevoke}}},
		Help:   "The longest time since access to a bucket has failed to be granted, to get another account, or to be revoked; absent if nothing fails.",
	}
	AccessExpiry = Metric{
		Name: "pav_bucket_access_expiry_seconds", Type: Gauge, Agents: []Agent{Controller},
		Labels: []Label{provisioner},
		Help:   "The shortest time until credentials that clients have end, below 0 if they have ended; absent if none end.",
	}
	WorkflowPods = Metric{
		Name: "pav_workflow_pods", Type: Gauge, Agents: []Agent{Controller},
		Labels: []Label{provisioner, {Name: "state", Values: []string{PodsWaiting, PodsRunning, PodsBlocked}}},
		Help: "Validation, creation, expansion, modification and deletion pods, and those of snapshots and buckets: waiting for a slot (--max-pods, --max-pods-per-provisioner), running, or blocked: " +
			"created and unable to start.",
	}
	ProvisionerCondition = Metric{
		Name: "pav_provisioner_condition", Type: Gauge, Agents: []Agent{Controller},
		Labels: []Label{provisioner, {Name: "condition", Values: []string{"Accepted", "Ready", "Deleting"}}},
		Help:   "Conditions of PavProvisioners: 1 if true, 0 if not.",
	}
)

// Metrics of the node agent about its node.
var (
	Stages = Metric{
		Name: "pav_stages", Type: Gauge, Agents: []Agent{Node},
		Labels: []Label{provisioner, {Name: "phase", Values: []string{"New", "Validating", "Staging", "Staged", "Unstaging", "Failed"}}},
		Help:   "Stages of the node, by phase: volumes that are available on it, or will be.",
	}
	StagePending = Metric{
		Name: "pav_stage_pending_seconds", Type: Gauge, Agents: []Agent{Node},
		Labels: []Label{provisioner, {Name: "phase", Values: []string{"New", "Validating", "Staging", "Unstaging", "Failed"}}},
		Help:   "The longest time for which a stage has not been available, by its current phase.",
	}
	StageUnstagingFailing = Metric{
		Name: "pav_stage_unstaging_failing_seconds", Type: Gauge, Agents: []Agent{Node},
		Labels: []Label{provisioner},
		Help:   "The longest time since the first failure of an unstaging that still fails; absent if none fails.",
	}
	StageDegraded = Metric{
		Name: "pav_stage_degraded", Type: Gauge, Agents: []Agent{Node},
		Labels: []Label{provisioner, {Name: "reason", Values: []string{pavv1.ReasonStagingPodEnded, pavv1.ReasonVolumeDead, pavv1.ReasonVolumeSilent, pavv1.ReasonVolumeDetached}}},
		Help: "Degraded volumes on the node, by the reason of the condition Degraded: their staging pod ended, " +
			"or they do not answer.",
	}
	Restages = Metric{
		Name: "pav_restages_total", Type: Counter, Agents: []Agent{Node},
		Labels: []Label{provisioner, results},
		Help:   "Attempts to restage a dead volume while clients use it.",
	}
	PublishDuration = Metric{
		Name: "pav_publish_duration_seconds", Type: Histogram, Agents: []Agent{Node},
		Labels: []Label{provisioner, results},
		Help: "How long kubelet's calls to publish a volume to a client pod took; with scope Pod, that includes staging, " +
			"and a call that ends before its staging pod is an error.",
		Buckets: []float64{0.005, 0.02, 0.1, 0.5, 2, 10, 60, 120},
	}
	RegisteredProvisioners = Metric{
		Name: "pav_registered_provisioners", Type: Gauge, Agents: []Agent{Node},
		Labels: []Label{{Name: "state", Values: []string{DriverRegistered, DriverAwaited, DriverRefused}}},
		Help:   "PavProvisioners that the agent serves: registered with kubelet, waiting for it, or refused by it.",
	}
)

// Table returns all metrics of PaV's own, sorted by name. The agents export those of Go, of their
// process and of controller-runtime beside them.
func Table() []Metric {
	all := []Metric{
		WorkflowDuration, WorkflowFailures, Volumes, VolumeFailing, VolumePending, Snapshots, SnapshotFailing, SnapshotPending,
		Buckets, BucketFailing, Accesses, AccessFailing, AccessExpiry, WorkflowPods, ProvisionerCondition,
		Stages, StagePending, StageUnstagingFailing, StageDegraded, Restages, PublishDuration, RegisteredProvisioners,
	}
	slices.SortFunc(all, func(a, b Metric) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	return all
}

// LabelNames returns the names of the labels.
func (m Metric) LabelNames() []string {
	var names []string
	for _, label := range m.Labels {
		names = append(names, label.Name)
	}
	return names
}

// Desc describes the metric to Prometheus.
func (m Metric) Desc() *prometheus.Desc {
	return prometheus.NewDesc(m.Name, m.Help, m.LabelNames(), nil)
}

// newCounter returns the counters of a metric.
func (m Metric) newCounter() *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: m.Name, Help: m.Help}, m.LabelNames())
}

// newHistogram returns the histograms of a metric.
func (m Metric) newHistogram() *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: m.Name, Help: m.Help, Buckets: m.Buckets}, m.LabelNames())
}

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
	workflows   = Label{Name: "workflow", Values: []string{"validate", "create", "delete", "stage", "unstage"}}
	results     = Label{Name: "result", Values: []string{ResultOK, ResultError}}
)

// Metrics of workflows, on both agents.
var (
	WorkflowDuration = Metric{
		Name: "pav_workflow_duration_seconds", Type: Histogram,
		Labels: []Label{provisioner, workflows, {Name: "part", Values: []string{PartQueue, PartStart, PartRun, PartResult}}},
		Help: "How long the parts of each workflow pod took whose outcome was recorded: queue, from when it was due until it was created " +
			"(validation, creation and deletion only); start, until its first container ran; run, until its last one had ended or, of a staging pod " +
			"that goes on running, the volume was available; result, until the outcome was recorded. " +
			"Kubernetes' times are whole seconds, so that a short part is 0 or 1, which is right on average.",
		Agents: []Agent{Controller, Node}, Buckets: []float64{0.5, 1, 2, 5, 10, 15, 30, 60, 180, 600, 1800},
	}
	WorkflowFailures = Metric{
		Name: "pav_workflow_failures_total", Type: Counter,
		Labels: []Label{provisioner, workflows, {Name: "reason", Values: reasons}},
		Help: "Workflows that have failed, by reason: refused, no pod could be made of the template, or was let into the cluster; not_started, no container of the pod ever ran; " +
			"exit_code, a container failed; out_of_memory; evicted, the node or someone else's pod came first; deadline, activeDeadlineSeconds; " +
			"stopped, the pod was deleted while it ran; vanished, it was removed by force; result, it succeeded, but what it left cannot be used; other.",
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
		Labels: []Label{provisioner, {Name: "step", Values: []string{StepValidate, StepCreate, StepRevert, StepDelete}}},
		Help: "How long the volume that has been failing the longest has been, since its provisioning or deletion began, " +
			"by the step whose last attempt failed; none where nothing fails.",
	}
	VolumePending = Metric{
		Name: "pav_volume_pending_seconds", Type: Gauge, Agents: []Agent{Controller},
		Labels: []Label{provisioner, {Name: "phase", Values: []string{"Pending", "Deleting"}}},
		Help: "How long the volume that is the longest in the making, or in deletion, has been, whether anything fails or not; " +
			"one that waits for a claim's first consumer does not count.",
	}
	WorkflowPods = Metric{
		Name: "pav_workflow_pods", Type: Gauge, Agents: []Agent{Controller},
		Labels: []Label{provisioner, {Name: "state", Values: []string{PodsWaiting, PodsRunning, PodsBlocked}}},
		Help: "Validation, creation and deletion pods: waiting for a place (--max-pods, --max-pods-per-provisioner), running, or blocked, " +
			"that is created and unable to start.",
	}
	ProvisionerCondition = Metric{
		Name: "pav_provisioner_condition", Type: Gauge, Agents: []Agent{Controller},
		Labels: []Label{provisioner, {Name: "condition", Values: []string{"Accepted", "Ready", "Deleting"}}},
		Help:   "Conditions of PavProvisioners: 1 where true, 0 where not.",
	}
)

// Metrics of the node agent about its node.
var (
	Stages = Metric{
		Name: "pav_stages", Type: Gauge, Agents: []Agent{Node},
		Labels: []Label{provisioner, {Name: "phase", Values: []string{"New", "Validating", "Staging", "Staged", "Unstaging", "Failed"}}},
		Help:   "Stages of the node: volumes that are, or are about to be, available on it, by phase.",
	}
	StagePending = Metric{
		Name: "pav_stage_pending_seconds", Type: Gauge, Agents: []Agent{Node},
		Labels: []Label{provisioner, {Name: "phase", Values: []string{"New", "Validating", "Staging", "Unstaging", "Failed"}}},
		Help:   "How long the stage that has not been available the longest has not been, by its present phase.",
	}
	StageUnstagingFailing = Metric{
		Name: "pav_stage_unstaging_failing_seconds", Type: Gauge, Agents: []Agent{Node},
		Labels: []Label{provisioner},
		Help:   "How long the unstaging that has been failing the longest has been, since its first failure; none where none fails.",
	}
	StageDegraded = Metric{
		Name: "pav_stage_degraded", Type: Gauge, Agents: []Agent{Node},
		Labels: []Label{provisioner, {Name: "reason", Values: []string{pavv1.ReasonStagingPodEnded, pavv1.ReasonVolumeDead, pavv1.ReasonVolumeSilent, pavv1.ReasonVolumeDetached}}},
		Help: "Volumes on the node that are degraded, by the reason of the condition Degraded: their staging pod has ended, " +
			"or they do not answer.",
	}
	Restages = Metric{
		Name: "pav_restages_total", Type: Counter, Agents: []Agent{Node},
		Labels: []Label{provisioner, results},
		Help:   "Attempts to stage a dead volume again under its clients.",
	}
	PublishDuration = Metric{
		Name: "pav_publish_duration_seconds", Type: Histogram, Agents: []Agent{Node},
		Labels: []Label{provisioner, results},
		Help: "How long kubelet's calls to publish a volume to a client pod took; with the scope Pod, staging is part of them, " +
			"and a call that runs out of time while its pod runs on is an error.",
		Buckets: []float64{0.005, 0.02, 0.1, 0.5, 2, 10, 60, 120},
	}
	RegisteredProvisioners = Metric{
		Name: "pav_registered_provisioners", Type: Gauge, Agents: []Agent{Node},
		Labels: []Label{{Name: "state", Values: []string{DriverRegistered, DriverAwaited, DriverRefused}}},
		Help:   "PavProvisioners that the agent serves: registered with kubelet, awaiting it, or refused by it.",
	}
)

// Table returns all metrics of PaV's own, sorted by name. The agents export those of Go, of their
// process and of controller-runtime beside them.
func Table() []Metric {
	all := []Metric{
		WorkflowDuration, WorkflowFailures, Volumes, VolumeFailing, VolumePending, WorkflowPods, ProvisionerCondition,
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

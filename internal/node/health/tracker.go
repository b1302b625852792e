package health

import (
	"cmp"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/observability"
	"github.com/albertofaria/pav/internal/observability/metrics"
)

// Tracker remembers the condition of the stages of a node, and probes their volumes. It is a prometheus.Collector,
// and safe for concurrent use.
type Tracker struct {
	// Timeout is how long a volume may take to answer.
	Timeout time.Duration

	prober      Prober
	recheck     func(stage string)
	now         func() time.Time
	clusterTime func() time.Time // the time of the API server, as in PavStages

	mu      sync.Mutex
	pending map[string]*pendingProbe // by path
	stages  map[string]stageHealth   // by name
}

// stageHealth is what is remembered of one stage.
type stageHealth struct {
	provisioner, volume string
	claim               string // NAMESPACE/NAME
	phase               pavv1.StagePhase
	failingSince        time.Time // zero if unstaging does not fail
	unready             time.Time // since when the volume is not available; zero if it is, or if that is not known
	degraded            string    // the reason of the condition Degraded if that is true, or empty
	problem             string    // what is wrong with the volume, or empty
}

// NewTracker returns a Tracker without stages. It calls recheck with the name of a stage whose volume has answered
// late. ClusterTime returns the time of the API server.
func NewTracker(prober Prober, recheck func(stage string), clusterTime func() time.Time) *Tracker {
	return &Tracker{
		prober: prober, recheck: recheck, now: time.Now, clusterTime: clusterTime, Timeout: answerTimeout,
		pending: map[string]*pendingProbe{}, stages: map[string]stageHealth{},
	}
}

// Recheck queues a check of a stage.
func (t *Tracker) Recheck(stage string) { t.recheck(stage) }

// Update remembers the status of a PavStage.
func (t *Tracker) Update(stage *pavv1.PavStage) {
	t.mu.Lock()
	defer t.mu.Unlock()
	is := stageHealth{provisioner: stage.Spec.Provisioner, volume: stage.Spec.VolumeName,
		claim: observability.Name(stage.Spec.ClaimRef.Namespace, stage.Spec.ClaimRef.Name), phase: stage.Status.Phase}
	if is.phase == pavv1.StageUnstaging && stage.Status.UnstagingFailure != nil {
		is.failingSince = t.stages[stage.Name].failingSince
		if is.failingSince.IsZero() {
			is.failingSince = failingSince(stage)
		}
	}
	if degraded := meta.FindStatusCondition(stage.Status.Conditions, pavv1.StageDegraded); degraded != nil && degraded.Status == "True" {
		is.problem, is.degraded = degraded.Message, degraded.Reason
	}
	if ready := meta.FindStatusCondition(stage.Status.Conditions, pavv1.StageReady); is.phase != pavv1.StageStaged && ready != nil && ready.Status == "False" {
		is.unready = ready.LastTransitionTime.Time
	}
	t.stages[stage.Name] = is
}

// failingSince returns when the first attempt of the current unstaging failed, as far as the PavStage shows: the time
// of the failure if it was the first, else the time since which the volume is not available.
func failingSince(stage *pavv1.PavStage) time.Time {
	ready := meta.FindStatusCondition(stage.Status.Conditions, pavv1.StageReady)
	if stage.Status.UnstagingAttempt <= 2 || ready == nil {
		return stage.Status.UnstagingFailure.Time.Time
	}
	return ready.LastTransitionTime.Time
}

// Forget removes a stage that is gone.
func (t *Tracker) Forget(stage string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.stages, stage)
}

// Knows reports whether the stage exists.
func (t *Tracker) Knows(stage string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, known := t.stages[stage]
	return known
}

// LogKeys returns the keys and values of a stage for log lines.
func (t *Tracker) LogKeys(stage string) []any {
	t.mu.Lock()
	defer t.mu.Unlock()
	is, known := t.stages[stage]
	if !known {
		return []any{observability.Stage, stage}
	}
	return []any{observability.Stage, stage, observability.Volume, is.volume, observability.Claim, is.claim, observability.Provisioner, is.provisioner}
}

// Problem returns what is wrong with the volume of a stage, or the empty string.
func (t *Tracker) Problem(stage string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.stages[stage].problem
}

var (
	stagesMetric   = metrics.Stages.Desc()
	pendingMetric  = metrics.StagePending.Desc()
	failingMetric  = metrics.StageUnstagingFailing.Desc()
	degradedMetric = metrics.StageDegraded.Desc()
)

// Describe implements prometheus.Collector.
func (t *Tracker) Describe(descs chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{stagesMetric, pendingMetric, failingMetric, degradedMetric} {
		descs <- desc
	}
}

// Collect implements prometheus.Collector. The series are those of existing stages, so none stays after its stage.
func (t *Tracker) Collect(to chan<- prometheus.Metric) {
	for desc, series := range t.series() {
		series.Send(desc, to)
	}
}

// series returns the series by metric. A volume may have several stages, one for each of its client pods, and is degraded
// once.
func (t *Tracker) series() map[*prometheus.Desc]metrics.Series {
	t.mu.Lock()
	defer t.mu.Unlock()
	phases, pending, failing, degraded := metrics.Series{}, metrics.Series{}, metrics.Series{}, metrics.Series{}
	counted := map[[3]string]bool{}
	for _, is := range t.stages {
		phase := metrics.Labels{is.provisioner, cmp.Or(string(is.phase), "New")}
		phases[phase]++
		if !is.unready.IsZero() {
			pending.AtLeast(phase, t.clusterTime().Sub(is.unready).Seconds())
		}
		if !is.failingSince.IsZero() {
			failing.AtLeast(metrics.Labels{is.provisioner}, t.clusterTime().Sub(is.failingSince).Seconds())
		}
		if volume := [3]string{is.provisioner, is.degraded, is.volume}; is.degraded != "" && !counted[volume] {
			counted[volume] = true
			degraded[metrics.Labels{is.provisioner, is.degraded}]++
		}
	}
	return map[*prometheus.Desc]metrics.Series{stagesMetric: phases, pendingMetric: pending, failingMetric: failing, degradedMetric: degraded}
}

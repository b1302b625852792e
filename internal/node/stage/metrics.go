package stage

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

// vitals is what the agent knows of its stages without asking anybody: for metrics, and for answers
// that must not wait for the API server. It is a prometheus.Collector.
type vitals struct {
	prober      Prober
	looked      func(stage string) // it is worth looking at the stage
	now         func() time.Time
	clusterTime func() time.Time // in which PavStages have theirs
	// patience is how long a volume has to answer.
	patience time.Duration

	mu      sync.Mutex
	glances map[string]*glance // by path
	stages  map[string]vital   // by name
}

// vital is one stage.
type vital struct {
	provisioner, volume string
	claim               string // NAMESPACE/NAME
	phase               pavv1.StagePhase
	failingSince        time.Time // zero where unstaging does not fail
	unready             time.Time // since when the volume has not been available; zero where it is, or that is not known
	degraded            string    // the reason of the condition Degraded where that is true, or nothing
	trouble             string    // what is wrong with the volume, or nothing
}

func newVitals(prober Prober, looked func(stage string), clusterTime func() time.Time) *vitals {
	return &vitals{prober: prober, looked: looked, now: time.Now, clusterTime: clusterTime, patience: patience, glances: map[string]*glance{}, stages: map[string]vital{}}
}

// note takes over what a PavStage says.
func (v *vitals) note(stage *pavv1.PavStage) {
	v.mu.Lock()
	defer v.mu.Unlock()
	is := vital{provisioner: stage.Spec.Provisioner, volume: stage.Spec.VolumeName,
		claim: observability.Name(stage.Spec.ClaimRef.Namespace, stage.Spec.ClaimRef.Name), phase: stage.Status.Phase}
	if is.phase == pavv1.StageUnstaging && stage.Status.UnstagingFailure != nil {
		is.failingSince = v.stages[stage.Name].failingSince
		if is.failingSince.IsZero() {
			is.failingSince = failingSince(stage)
		}
	}
	if degraded := meta.FindStatusCondition(stage.Status.Conditions, pavv1.StageDegraded); degraded != nil && degraded.Status == "True" {
		is.trouble, is.degraded = degraded.Message, degraded.Reason
	}
	if ready := meta.FindStatusCondition(stage.Status.Conditions, pavv1.StageReady); is.phase != pavv1.StageStaged && ready != nil && ready.Status == "False" {
		is.unready = ready.LastTransitionTime.Time
	}
	v.stages[stage.Name] = is
}

// failingSince returns when the first attempt of the present unstaging failed, as far as a PavStage tells:
// the failure itself if it was the first, else the time since which the volume is not available.
func failingSince(stage *pavv1.PavStage) time.Time {
	ready := meta.FindStatusCondition(stage.Status.Conditions, pavv1.StageReady)
	if stage.Status.UnstagingAttempt <= 2 || ready == nil {
		return stage.Status.UnstagingFailure.Time.Time
	}
	return ready.LastTransitionTime.Time
}

// forget drops a stage that is gone.
func (v *vitals) forget(stage string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.stages, stage)
}

// knows says whether there is such a stage.
func (v *vitals) knows(stage string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	_, known := v.stages[stage]
	return known
}

// keys returns what log lines say of a stage.
func (v *vitals) keys(stage string) []any {
	v.mu.Lock()
	defer v.mu.Unlock()
	is, known := v.stages[stage]
	if !known {
		return []any{observability.Stage, stage}
	}
	return []any{observability.Stage, stage, observability.Volume, is.volume, observability.Claim, is.claim, observability.Provisioner, is.provisioner}
}

// trouble returns what is wrong with the volume of a stage, or nothing.
func (v *vitals) trouble(stage string) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.stages[stage].trouble
}

var (
	stagesMetric   = metrics.Stages.Desc()
	pendingMetric  = metrics.StagePending.Desc()
	failingMetric  = metrics.StageUnstagingFailing.Desc()
	degradedMetric = metrics.StageDegraded.Desc()
)

// Describe implements prometheus.Collector.
func (v *vitals) Describe(descs chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{stagesMetric, pendingMetric, failingMetric, degradedMetric} {
		descs <- desc
	}
}

// Collect implements prometheus.Collector. Series are made from the stages there are, so that none stays.
func (v *vitals) Collect(to chan<- prometheus.Metric) {
	for desc, series := range v.series() {
		for labels, value := range series {
			to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels.values()...)
		}
	}
}

// labels are the values of a series' labels: the provisioner, and another one if there is any.
type labels [2]string

func (l labels) values() []string {
	if l[1] == "" {
		return l[:1]
	}
	return l[:]
}

// series returns the values by metric and label. A volume may have several stages, one for each of its
// client pods, and is degraded once.
func (v *vitals) series() map[*prometheus.Desc]map[labels]float64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	phases, pending, failing, degraded := map[labels]float64{}, map[labels]float64{}, map[labels]float64{}, map[labels]float64{}
	counted := map[[3]string]bool{}
	for _, is := range v.stages {
		phase := labels{is.provisioner, cmp.Or(string(is.phase), "New")}
		phases[phase]++
		if !is.unready.IsZero() {
			pending[phase] = max(pending[phase], v.clusterTime().Sub(is.unready).Seconds())
		}
		if all := (labels{is.provisioner}); !is.failingSince.IsZero() {
			failing[all] = max(failing[all], v.clusterTime().Sub(is.failingSince).Seconds())
		}
		if volume := [3]string{is.provisioner, is.degraded, is.volume}; is.degraded != "" && !counted[volume] {
			counted[volume] = true
			degraded[labels{is.provisioner, is.degraded}]++
		}
	}
	return map[*prometheus.Desc]map[labels]float64{stagesMetric: phases, pendingMetric: pending, failingMetric: failing, degradedMetric: degraded}
}

package stage

import (
	"cmp"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// vitals is what the agent knows of its stages without asking anybody: for metrics, and for answers
// that must not wait for the API server. It is a prometheus.Collector.
type vitals struct {
	prober Prober
	looked func(stage string) // it is worth looking at the stage
	now    func() time.Time
	// patience is how long a volume has to answer.
	patience time.Duration

	mu      sync.Mutex
	glances map[string]*glance // by path
	stages  map[string]vital   // by name
}

// vital is one stage.
type vital struct {
	provisioner, volume string
	phase               pavv1.StagePhase
	failingSince        time.Time // zero where unstaging does not fail
	trouble             string    // what is wrong with the volume, or nothing
}

func newVitals(prober Prober, looked func(stage string)) *vitals {
	return &vitals{prober: prober, looked: looked, now: time.Now, patience: patience, glances: map[string]*glance{}, stages: map[string]vital{}}
}

// note takes over what a PavStage says.
func (v *vitals) note(stage *pavv1.PavStage) {
	v.mu.Lock()
	defer v.mu.Unlock()
	is := vital{provisioner: stage.Spec.Provisioner, volume: stage.Spec.VolumeName, phase: stage.Status.Phase}
	if is.phase == pavv1.StageUnstaging && stage.Status.UnstagingFailure != nil {
		is.failingSince = v.stages[stage.Name].failingSince
		if is.failingSince.IsZero() {
			is.failingSince = failingSince(stage)
		}
	}
	if degraded := meta.FindStatusCondition(stage.Status.Conditions, pavv1.StageDegraded); degraded != nil && degraded.Status == "True" {
		is.trouble = degraded.Message
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

// trouble returns what is wrong with the volume of a stage, or nothing.
func (v *vitals) trouble(stage string) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.stages[stage].trouble
}

var (
	stagesMetric = prometheus.NewDesc("pav_stages",
		"Stages of the node: volumes that are, or are about to be, available on it, by phase.",
		[]string{"provisioner", "phase"}, nil)
	failingMetric = prometheus.NewDesc("pav_stage_unstaging_failing_seconds",
		"How long the unstaging of a volume has been failing, since its first failure.",
		[]string{"provisioner", "volume"}, nil)
	degradedMetric = prometheus.NewDesc("pav_stage_degraded",
		"1 for a volume on the node whose staging pod has ended, or that does not answer.",
		[]string{"provisioner", "volume"}, nil)
)

// Describe implements prometheus.Collector.
func (v *vitals) Describe(metrics chan<- *prometheus.Desc) {
	metrics <- stagesMetric
	metrics <- failingMetric
	metrics <- degradedMetric
}

// Collect implements prometheus.Collector. Series are made from the stages there are, so that none stays.
func (v *vitals) Collect(metrics chan<- prometheus.Metric) {
	phases, failing, degraded := v.series()
	for labels, value := range phases {
		metrics <- prometheus.MustNewConstMetric(stagesMetric, prometheus.GaugeValue, value, labels[:]...)
	}
	for labels, value := range failing {
		metrics <- prometheus.MustNewConstMetric(failingMetric, prometheus.GaugeValue, value, labels[:]...)
	}
	for labels, value := range degraded {
		metrics <- prometheus.MustNewConstMetric(degradedMetric, prometheus.GaugeValue, value, labels[:]...)
	}
}

// labels are the values of a series' labels.
type labels [2]string

// series returns the values by label. A volume may have several stages, one for each of its client pods: the worst counts.
func (v *vitals) series() (phases, failing, degraded map[labels]float64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	phases, failing, degraded = map[labels]float64{}, map[labels]float64{}, map[labels]float64{}
	for _, is := range v.stages {
		phases[labels{is.provisioner, cmp.Or(string(is.phase), "New")}]++
		volume := labels{is.provisioner, is.volume}
		if !is.failingSince.IsZero() {
			failing[volume] = max(failing[volume], v.now().Sub(is.failingSince).Seconds())
		}
		if is.trouble != "" {
			degraded[volume] = 1
		}
	}
	return phases, failing, degraded
}

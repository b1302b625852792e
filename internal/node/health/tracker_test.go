package health

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/node/nodetest"
	"github.com/albertofaria/pav/internal/observability/metrics"
)

func TestMetrics_AreThoseOfTheStagesThatThereAre(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	v := NewTracker(nil, func(string) {}, func() time.Time { return now })
	registry := prometheus.NewPedanticRegistry()
	nodetest.Must(t, registry.Register(v))

	stage := func(name string, change func(*pavv1.PavStageStatus)) {
		s := &pavv1.PavStage{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: pavv1.PavStageSpec{Provisioner: "p", VolumeName: "pv"}}
		s.Status.Phase = pavv1.StageStaged
		change(&s.Status)
		v.Update(s)
	}
	failing := func(attempt int32, ago time.Duration) func(*pavv1.PavStageStatus) {
		return func(status *pavv1.PavStageStatus) {
			status.Phase = pavv1.StageUnstaging
			status.UnstagingAttempt = attempt
			status.UnstagingFailure = &pavv1.WorkflowFailure{Time: metav1.NewTime(now.Add(-ago))}
			status.Conditions = []metav1.Condition{{Type: pavv1.StageReady, Status: metav1.ConditionFalse, LastTransitionTime: metav1.NewTime(now.Add(-time.Hour))}}
		}
	}
	degraded := func(status *pavv1.PavStageStatus) {
		status.Conditions = []metav1.Condition{{Type: pavv1.StageDegraded, Status: metav1.ConditionTrue, Reason: "VolumeDead", Message: "it is bad"}}
	}
	steps := []struct {
		what string
		do   func()
		want map[string]float64
	}{
		{"nothing is staged", func() {}, map[string]float64{}},
		{"one for each phase", func() {
			stage("a", func(*pavv1.PavStageStatus) {})
			stage("b", func(*pavv1.PavStageStatus) {})
			stage("c", func(status *pavv1.PavStageStatus) { status.Phase = "" })
		}, map[string]float64{"pav_stages p Staged": 2, "pav_stages p New": 1}},
		{"the oldest failure, and each degraded volume once", func() {
			stage("a", degraded)
			stage("b", degraded)
			stage("c", failing(2, time.Minute))
		}, map[string]float64{"pav_stages p Staged": 2, "pav_stages p Unstaging": 1,
			"pav_stage_pending_seconds p Unstaging": 3600, "pav_stage_degraded p VolumeDead": 1, "pav_stage_unstaging_failing_seconds p ": 60}},
		{"the first failure counts, also after the second", func() { stage("c", failing(3, 0)) },
			map[string]float64{"pav_stages p Staged": 2, "pav_stages p Unstaging": 1,
				"pav_stage_pending_seconds p Unstaging": 3600, "pav_stage_degraded p VolumeDead": 1, "pav_stage_unstaging_failing_seconds p ": 60}},
		{"an agent that has not seen it goes by when the volume became unavailable", func() { v.Forget("c"); stage("c", failing(3, 0)) },
			map[string]float64{"pav_stages p Staged": 2, "pav_stages p Unstaging": 1,
				"pav_stage_pending_seconds p Unstaging": 3600, "pav_stage_degraded p VolumeDead": 1, "pav_stage_unstaging_failing_seconds p ": 3600}},
		{"what is fixed is no more", func() {
			stage("a", func(*pavv1.PavStageStatus) {})
			stage("b", func(*pavv1.PavStageStatus) {})
			stage("c", func(status *pavv1.PavStageStatus) { status.Phase = pavv1.StageStaging })
		}, map[string]float64{"pav_stages p Staged": 2, "pav_stages p Staging": 1}},
		{"one that failed is not available either", func() {
			stage("c", func(status *pavv1.PavStageStatus) { failing(0, 0)(status); status.Phase = pavv1.StageFailed })
		}, map[string]float64{"pav_stages p Staged": 2, "pav_stages p Failed": 1, "pav_stage_pending_seconds p Failed": 3600}},
		{"all series go with the stages", func() {
			stage("a", degraded)
			stage("c", failing(2, time.Minute))
			for _, name := range []string{"a", "b", "c"} {
				v.Forget(name)
			}
		}, map[string]float64{}},
	}
	for _, step := range steps {
		step.do()
		if diff := cmp.Diff(step.want, gathered(t, registry)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.what, diff)
		}
	}
}

// gathered returns the values by metric and labels, the provisioner first.
func gathered(t *testing.T, from prometheus.Gatherer) map[string]float64 {
	t.Helper()
	families, err := from.Gather()
	nodetest.Must(t, err)
	series := map[string]float64{}
	for _, family := range families {
		nodetest.Must(t, metrics.Check(family, metrics.Node))
		for _, metric := range family.GetMetric() {
			values := map[string]string{}
			for _, pair := range metric.GetLabel() {
				values[pair.GetName()] = pair.GetValue()
			}
			series[family.GetName()+" "+values["provisioner"]+" "+values["phase"]+values["reason"]] = metric.GetGauge().GetValue()
		}
	}
	return series
}

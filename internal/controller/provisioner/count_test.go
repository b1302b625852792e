package provisioner

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/definition"
)

func TestCounts_AreWrittenOnlyWhereTheyChanged(t *testing.T) {
	status := &pavv1.PavProvisionerStatus{}
	c := counts{volumes: pavv1.ProvisionerCount{Total: 3, Failing: 1}, registered: 1, wanted: 2}
	if !c.set(status) || c.set(status) {
		t.Error("the first counts do not change the status, or the same ones do")
	}
	if status.Nodes.Summary != "1/2" || status.Stages.Total != 0 || status.Snapshots.Total != 0 || *status.Volumes != c.volumes {
		t.Errorf("got %+v", status)
	}
	for name, change := range map[string]func(*counts){
		"volumes": func(c *counts) { c.volumes.Total++ }, "failing": func(c *counts) { c.volumes.Failing++ },
		"stages": func(c *counts) { c.stages.Total++ }, "snapshots": func(c *counts) { c.snapshots.Total++ }, "a failing snapshot": func(c *counts) { c.snapshots.Failing++ }, "registered": func(c *counts) { c.registered++ }, "wanted": func(c *counts) { c.wanted++ },
	} {
		changed := c
		change(&changed)
		if !changed.set(status.DeepCopy()) {
			t.Errorf("a change of %s is not written", name)
		}
	}
}

func TestPace(t *testing.T) {
	p := pace{due: map[string]time.Time{}}
	now, within := time.Unix(1000, 0), countWithin(1)
	if got := p.wait("a", within, now); got != within {
		t.Errorf("the first change waits %s", got)
	}
	if got := p.wait("a", within, now.Add(within/4)); got != within*3/4 {
		t.Errorf("the next change waits %s: it must not put the write off", got)
	}
	if got := p.wait("b", within, now.Add(within/2)); got != within {
		t.Errorf("another's change waits %s", got)
	}
	if got := p.wait("a", within, now.Add(2*within)); got != 0 {
		t.Errorf("when it is due it waits %s", got)
	}
	p.settle("a")
	if got := p.wait("a", within, now.Add(2*within)); got != within {
		t.Errorf("after the write, a change waits %s", got)
	}
}

func TestCountWithin(t *testing.T) {
	for nodes, want := range map[int32]time.Duration{0: time.Second, 100: time.Second, 1000: 10 * time.Second, 5000: 50 * time.Second} {
		if got := countWithin(nodes); got != want {
			t.Errorf("with %d nodes, counts wait %s, want %s", nodes, got, want)
		}
	}
}

func TestIsFailing(t *testing.T) {
	failure := &pavv1.WorkflowFailure{}
	volume := func(s pavv1.PavVolumeStatus) client.Object { return &pavv1.PavVolume{Status: s} }
	snapshot := func(s pavv1.PavSnapshotStatus) client.Object { return &pavv1.PavSnapshot{Status: s} }
	stage := func(s pavv1.PavStageStatus) client.Object { return &pavv1.PavStage{Status: s} }
	for name, test := range map[string]struct {
		object client.Object
		want   bool
	}{
		"a good volume":                     {object: volume(pavv1.PavVolumeStatus{Phase: pavv1.VolumeReady})},
		"a volume that cannot be made":      {object: volume(pavv1.PavVolumeStatus{Failure: failure}), want: true},
		"one that cannot be deleted":        {object: volume(pavv1.PavVolumeStatus{Phase: pavv1.VolumeDeleting, DeletionFailure: failure}), want: true},
		"a retained one is left alone":      {object: volume(pavv1.PavVolumeStatus{Phase: pavv1.VolumeRetained, DeletionFailure: failure})},
		"a good snapshot":                   {object: snapshot(pavv1.PavSnapshotStatus{Phase: pavv1.SnapshotReady})},
		"a snapshot that cannot be made":    {object: snapshot(pavv1.PavSnapshotStatus{Failure: failure}), want: true},
		"a snapshot that cannot be deleted": {object: snapshot(pavv1.PavSnapshotStatus{DeletionFailure: failure}), want: true},
		"a retained snapshot is left alone": {object: snapshot(pavv1.PavSnapshotStatus{Phase: pavv1.SnapshotRetained, DeletionFailure: failure})},
		"a good stage":                      {object: stage(pavv1.PavStageStatus{Phase: pavv1.StageStaged})},
		"a stage that cannot be made":       {object: stage(pavv1.PavStageStatus{StagingFailure: failure}), want: true},
		"one that cannot be unstaged":       {object: stage(pavv1.PavStageStatus{UnstagingFailure: failure}), want: true},
		"one whose staging pod has gone":    {object: stage(pavv1.PavStageStatus{Conditions: []metav1.Condition{{Type: pavv1.StageDegraded, Status: metav1.ConditionTrue}}}), want: true},
	} {
		if got := isFailing(test.object); got != test.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}

func TestDecide_ReportsMistakes_AndServes(t *testing.T) {
	o := registered()
	o.mistakes = "spec.a: no"
	d := decide(o)
	accepted, ready := meta.FindStatusCondition(d.conditions, pavv1.ProvisionerAccepted), meta.FindStatusCondition(d.conditions, pavv1.ProvisionerReady)
	if accepted.Status != metav1.ConditionFalse || accepted.Reason != pavv1.ProvisionerInvalid || !strings.HasSuffix(accepted.Message, "spec.a: no") {
		t.Errorf("got %+v", accepted)
	}
	if ready.Status != metav1.ConditionTrue {
		t.Errorf("got %+v", ready)
	}
	p := o.provisioner
	p.Status.Conditions = d.conditions
	if message := p.Refusal(); message != "" {
		t.Errorf("it is refused: %s", message)
	}
	o.driver.Labels = nil
	p.Status.Conditions = decide(o).conditions
	if p.Refusal() == "" {
		t.Error("one whose name is taken is not refused")
	}
}

func TestSummary(t *testing.T) {
	var findings []definition.Finding
	for _, field := range []string{"a", "b", "c", "d", "e"} {
		findings = append(findings,
			definition.Finding{Severity: definition.Warning, Field: field, Message: "hm"},
			definition.Finding{Severity: definition.Error, Field: field, Message: "no"})
	}
	if got, want := summary(findings), "a: no; b: no; c: no; and 2 more"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := summary(findings[:1]); got != "" {
		t.Errorf("warnings are told: %q", got)
	}
}

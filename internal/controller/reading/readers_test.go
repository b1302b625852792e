package reading

import (
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/reconcile"
	"github.com/albertofaria/pav/internal/reconcile/reconciletest"
	"github.com/albertofaria/pav/internal/workflow"
)

// No earlier request or answer is taken for the answer to a new request, also if the clock was set back since.
func TestNextSync(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	const long = time.Minute
	for name, test := range map[string]struct {
		asked, answered []time.Duration // of stages, from now
		want            time.Duration
	}{
		"no stage was asked":                           {},
		"earlier requests":                             {asked: []time.Duration{-long, -2 * long}, answered: []time.Duration{-long}},
		"an answer of this moment":                     {answered: []time.Duration{0}, want: time.Microsecond},
		"an answer before the clock was set back":      {answered: []time.Duration{-long, long}, want: long + time.Microsecond},
		"a request before that, which is not answered": {asked: []time.Duration{long}, answered: []time.Duration{-long}, want: long + time.Microsecond},
	} {
		t.Run(name, func(t *testing.T) {
			r := Reading{WhileStaged: pavv1.SnapshotSync, Nodes: map[string]bool{"n": true}, Stages: make([]pavv1.PavStage, max(len(test.asked), len(test.answered)))}
			for i, at := range test.asked {
				r.Stages[i].Annotations = map[string]string{pavv1.SyncAnnotation: now.Add(at).Format(pavv1.RetryFormat)}
			}
			for i, at := range test.answered {
				r.Stages[i].Status.SyncedTime = new(metav1.NewMicroTime(now.Add(at)))
			}
			got := r.NextSync(now)
			if !got.Time.Equal(now.Add(test.want)) {
				t.Errorf("got %s, want %s later", got, test.want)
			}
			for i := range r.Stages {
				r.Stages[i].Spec.NodeName = "n"
			}
			if r.SyncRequested = &got; len(r.Unasked()) != len(r.Stages) {
				t.Errorf("%d of %d stages are to be asked", len(r.Unasked()), len(r.Stages))
			}
		})
	}
}

// A volume is staged where its storage is, also by the name of another PersistentVolume of the handle.
func TestStages_AreThoseOfTheStorage(t *testing.T) {
	stage := func(name, provisioner, volume, handle string) *pavv1.PavStage {
		return &pavv1.PavStage{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{pavv1.ProvisionerLabel: provisioner, pavv1.VolumeLabel: workflow.Hash(volume)}},
			Spec:       pavv1.PavStageSpec{Provisioner: provisioner, VolumeName: volume, VolumeHandle: handle, NodeName: "node-of-" + name},
		}
	}
	c := reconciletest.Client(t,
		stage("own", "p", "pv", "h"), stage("alias", "p", "another-pv", "h"), stage("earlier", "p", "pv", "former"), stage("foreign", "q", "pv", "h"),
	)
	s, r := Readers{Client: c, Live: c}, Reading{Provisioner: "p", VolumeName: "pv", VolumeHandle: "h", WhileStaged: pavv1.SnapshotWait}
	want := func(how string, r Reading) {
		t.Helper()
		if got := r.StagedOn(); len(got) != 2 || got[0] != "node-of-alias" || got[1] != "node-of-own" {
			t.Errorf("according to %s: %q", how, got)
		}
	}
	if err := s.GatherStages(t.Context(), &r); err != nil {
		t.Fatal(err)
	}
	want("the cache", r)
	var err error
	if r.Stages, err = s.liveStages(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	want("the API server", r)
	r.Stages, r.Volume = nil, &pavv1.PavVolume{Status: pavv1.PavVolumeStatus{Readers: []pavv1.Reader{{Unstaged: true}}}}
	if err := s.Enter(t.Context(), r); !errors.Is(err, reconcile.ErrStale) {
		t.Errorf("a reader that the cache lets read: got %v, want %v", err, reconcile.ErrStale)
	}
}

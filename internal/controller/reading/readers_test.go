package reading

import (
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/reconcile"
	"github.com/albertofaria/pav/internal/reconcile/reconciletest"
)

// A volume is staged where its storage is, also by the name of another PersistentVolume of the handle.
func TestStages_AreThoseOfTheStorage(t *testing.T) {
	stage := func(name, provisioner, volume, handle string) *pavv1.PavStage {
		return &pavv1.PavStage{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{pavv1.ProvisionerLabel: provisioner}},
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

package snapshot

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/reconcile"
)

// A snapshot is not deleted while another object has it. A retained one that no VolumeSnapshotContent has any more is the administrator's,
// who lets it be deleted by another.
func TestFound_OthersKeepASnapshot(t *testing.T) {
	const began = 60 // the deletion, this many seconds ago
	record := func(name string, phase pavv1.SnapshotPhase) pavv1.PavSnapshot {
		return pavv1.PavSnapshot{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: pavv1.PavSnapshotSpec{Provisioner: "p"}, Status: pavv1.PavSnapshotStatus{Phase: phase, Handle: "h"},
		}
	}
	for name, test := range map[string]struct {
		phase, other   pavv1.SnapshotPhase
		retained       int // how many seconds ago the other was retained; 0 if that is not recorded
		keeps, retains bool
	}{
		"one in use keeps one that is to be deleted":         {phase: pavv1.SnapshotDeleting, other: pavv1.SnapshotReady, keeps: true},
		"a retained one does not":                            {phase: pavv1.SnapshotDeleting, other: pavv1.SnapshotRetained, retains: true},
		"one that was retained before":                       {phase: pavv1.SnapshotDeleting, other: pavv1.SnapshotRetained, retained: began + 1, retains: true},
		"one that was retained meanwhile":                    {phase: pavv1.SnapshotDeleting, other: pavv1.SnapshotRetained, retained: began - 1, keeps: true},
		"a retained one has its handle for itself otherwise": {phase: pavv1.SnapshotPending, other: pavv1.SnapshotRetained, keeps: true},
		"the later of two that are to be deleted does not":   {phase: pavv1.SnapshotDeleting, other: pavv1.SnapshotDeleting},
	} {
		t.Run(name, func(t *testing.T) {
			own, other := record("a", test.phase), record("b", test.other)
			own.Status.Conditions = []metav1.Condition{{Type: pavv1.SnapshotDeleted, Status: metav1.ConditionFalse, LastTransitionTime: ago(began)}}
			if test.retained > 0 {
				other.Status.RetainedTime = new(ago(test.retained))
			}
			f := newFound(&own, "h")
			f.addRecords(&pavv1.PavSnapshotList{Items: []pavv1.PavSnapshot{own, other}})
			retained := slices.ContainsFunc(f.retained, func(s *pavv1.PavSnapshot) bool { return s.Name == "b" })
			if (len(f.others) > 0) != test.keeps || retained != test.retains {
				t.Errorf("others are %q, and retained %v", f.others, f.retained)
			}
		})
	}
}

// What an administrator takes over is where it was, if PaV has made it.
func TestEarlierIn(t *testing.T) {
	record := func(name, provisioner, handle string) pavv1.PavSnapshot {
		return pavv1.PavSnapshot{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: pavv1.PavSnapshotSpec{Provisioner: provisioner}, Status: pavv1.PavSnapshotStatus{Handle: handle}}
	}
	planned := record("planned", "p", "")
	planned.Spec.SnapshotHandle = "h"
	records := &pavv1.PavSnapshotList{Items: []pavv1.PavSnapshot{record("own", "p", "h"), planned, record("other", "p", "i"), record("foreign", "q", "h")}}
	if got := earlierIn(records, "own", reconcile.Storage("p", "h")); got != nil {
		t.Errorf("got %s", got.Name)
	}
	records.Items = append(records.Items, record("retained", "p", "h"))
	if got := earlierIn(records, "own", reconcile.Storage("p", "h")); got == nil || got.Name != "retained" {
		t.Errorf("got %v", got)
	}
}

// slowReader is an API server that takes a second for each list, all of which are empty. It notes how many were read at once.
type slowReader struct {
	client.Reader

	now, most atomic.Int32
}

func (s *slowReader) List(context.Context, client.ObjectList, ...client.ListOption) error {
	s.most.Store(max(s.most.Load(), s.now.Add(1)))
	<-time.After(time.Second) // of the bubble
	s.now.Add(-1)
	return nil
}

// Each of the lists can have many megabytes, and every worker may delete a snapshot.
func TestCheckAlone_ReadsOneListAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		live := &slowReader{}
		r := &Reconciler{Live: live, asking: make(chan struct{}, 1)}
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() {
				if err := r.checkAlone(t.Context(), &pavv1.PavSnapshot{}); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if most := live.most.Load(); most != 1 {
			t.Errorf("%d lists were read at once", most)
		}
	})
}

package volume

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/reconcile"
)

// formerly records the former handle "h0", and the volumes whose creation pods may have found that storage.
func formerly(finders ...string) func(*observation) {
	return func(o *observation) { o.volume.Status.FormerHandle, o.finders = "h0", finders }
}

// The handle of deleted storage is kept until no creation pod can report it any more.
func TestDecide_HandleOfDeletedStorage(t *testing.T) {
	deletedBy := func(finders ...string) *state {
		return without(pavv1.VolumeDeleting, deletePolicy).with(deletedStorage).with(formerly(finders...))
	}
	idle := func() *state {
		return fresh().with(func(o *observation) { o.volume.Status.Phase = pavv1.VolumePending })
	}
	reverting := func() *state { return at(pavv1.StepReverting).with(planned17) }
	succeeded := ended(corev1.PodSucceeded, 1)
	tests := map[string]struct {
		state   *state
		want    step
		message string
	}{
		"storage deleted, no finders: delete the PavVolume":                        {state: deletedBy(), want: stepForget},
		"storage deleted, finders: keep the PavVolume":                             {state: deletedBy("b", "c"), want: stepWait, message: `the handle "h0" is deleted; this record is kept until the handle of PavVolume "b" is known`},
		"storage deleted, finders, PersistentVolume exists: delete it":             {state: in(pavv1.VolumeDeleting, corev1.VolumeReleased, deletePolicy).with(deletedStorage).with(formerly("b")), want: stepDeletePV},
		"reverted, finders: begin the next attempt":                                {state: idle().with(formerly("b")), want: stepBegin},
		"reverted, finders, next creation pod recorded: create it":                 {state: at(pavv1.StepCreating).with(formerly("b")), want: stepRunPod},
		"reverted, finders, claim gone: keep the PavVolume":                        {state: idle().with(unclaimed).with(formerly("b")), want: stepWait, message: `the handle "h0"`},
		"reverted, finders, created without a pod, claim gone: keep the PavVolume": {state: recorded().with(unclaimed).with(formerly("b")), want: stepWait, message: `the handle "h0"`},
		"former handle, no finders left: release it":                               {state: idle().with(formerly()), want: stepRelease},
		"former handle, no finders left, volume bound: release it":                 {state: in(pavv1.VolumeReady, corev1.VolumeBound, deletePolicy).with(formerly()), want: stepRelease},
		"former handle is the one that is reverted: reverted":                      {state: reverting().pod(9, succeeded).with(formerly("b")).with(func(o *observation) { o.volume.Status.Handle = "h0" }), want: stepReverted},
		"former handle is another one: keep it until it is released":               {state: reverting().pod(9, succeeded).with(formerly("b")), want: stepWait, message: `the handle "h0"`},
		"former handle is another one, deletion pod runs: wait for the pod":        {state: reverting().pod(9, runs).with(formerly("b")), want: stepDone},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := decideIn(test.state.o)
			if got.Step != test.want || !strings.Contains(got.Message, test.message) || (test.message == "") != (got.Message == "") {
				t.Errorf("got step %s (%s), want %s (%s)", got.Step, got.Message, test.want, test.message)
			}
		})
	}
}

// The handle of a creation pod is known if the cache or the API server has a later state of its volume.
func TestFinders_HandleIsKnown(t *testing.T) {
	volume := func(uid types.UID, step pavv1.VolumeStep, pods int32) *pavv1.PavVolume {
		return &pavv1.PavVolume{ObjectMeta: metav1.ObjectMeta{Name: "b", UID: uid}, Status: pavv1.PavVolumeStatus{Step: step, Pods: pods}}
	}
	planned := volume("u", pavv1.StepCreating, 2)
	planned.Status.Plan = &pavv1.VolumePlan{Handle: "h"}
	tests := map[string]struct {
		cached, live *pavv1.PavVolume
		want         bool
	}{
		"it runs":                                 {cached: volume("u", pavv1.StepCreating, 2)},
		"the volume is made":                      {cached: volume("u", "", 2), want: true},
		"it is reverted":                          {cached: volume("u", pavv1.StepReverting, 2), want: true},
		"the next one runs":                       {cached: volume("u", pavv1.StepCreating, 3), want: true},
		"the cache has yet to see it":             {cached: volume("u", pavv1.StepValidating, 1)},
		"the cache has yet to see its volume":     {live: volume("u", pavv1.StepCreating, 2)},
		"the cache has an earlier volume":         {cached: volume("t", "", 4), live: volume("u", pavv1.StepCreating, 2)},
		"the volume is gone":                      {want: true},
		"the cache has an earlier one, too":       {cached: volume("t", "", 4), want: true},
		"another volume has its name":             {cached: volume("v", pavv1.StepCreating, 1), live: volume("v", pavv1.StepCreating, 1), want: true},
		"its volume was given a handle meanwhile": {cached: planned, want: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := &Reconciler{Client: clusterOf(t, test.cached), Live: clusterOf(t, test.live)}
			got, err := r.handleKnown(t.Context(), reconcile.Making{Name: "b", UID: "u", Pods: 2})
			if err != nil || got != test.want {
				t.Errorf("got %v, %v, want %v", got, err, test.want)
			}
		})
	}
}

// clusterOf returns a client of a cluster that has this PavVolume, or nothing if it is nil.
func clusterOf(t *testing.T, volume *pavv1.PavVolume) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := pavv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	builder := fake.NewClientBuilder().WithScheme(scheme)
	if volume != nil {
		builder = builder.WithObjects(volume)
	}
	return builder.Build()
}

// A volume that waits for a creation pod is reconciled after every change that may be the end of that pod, even if the
// watch missed its beginning.
func TestFinders_HandleBecomesKnown_BringsAPassOfTheWaitingVolumes(t *testing.T) {
	f := &finders{}
	waiting := &pavv1.PavVolume{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "1"}}
	f.set(waiting, []reconcile.Making{{Name: "b"}, {Name: "c"}})
	if _, known := f.get(&pavv1.PavVolume{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "2"}}); known {
		t.Error("the finders of a volume are taken for those of another one of its name")
	}
	for name, want := range map[string]int{"b": 1, "c": 1, "d": 0, "a": 0} {
		if got := f.ofFinder(t.Context(), &pavv1.PavVolume{ObjectMeta: metav1.ObjectMeta{Name: name}}); len(got) != want || want > 0 && got[0].Name != "a" {
			t.Errorf("of %s: got %v, want %d", name, got, want)
		}
	}
	f.forget("a")
	if got := f.ofFinder(t.Context(), &pavv1.PavVolume{ObjectMeta: metav1.ObjectMeta{Name: "b"}}); len(got) != 0 {
		t.Errorf("forgotten: got %v", got)
	}
	at := func(step pavv1.VolumeStep, pods int32) *pavv1.PavVolume {
		return &pavv1.PavVolume{Status: pavv1.PavVolumeStatus{Step: step, Pods: pods}}
	}
	for name, test := range map[string]struct {
		before, after *pavv1.PavVolume
		want          bool
	}{
		"it ends":           {before: at(pavv1.StepCreating, 1), after: at("", 1), want: true},
		"the next begins":   {before: at(pavv1.StepCreating, 1), after: at(pavv1.StepCreating, 2), want: true},
		"all of it at once": {before: at("", 1), after: at("", 2), want: true},
		"it runs":           {before: at(pavv1.StepCreating, 1), after: at(pavv1.StepCreating, 1)},
	} {
		if got := tells.Update(event.UpdateEvent{ObjectOld: test.before, ObjectNew: test.after}); got != test.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

// The API server is asked in that order, so that a simulated history is the same each time (seed 800100689).
func TestFinders_AreSorted(t *testing.T) {
	f, volume := &finders{}, fresh().o.volume
	names := strings.Split("abcdefghijklmnopqrstuvwxyz", "")
	var all []reconcile.Making
	for _, name := range names {
		all = append(all, reconcile.Making{Name: name})
	}
	f.set(volume, all)
	got, _ := f.get(volume)
	for i, making := range got {
		if making.Name != names[i] {
			t.Fatalf("finder %d is %q", i, making.Name)
		}
	}
}

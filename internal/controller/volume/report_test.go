package volume

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/attempt"
	"github.com/albertofaria/pav/internal/controller/queue"
	"github.com/albertofaria/pav/internal/reconcile"
	"github.com/albertofaria/pav/internal/reconcile/reconciletest"
)

// While the cache is stale, the step after the report is retried, and each retry reports again (seed 303 of the
// simulation).
func TestReportConflictLeft_Repeated_IsReportedOncePerPeriod(t *testing.T) {
	events := record.NewFakeRecorder(1000)
	now := noon
	r := &Reconciler{Events: events, Now: func() time.Time { return now }}
	o := fresh().o
	o.volume.Status.Conflict = &pavv1.StorageConflict{Handle: "h", Kind: "PersistentVolume", Name: "other"}
	for range 40 { // ten minutes
		r.reportConflictLeft(t.Context(), o)
		now = now.Add(15 * time.Second)
	}
	everybody := 2 // claim and PavVolume
	if o.provisioner != nil {
		everybody = 3
	}
	if got, want := len(events.Events), 2*everybody; got != want {
		t.Errorf("%d events were given, want %d", got, want)
	}
}

// The cache of an agent that has just started may have a volume and not its PersistentVolume, which was written in between.
func TestWait_AsksTheAPIServer_BeforeItSaysThatAPersistentVolumeIsGone(t *testing.T) {
	gone := in(pavv1.VolumeReady, corev1.VolumeBound, deletePolicy).with(func(o *observation) { o.pv, o.claim = nil, claimBound }).o
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: "data", UID: "u1"},
		Spec:       corev1.PersistentVolumeClaimSpec{VolumeName: "pvc-u1"},
		Status:     corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound},
	}
	pv := in(pavv1.VolumeReady, corev1.VolumeBound, deletePolicy).o.pv
	for name, test := range map[string]struct {
		live []client.Object
		said bool
	}{
		"it is gone":             {live: []client.Object{claim}, said: true},
		"it is there":            {live: []client.Object{claim, pv}},
		"the claim is gone, too": {live: []client.Object{}},
	} {
		t.Run(name, func(t *testing.T) {
			o := gone
			o.volume = gone.volume.DeepCopy()
			events, cache := record.NewFakeRecorder(10), reconciletest.Client(t, o.volume)
			r := &Reconciler{Client: cache, Live: reconciletest.Client(t, append(test.live, o.provisioner)...), Events: events, Now: func() time.Time { return noon }}
			err := r.act(t.Context(), o, decide(o))
			if said := len(events.Events) > 0; said != test.said || (err == nil) != test.said || err != nil && !errors.Is(err, reconcile.ErrStale) {
				t.Errorf("it was said: %t (%v), want %t", said, err, test.said)
			}
			if o.wasLost() != test.said {
				t.Errorf("the conditions are %+v", o.volume.Status.Conditions)
			}
		})
	}
}

// What was said is withdrawn when the PersistentVolume is there again.
func TestDecide_PersistentVolumeThatIsThereAgain(t *testing.T) {
	o := in(pavv1.VolumeReady, corev1.VolumeBound, deletePolicy).o
	setCondition(o.volume, &o.volume.Status, pavv1.VolumeDeleted, reasonLost, "removed by force")
	if d := decide(o); d.Step != stepMarkReady {
		t.Errorf("got %+v", d)
	}
}

// What a creation pod has not created needs no deletion pod.
func TestRecordFailure_RevertsWhatThePodMayHaveCreated(t *testing.T) {
	for name, test := range map[string]struct {
		result string
		step   pavv1.VolumeStep
		says   string
	}{
		"it failed":              {`{"error": "no room"}`, pavv1.StepReverting, ": no room; see kubectl logs -n pav-pods pod --all-containers; the creation is reverted first"},
		"it has changed nothing": {`{"infeasible": "no room"}`, "", ": no room; see kubectl logs -n pav-pods pod --all-containers; attempt 2 follows in 10m0s, or when the claim or the definition changes"},
	} {
		t.Run(name, func(t *testing.T) {
			o := at(pavv1.StepCreating).pod(9, ended(corev1.PodFailed, 1)).o
			o.pods[0].Annotations = map[string]string{pavv1.ResultAnnotation: test.result}
			events, kube := record.NewFakeRecorder(10), reconciletest.Client(t, o.volume)
			r := &Reconciler{Client: kube, Live: kube, Events: events, slots: attempt.NewPool(queue.Limits{}).Of("volume", func(string) {}), Now: func() time.Time { return noon }}
			d := decide(o)
			if d.Step != stepRecordFailure {
				t.Fatalf("the decision is %+v", d)
			}
			if err := r.act(t.Context(), o, d); err != nil {
				t.Fatal(err)
			}
			if got := o.volume.Status.Step; got != test.step {
				t.Errorf("the step is %q, want %q", got, test.step)
			}
			if event := <-events.Events; !strings.HasSuffix(event, test.says) {
				t.Errorf("the event is %q, want it to end with %q", event, test.says)
			}
		})
	}
}

// The next attempt may name another handle, or fail: then nothing else says that the earlier pod has made something (seed
// 710001782 of the simulation).
func TestReportEarlier_OnlyOfAnotherHandle(t *testing.T) {
	for name, test := range map[string]struct {
		state *state
		want  int
	}{
		"there was no conflict":         {fresh(), 0},
		"the volume has the handle now": {conflicted("h"), 0},
		"the volume has another handle": {conflicted("other"), 3}, // claim, PavVolume and PavProvisioner
	} {
		t.Run(name, func(t *testing.T) {
			events := record.NewFakeRecorder(10)
			r := &Reconciler{Events: events, Now: func() time.Time { return noon }}
			for range 2 { // the step that follows may be repeated
				r.reportEarlier(test.state.o, "h")
			}
			if got := len(events.Events); got != test.want {
				t.Errorf("%d events were given, want %d", got, test.want)
			}
		})
	}
}

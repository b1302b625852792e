package volume

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/reconcile"
	"github.com/albertofaria/pav/internal/workflow"
)

// An agent that is not the leader any more may write the PersistentVolume after the leader has deleted the PavVolume.
func TestWithdrawPV(t *testing.T) {
	volume := func(uid types.UID) *pavv1.PavVolume {
		v := fresh().o.volume
		v.UID = uid
		return v
	}
	for name, test := range map[string]struct {
		live   *pavv1.PavVolume
		exists bool
	}{
		"PavVolume gone: delete the PersistentVolume":     {},
		"PavVolume replaced: delete the PersistentVolume": {live: volume("v2")},
		"PavVolume exists: keep the PersistentVolume":     {live: volume("v1"), exists: true},
	} {
		t.Run(name, func(t *testing.T) {
			pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-u1", UID: "pv", Finalizers: []string{pavv1.PVFinalizer}}}
			objects := []client.Object{pv}
			if test.live != nil {
				objects = append(objects, test.live)
			}
			cache := newCache(t, objects...)
			r := &Reconciler{Client: cache, Live: cache}
			if err := cache.Get(t.Context(), client.ObjectKeyFromObject(pv), pv); err != nil {
				t.Fatal(err)
			}
			if err := r.withdrawPV(t.Context(), volume("v1"), pv); !errors.Is(err, reconcile.ErrStale) {
				t.Errorf("got %v, want ErrStale", err)
			}
			err := cache.Get(t.Context(), client.ObjectKeyFromObject(pv), &corev1.PersistentVolume{})
			if exists := err == nil; exists != test.exists {
				t.Errorf("the PersistentVolume exists: %t (%v), want %t", exists, err, test.exists)
			}
		})
	}
}

// A former leader has yet to see what another one has seen of the PersistentVolume. It must not remove the deletion pod that
// the other has recorded, and is about to create, nor write another phase than the other again and again.
func TestMarkPhase_BesideAnotherLeader_AsksTheAPIServer(t *testing.T) {
	for name, test := range map[string]struct {
		state        *state
		cached, live *corev1.PersistentVolume
		step         step
	}{
		"in use, deletion pod recorded":   {state: at(pavv1.StepDeleting), cached: in("", corev1.VolumeBound, deletePolicy).o.pv, live: in("", corev1.VolumeReleased, deletePolicy).o.pv, step: stepMarkReady},
		"retained, deletion pod recorded": {state: at(pavv1.StepDeleting), cached: in("", corev1.VolumeReleased, retainPolicy).o.pv, live: in("", corev1.VolumeReleased, deletePolicy).o.pv, step: stepRetain},
		"in use, recorded as retained": {state: in(pavv1.VolumeRetained, "", retainPolicy).with(func(o *snapshot) { o.volume.Finalizers = []string{pavv1.VolumeFinalizer} }),
			cached: in("", corev1.VolumeBound, retainPolicy).o.pv, live: in("", corev1.VolumeReleased, retainPolicy).o.pv, step: stepMarkReady},
		"retained, recorded as ready": {state: in(pavv1.VolumeReady, "", retainPolicy), cached: in("", corev1.VolumeReleased, retainPolicy).o.pv, live: in("", corev1.VolumeBound, retainPolicy).o.pv, step: stepRetain},
	} {
		t.Run(name, func(t *testing.T) {
			o := test.state.o
			phase := o.volume.Status.Phase
			o.volume.Spec.ReclaimPolicy = test.cached.Spec.PersistentVolumeReclaimPolicy
			o.pv = test.cached
			cache := newCache(t, o.volume)
			live := newCache(t, test.live, o.provisioner)
			r := &Reconciler{Client: cache, Live: live, Runner: &workflow.Runner{Client: live}, Now: func() time.Time { return noon }}
			d := decide(o)
			if d.step != test.step {
				t.Fatalf("the decision is %+v", d)
			}
			if err := r.act(t.Context(), o, d); !errors.Is(err, reconcile.ErrStale) {
				t.Errorf("got %v, want %v", err, reconcile.ErrStale)
			}
			if o.volume.Status.Phase != phase {
				t.Errorf("the phase is %s, and was %s", o.volume.Status.Phase, phase)
			}
		})
	}
}

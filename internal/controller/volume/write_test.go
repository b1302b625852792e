package volume

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/reconcile"
	"github.com/albertofaria/pav/internal/reconcile/reconciletest"
	"github.com/albertofaria/pav/internal/workflow"
)

// Once the PersistentVolume exists, a claim is bound to it and used: what the cache says of the claim, of the provisioner and
// of the storage is not enough.
func TestWritePV_AsksTheAPIServer(t *testing.T) {
	provisioner := fresh().o.provisioner
	claim := func(uid types.UID) *corev1.PersistentVolumeClaim {
		return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: "data", UID: uid}}
	}
	static := func(driver, handle string) *corev1.PersistentVolume {
		pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "static"}}
		pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: handle}
		return pv
	}
	for name, test := range map[string]struct {
		live   []client.Object
		writes bool
	}{
		"all is as the cache says":                    {live: []client.Object{provisioner, claim("u1")}, writes: true},
		"the claim is gone":                           {live: []client.Object{provisioner}},
		"the claim was replaced":                      {live: []client.Object{provisioner, claim("u2")}},
		"a static PersistentVolume has the storage":   {live: []client.Object{provisioner, claim("u1"), static("demo", "h")}},
		"a static PersistentVolume has other storage": {live: []client.Object{provisioner, claim("u1"), static("demo", "other")}, writes: true},
	} {
		t.Run(name, func(t *testing.T) {
			o := recorded().o
			o.volume.Spec.StorageClass.Raw, o.volume.Spec.Claim.Raw = []byte(`{"metadata": {"name": "fast"}}`), []byte(`{}`)
			cache := reconciletest.Client(t, o.volume, provisioner, claim("u1"))
			live := reconciletest.Client(t, append(test.live, o.volume)...)
			r := &Reconciler{Client: cache, Live: live, holders: &reconcile.LiveReads{Reader: live}, rejections: workqueue.NewTypedItemExponentialFailureRateLimiter[string](time.Second, time.Minute),
				Events: record.NewFakeRecorder(10), Now: func() time.Time { return noon }}
			err := r.act(t.Context(), o, decision{Step: stepWritePV})
			exists := cache.Get(t.Context(), client.ObjectKeyFromObject(o.volume), &corev1.PersistentVolume{}) == nil
			if exists != test.writes || !test.writes && !errors.Is(err, reconcile.ErrStale) || test.writes && err != nil {
				t.Errorf("the PersistentVolume was written: %t (%v), want %t", exists, err, test.writes)
			}
		})
	}
}

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
			cache := reconciletest.Client(t, objects...)
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
		"in use, recorded as retained": {state: in(pavv1.VolumeRetained, "", retainPolicy).with(func(o *observation) { o.volume.Finalizers = []string{pavv1.VolumeFinalizer} }),
			cached: in("", corev1.VolumeBound, retainPolicy).o.pv, live: in("", corev1.VolumeReleased, retainPolicy).o.pv, step: stepMarkReady},
		"retained, recorded as ready": {state: in(pavv1.VolumeReady, "", retainPolicy), cached: in("", corev1.VolumeReleased, retainPolicy).o.pv, live: in("", corev1.VolumeBound, retainPolicy).o.pv, step: stepRetain},
	} {
		t.Run(name, func(t *testing.T) {
			o := test.state.o
			phase := o.volume.Status.Phase
			o.volume.Spec.ReclaimPolicy = test.cached.Spec.PersistentVolumeReclaimPolicy
			o.pv = test.cached
			cache := reconciletest.Client(t, o.volume)
			live := reconciletest.Client(t, test.live, o.provisioner)
			r := &Reconciler{Client: cache, Live: live, Runner: &workflow.Runner{Client: live}, Now: func() time.Time { return noon }}
			d := decide(o)
			if d.Step != test.step {
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

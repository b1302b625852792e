package volume

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/reconcile"
	"github.com/albertofaria/pav/internal/reconcile/reconciletest"
)

func TestAlignment(t *testing.T) {
	const ready, retained = pavv1.VolumeReady, pavv1.VolumeRetained
	const bound, released = corev1.VolumeBound, corev1.VolumeReleased
	volumePolicy := func(policy corev1.PersistentVolumeReclaimPolicy) func(*observation) {
		return func(o *observation) { o.volume.Spec.ReclaimPolicy = policy }
	}
	pvPolicy := func(policy corev1.PersistentVolumeReclaimPolicy) func(*observation) {
		return func(o *observation) { o.pv.Spec.PersistentVolumeReclaimPolicy = policy }
	}
	held := func(o *observation) { o.volume.Finalizers = []string{pavv1.VolumeFinalizer} }
	pvHeld := func(o *observation) { o.pv.Finalizers = []string{pavv1.PVFinalizer} }
	pvDeleted := func(o *observation) { o.pv.DeletionTimestamp = new(ago(1)) }
	tests := map[string]struct {
		state *state
		want  changes
	}{
		"both objects agree":                                                                {state: in(ready, bound, deletePolicy)},
		"retained, both objects agree":                                                      {state: in(retained, released, retainPolicy)},
		"retained, a claim is bound again: add the finalizer":                               {state: in(retained, bound, retainPolicy), want: changes{volume: add}},
		"retained, a claim is bound again, with finalizer: nothing":                         {state: in(retained, bound, retainPolicy).with(held)},
		"PersistentVolume changed to Retain":                                                {state: in(ready, bound, deletePolicy).with(pvPolicy(retainPolicy)), want: changes{policy: retainPolicy, pv: remove}},
		"PersistentVolume changed to Delete, finalizer first":                               {state: in(ready, bound, retainPolicy).with(pvPolicy(deletePolicy)), want: changes{pv: add}},
		"PersistentVolume changed to Delete, with finalizer: copy the policy":               {state: in(ready, bound, retainPolicy).with(pvPolicy(deletePolicy)).with(pvHeld), want: changes{policy: deletePolicy}},
		"retained, PersistentVolume changed to Delete":                                      {state: in(retained, released, retainPolicy).with(pvPolicy(deletePolicy)), want: changes{pv: add, volume: add}},
		"retained, PersistentVolume changed to Delete and back":                             {state: in(retained, released, retainPolicy).with(held).with(pvHeld), want: changes{pv: remove, volume: remove}},
		"retained, PersistentVolume changed to Delete and back after the policy was copied": {state: in(retained, released, retainPolicy).with(volumePolicy(deletePolicy)).with(held).with(pvHeld), want: changes{policy: retainPolicy, pv: remove, volume: remove}},
		"retained, changed to Delete and back, both objects being deleted":                  {state: in(retained, released, retainPolicy).with(volumePolicy(deletePolicy)).with(held).with(pvHeld).with(pvDeleted).deleted(), want: changes{policy: retainPolicy, pv: remove, volume: remove}},
		"PavVolume changed while in use":                                                    {state: in(ready, bound, retainPolicy).with(volumePolicy(deletePolicy)), want: changes{policy: retainPolicy}},
		"retained, PavVolume changed to Delete":                                             {state: in(retained, released, retainPolicy).with(volumePolicy(deletePolicy)), want: changes{volume: add}},
		"retained, PavVolume changed to Delete, with finalizer":                             {state: in(retained, released, retainPolicy).with(volumePolicy(deletePolicy)).with(held)},
		"retained, PavVolume changed to Delete and deleted":                                 {state: in(retained, released, retainPolicy).with(volumePolicy(deletePolicy)).with(held).deleted(), want: changes{pvPolicy: deletePolicy}},
		"retained, PavVolume changed to Delete and back":                                    {state: in(retained, released, retainPolicy).with(held), want: changes{volume: remove}},
		"retained, PersistentVolume available: do not copy the policy":                      {state: in(retained, corev1.VolumeAvailable, retainPolicy).with(pvPolicy(deletePolicy)), want: changes{pv: add, volume: add}},
		"PersistentVolume gone: the policy of the PavVolume applies":                        {state: without(retained, retainPolicy).with(volumePolicy(deletePolicy)), want: changes{volume: add}},
		"PersistentVolume being deleted: keep its finalizer":                                {state: in(ready, released, deletePolicy).with(func(o *observation) { o.pv.DeletionTimestamp = new(ago(1)); o.pv.Finalizers = nil })},
		"policy Retain, PersistentVolume being deleted: remove its finalizer": {state: in(ready, released, retainPolicy).with(func(o *observation) {
			o.pv.DeletionTimestamp = new(ago(1))
			o.pv.Finalizers = []string{pavv1.PVFinalizer}
		}), want: changes{pv: remove}},
		"policy Recycle counts as Retain": {state: in(ready, bound, retainPolicy).with(pvPolicy(corev1.PersistentVolumeReclaimRecycle))},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := alignment(test.state.o); got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

// An administrator has removed the PersistentVolume by force and set the PavVolume to Retain. The policy Delete of the
// PersistentVolume, which the cache still has, must not be copied: the storage would be deleted.
func TestAlign_ToDelete_AsksTheAPIServer(t *testing.T) {
	cached := in(pavv1.VolumeDeleting, corev1.VolumeReleased, deletePolicy).with(func(o *observation) { o.volume.Spec.ReclaimPolicy = retainPolicy }).o
	if got := alignment(cached); got.policy != deletePolicy {
		t.Fatalf("the alignment is %+v", got)
	}
	behind := reconciletest.Client(t, cached.volume, cached.pv)
	r := &Reconciler{Client: behind, Live: reconciletest.Client(t, cached.volume)}
	if err := r.align(t.Context(), cached, decision{}); !errors.Is(err, reconcile.ErrStale) {
		t.Errorf("got %v, want %v", err, reconcile.ErrStale)
	}
	left := &pavv1.PavVolume{}
	if err := behind.Get(t.Context(), client.ObjectKeyFromObject(cached.volume), left); err != nil || left.Spec.ReclaimPolicy != retainPolicy {
		t.Errorf("the policy is %s: %v", left.Spec.ReclaimPolicy, err)
	}
}

// A deleted record may be removed once its finalizers are aligned, so that the alignment must not rely on a stale
// cache.
func TestAlign_OfADeletedVolume_AsksTheAPIServer(t *testing.T) {
	held := func(o *observation) { o.volume.Finalizers = []string{pavv1.VolumeFinalizer} }
	cached := in(pavv1.VolumeRetained, corev1.VolumeReleased, retainPolicy).with(held).deleted().o
	live := cached.pv.DeepCopy()
	live.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
	behind := reconciletest.Client(t, cached.volume)
	r := &Reconciler{Client: behind, Live: reconciletest.Client(t, live)}
	if err := r.align(t.Context(), cached, decision{}); !errors.Is(err, reconcile.ErrStale) {
		t.Errorf("got %v, want %v", err, reconcile.ErrStale)
	}
	left := &pavv1.PavVolume{}
	if err := behind.Get(t.Context(), client.ObjectKeyFromObject(cached.volume), left); err != nil || len(left.Finalizers) != 1 {
		t.Errorf("the record has the finalizers %q: %v; want it to be held", left.Finalizers, err)
	}
}

package volume

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/reconcile"
	"github.com/albertofaria/pav/internal/reconcile/reconciletest"
)

// An administrator may have written a PersistentVolume of the bucket that the cache does not have yet.
func TestReleaseBucket_ThatAnotherObjectHas(t *testing.T) {
	byHand := func(handle string) *corev1.PersistentVolume {
		pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "by-hand"}}
		pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: "demo", VolumeHandle: handle}
		return pv
	}
	stage := func() *pavv1.PavStage {
		s := &pavv1.PavStage{ObjectMeta: metav1.ObjectMeta{Name: "stage", Labels: map[string]string{pavv1.ProvisionerLabel: "demo"}}}
		s.Spec.Provisioner, s.Spec.VolumeHandle, s.Spec.VolumeName, s.Spec.NodeName = "demo", "h", "by-hand", "n1"
		return s
	}
	dying := func() *state { return in(pavv1.VolumeDeleting, corev1.VolumeReleased, deletePolicy) }
	awaited := func() *state {
		return fresh().with(awaiting).with(func(o *observation) { o.claim = claimGone })
	}
	for name, test := range map[string]struct {
		state *state
		other client.Object
		want  bool // whether it is released
	}{
		"nothing else is there":                 {state: dying(), want: true},
		"a PersistentVolume has it":             {state: dying(), other: byHand("h")},
		"a PersistentVolume has another":        {state: dying(), other: byHand("other"), want: true},
		"a node has it":                         {state: dying(), other: stage()},
		"it was no volume yet":                  {state: awaited(), want: true},
		"it was no volume, but another's":       {state: awaited(), other: byHand("h")},
		"nodes cannot have it, as it was none":  {state: awaited(), other: stage(), want: true},
		"it is retained, and another's as well": {state: in(pavv1.VolumeReady, corev1.VolumeReleased, retainPolicy), other: byHand("h"), want: true},
	} {
		t.Run(name, func(t *testing.T) {
			o := test.state.with(ofOwnBucket).with(onBucket(noAccess)).o
			record := o.bucket.record
			objects := []client.Object{o.volume, o.provisioner, record}
			if o.pv != nil {
				objects = append(objects, o.pv)
			}
			if test.other != nil {
				objects = append(objects, test.other)
			}
			kube := reconciletest.Client(t, objects...)
			r := &Reconciler{Client: kube, Live: kube, holders: &reconcile.LiveReads{Reader: kube}, Now: func() time.Time { return noon }}
			err := r.releaseBucket(t.Context(), o, decision{Step: stepReleaseBucket})
			if err := kube.Get(t.Context(), client.ObjectKeyFromObject(record), record); err != nil {
				t.Fatal(err)
			}
			if record.Spec.Released != test.want || (err != nil) != !test.want || err != nil && !errors.Is(err, reconcile.ErrStale) {
				t.Errorf("released %t, %v", record.Spec.Released, err)
			}
		})
	}
}

package volume

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/reconcile"
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
			pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-u1", UID: "pv"}}
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

package volume

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

func TestDecideOrphan(t *testing.T) {
	deleted := func(pv *corev1.PersistentVolume) { pv.DeletionTimestamp = &metav1.Time{} }
	held := func(pv *corev1.PersistentVolume) {
		pv.Finalizers = []string{"kubernetes.io/pv-protection", pavv1.PVFinalizer}
	}
	retained := func(pv *corev1.PersistentVolume) {
		pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	}
	in := func(phase corev1.PersistentVolumePhase) func(*corev1.PersistentVolume) {
		return func(pv *corev1.PersistentVolume) { pv.Status.Phase = phase }
	}
	type changes []func(*corev1.PersistentVolume)
	tests := map[string]struct {
		pv   changes
		want orphanFate
	}{
		"released":                               {pv: changes{in(corev1.VolumeReleased), held}, want: orphanReported},
		"released, without finalizer":            {pv: changes{in(corev1.VolumeReleased)}, want: orphanReported},
		"released, policy Retain":                {pv: changes{in(corev1.VolumeReleased), retained}, want: orphanKept},
		"bound":                                  {pv: changes{in(corev1.VolumeBound), held}, want: orphanKept},
		"being deleted":                          {pv: changes{in(corev1.VolumeReleased), held, deleted}, want: orphanReleased},
		"being deleted, never bound":             {pv: changes{in(corev1.VolumeAvailable), held, deleted}, want: orphanReleased},
		"being deleted, policy Retain":           {pv: changes{in(corev1.VolumeReleased), held, deleted, retained}, want: orphanReleased},
		"being deleted, bound":                   {pv: changes{in(corev1.VolumeBound), held, deleted}, want: orphanKept},
		"being deleted, without PaV's finalizer": {pv: changes{in(corev1.VolumeReleased), deleted}, want: orphanKept},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			pv := &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete}}
			for _, change := range test.pv {
				change(pv)
			}
			if got := decideOrphan(pv); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

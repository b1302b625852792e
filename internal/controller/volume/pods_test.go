package volume

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/reconcile"
	"github.com/albertofaria/pav/internal/workflow"
)

// indexes gives a fake client the indexes of the caches.
type indexes struct{ *fake.ClientBuilder }

func (i indexes) IndexField(_ context.Context, object client.Object, field string, extract client.IndexerFunc) error {
	i.WithIndex(object, field, extract)
	return nil
}

// An administrator may create a PersistentVolume for the storage after the check of the API server, and before the
// deletion pod is created.
func TestStart_OfADeletionPod_LooksForNewHolders(t *testing.T) {
	for name, test := range map[string]struct {
		step   pavv1.VolumeStep
		handle string
		want   error
	}{
		"a PersistentVolume of the storage": {step: pavv1.StepDeleting, handle: "h", want: reconcile.ErrStale},
		"of other storage":                  {step: pavv1.StepDeleting, handle: "other"},
		"while the creation is reverted":    {step: pavv1.StepReverting, handle: "h", want: reconcile.ErrStale},
		"a pod that deletes nothing":        {step: pavv1.StepValidating, handle: "h"},
	} {
		t.Run(name, func(t *testing.T) {
			o := in(pavv1.VolumeReady, corev1.VolumeReleased, deletePolicy).o
			o.volume.Status.Step, o.volume.Status.Handle = test.step, "h"
			o.volume.Status.Pod = &pavv1.PodReference{Namespace: workflow.DefaultNamespace, Name: "p"}
			static := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "static"}}
			static.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: o.volume.Spec.Provisioner, VolumeHandle: test.handle}
			cache := newCache(t, o.volume, static)
			r := &Reconciler{Client: cache, Runner: &workflow.Runner{Client: cache}, Now: func() time.Time { return noon }}
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: workflow.DefaultNamespace, Name: "p"}}

			if err := r.start(t.Context(), o, pod, 1); !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
			err := cache.Get(t.Context(), client.ObjectKeyFromObject(pod), &corev1.Pod{})
			if exists := err == nil; exists != (test.want == nil) {
				t.Errorf("the pod exists: %t: %v", exists, err)
			}
			if err := cache.Get(t.Context(), client.ObjectKeyFromObject(o.volume), o.volume); err != nil {
				t.Fatal(err)
			}
			if begun := o.volume.Status.DeletionBegun; begun != (test.want == nil && test.step == pavv1.StepDeleting) {
				t.Errorf("it is recorded that a deletion pod was created: %t", begun)
			}
		})
	}
}

func newCache(t *testing.T, objects ...client.Object) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{pavv1.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	builder := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&pavv1.PavVolume{})
	if err := reconcile.RegisterIndexes(t.Context(), indexes{builder}); err != nil {
		t.Fatal(err)
	}
	return builder.Build()
}

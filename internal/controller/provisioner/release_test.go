package provisioner

import (
	"errors"
	"slices"
	"testing"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/reconcile"
)

// The cache may not have what was written a moment ago: a finalizer that is removed then leaves it behind.
func TestRelease_AsksTheAPIServer(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := errors.Join(storagev1.AddToScheme(scheme), pavv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	p := &pavv1.PavProvisioner{ObjectMeta: metav1.ObjectMeta{
		Name: "demo", UID: "u1", DeletionTimestamp: new(metav1.Now()), Finalizers: []string{pavv1.ProvisionerFinalizer, "another"},
	}}
	own, former := driverFor(p), driverFor(p)
	former.OwnerReferences[0].UID = "u0"
	labels := map[string]string{pavv1.ProvisionerLabel: p.Name}
	for name, test := range map[string]struct {
		live     client.Object
		released bool
	}{
		"nothing is left":      {&storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: "other"}}, true},
		"its CSIDriver":        {own, false},
		"that of a former one": {former, true},
		"a volume":             {&pavv1.PavVolume{ObjectMeta: metav1.ObjectMeta{Name: "v", Labels: labels, Finalizers: []string{pavv1.VolumeFinalizer}}}, false},
		"a snapshot":           {&pavv1.PavSnapshot{ObjectMeta: metav1.ObjectMeta{Name: "s", Labels: labels, Finalizers: []string{pavv1.SnapshotFinalizer}}}, false},
		"a bucket":             {&pavv1.PavBucket{ObjectMeta: metav1.ObjectMeta{Name: "b", Labels: labels, Finalizers: []string{pavv1.BucketFinalizer}}}, false},
		"a retained bucket":    {&pavv1.PavBucket{ObjectMeta: metav1.ObjectMeta{Name: "b", Labels: labels}}, true},
		"an access":            {&pavv1.PavBucketAccess{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: labels, Finalizers: []string{pavv1.BucketFinalizer}}}, false},
		"a retained snapshot":  {&pavv1.PavSnapshot{ObjectMeta: metav1.ObjectMeta{Name: "s", Labels: labels}}, true},
		"a stage":              {&pavv1.PavStage{ObjectMeta: metav1.ObjectMeta{Name: "s", Labels: labels, Finalizers: []string{pavv1.StageFinalizer}}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			live := fake.NewClientBuilder().WithScheme(scheme).WithObjects(p.DeepCopy(), test.live).Build()
			r := &Reconciler{Client: live, Live: live}
			now := &pavv1.PavProvisioner{}
			if err := live.Get(t.Context(), client.ObjectKeyFromObject(p), now); err != nil {
				t.Fatal(err)
			}
			if err := r.release(t.Context(), now); errors.Is(err, reconcile.ErrStale) == test.released || test.released && err != nil {
				t.Errorf("released: want %t, got error %v", test.released, err)
			}
			if err := live.Get(t.Context(), client.ObjectKeyFromObject(p), now); err != nil || slices.Contains(now.Finalizers, pavv1.ProvisionerFinalizer) == test.released {
				t.Errorf("its finalizers are %v, error %v", now.Finalizers, err)
			}
		})
	}
}

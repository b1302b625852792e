package reconcile_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/reconcile"
	"github.com/albertofaria/pav/internal/reconcile/reconciletest"
)

// An index has few keys, so that a look by a key finds objects of other storage, too.
func TestConcerned_AreOnlyVolumesOfThatStorage(t *testing.T) {
	volume := func(name string, status pavv1.PavVolumeStatus) *pavv1.PavVolume {
		return &pavv1.PavVolume{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: pavv1.PavVolumeSpec{Provisioner: "demo"}, Status: status}
	}
	storage := reconcile.Storage("demo", "h7")
	objects := []client.Object{
		volume("waits", pavv1.PavVolumeStatus{Handle: "other", Conflict: &pavv1.StorageConflict{Handle: "h7"}}),
		volume("former", pavv1.PavVolumeStatus{Handle: "new", FormerHandle: "h7"}),
	}
	beside := 0
	for i := range 5000 {
		handle := fmt.Sprintf("h%d", i)
		if handle != "h7" && reconcile.Bucket(reconcile.Storage("demo", handle)) == reconcile.Bucket(storage) {
			beside++
		}
		objects = append(objects, volume(fmt.Sprintf("v%d", i), pavv1.PavVolumeStatus{Handle: handle}))
	}
	if beside == 0 {
		t.Fatal("no other storage is in the bucket")
	}
	got, err := reconcile.Concerned(t.Context(), reconciletest.Client(t, objects...), storage)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(got)
	if diff := cmp.Diff([]string{"former", "v7", "waits"}, got); diff != "" {
		t.Errorf("concerned (-want +got):\n%s", diff)
	}
}

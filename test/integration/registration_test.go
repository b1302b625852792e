package integration

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// A pod that is started at once would get an error for a driver that its node registers a second later.
func TestFirstPersistentVolume_WaitsForNodesThatHaveYetToRegisterItsDriver(t *testing.T) {
	c := start(t)
	run(t, c)
	node := mustCreate(t, c, &storagev1.CSINode{
		ObjectMeta: metav1.ObjectMeta{Name: "registering"},
		Spec:       storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{{Name: pavv1.Driver, NodeID: "registering"}}},
	})
	defer mustDelete(t, c, node)
	volumes, err := c.Admin.Watch(t.Context(), &corev1.PersistentVolumeList{})
	if err != nil {
		t.Fatal(err)
	}
	defer volumes.Stop()

	driver(t, c, "late", inPool)
	claim := mustCreate(t, c, ownedClaim("late", "first"))
	_, volume := bound(t, c, claim)
	ofDriver := &storagev1.CSIDriver{}
	if err := c.Admin.Get(t.Context(), client.ObjectKey{Name: "late"}, ofDriver); err != nil {
		t.Fatal(err)
	}
	first := added(t.Context(), t, volumes, volume.Name)
	if waited := first.CreationTimestamp.Sub(ofDriver.CreationTimestamp.Time); waited < 9*time.Second {
		t.Errorf("the PersistentVolume was written %s after the CSIDriver, although a node has not registered it", waited)
	}
	mustDelete(t, c, claim)
	gone(t, c, volume)
}

// added returns a PersistentVolume as it was when it was created.
func added(ctx context.Context, t *testing.T, volumes watch.Interface, name string) *corev1.PersistentVolume {
	t.Helper()
	for {
		select {
		case e := <-volumes.ResultChan():
			if pv, ok := e.Object.(*corev1.PersistentVolume); ok && e.Type == watch.Added && pv.Name == name {
				return pv
			}
		case <-ctx.Done():
			t.Fatal(ctx.Err())
		}
	}
}

package integration

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/uninstall"
)

func TestPrepareUninstall_RefusesWhatWouldLoseVolumes_AndRemovesTheDriver(t *testing.T) {
	c := start(t)
	provisioner := mustCreate(t, c, provisionerOf("kept"))
	_, err := uninstall.Prepare(t.Context(), c.Admin)
	if !errors.Is(err, uninstall.ErrInUse) || !strings.Contains(err.Error(), "1 PavProvisioner(s); run: kubectl delete crd pavprovisioners.pav.albertofaria.github.io") {
		t.Errorf("with a PavProvisioner: got %v", err)
	}
	driver := &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: pavv1.Driver}}
	exists(t, c, driver, "is there", func(d *storagev1.CSIDriver) bool { return d.DeletionTimestamp == nil })
	mustDelete(t, c, provisioner)
	gone(t, c, provisioner)

	registered := func(name string) *storagev1.CSINode {
		node := mustCreate(t, c, &storagev1.CSINode{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{{Name: pavv1.Driver, NodeID: name}}},
		})
		t.Cleanup(func() { mustDeleteLasting(t, c, node) })
		return node
	}
	node := registered("leaving")
	registered("down")
	up := mustCreate(t, c, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node.Name}})
	t.Cleanup(func() { mustDeleteLasting(t, c, up) })
	mustPatchStatus(t, c, up, func(n *corev1.Node) {
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	})
	defer reinstall(t, c, driver)
	before := driver.UID
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	if _, err := uninstall.Prepare(ctx, c.Admin); err == nil {
		t.Error("the node agent does not run, and the driver is removed all the same")
	}
	exists(t, c, driver, "is there again", func(d *storagev1.CSIDriver) bool { return d.UID != before })
	// The node agent removes the driver from its node when the CSIDriver has gone.
	removed := make(chan error, 1)
	go func() { removed <- unregister(t, c, driver, node) }()
	if unreachable, err := uninstall.Prepare(t.Context(), c.Admin); err != nil || !slices.Equal(unreachable, []string{"down"}) {
		t.Errorf("got the unreachable nodes %q, %v", unreachable, err)
	}
	if err := <-removed; err != nil {
		t.Error(err)
	}
}

// unregister does what the agent of a node does when PaV's CSIDriver is deleted.
func unregister(t *testing.T, c *cluster, driver *storagev1.CSIDriver, node *storagev1.CSINode) error {
	t.Helper()
	eventually(t, "the CSIDriver is gone", func(ctx context.Context) (bool, string) {
		return apierrors.IsNotFound(c.Admin.Get(ctx, client.ObjectKeyFromObject(driver), &storagev1.CSIDriver{})), ""
	})
	node.Spec.Drivers = nil
	return c.Admin.Update(t.Context(), node)
}

// reinstall creates a deleted object again.
func reinstall(t *testing.T, c *cluster, object client.Object) {
	t.Helper()
	object.SetUID("")
	object.SetResourceVersion("")
	if err := c.Admin.Create(lasting(t), object); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Error(err)
	}
}

package integration

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/test/agent"
	"github.com/albertofaria/pav/test/controlplane"
)

const (
	namespace = controlplane.Namespace
	kindCRD   = "CustomResourceDefinition"
)

// manifests returns the objects of deployment.yaml, in its order.
func manifests() ([]*unstructured.Unstructured, error) {
	return controlplane.Manifests(filepath.Join("..", "..", "deployment.yaml"))
}

// install does what kubectl create -f deployment.yaml does, and waits until PaV's kinds are served.
func (c *cluster) install(ctx context.Context, wanted func(*unstructured.Unstructured) bool) error {
	objects, err := manifests()
	if err != nil {
		return err
	}
	return c.Install(ctx, objects, wanted)
}

// nodeAgent returns a client with the rights of a node's agent.
func nodeAgent(t *testing.T, c *cluster, node string) client.Client {
	t.Helper()
	agent, err := client.New(c.NodeAgent(node), client.Options{Scheme: c.Admin.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	return agent
}

// Contract: "To uninstall PaV …, run: kubectl delete crd pavprovisioners.pav.albertofaria.github.io", which
// "will cause the deletion of all existing PavProvisioner objects and block until they are fully removed".
func TestUninstallation(t *testing.T) {
	c := start(t)
	run(t, c)
	driver(t, c, "uninstalled", retain)
	claim := mustCreate(t, c, claimOf("uninstalled", "data"))
	pv, volume := bound(t, c, claim)
	mustDelete(t, c, claim)
	exists(t, c, volume, "is retained", func(v *pavv1.PavVolume) bool { return v.Status.Phase == pavv1.VolumeRetained })
	mustDelete(t, c, pv)

	crds := func(object *unstructured.Unstructured) bool { return object.GetKind() == kindCRD }
	objects, err := manifests()
	if err != nil {
		t.Fatal(err)
	}
	first := &unstructured.Unstructured{}
	first.SetAPIVersion("apiextensions.k8s.io/v1")
	first.SetKind(kindCRD)
	first.SetName("pavprovisioners." + pavv1.Group)
	mustDelete(t, c, first)
	gone(t, c, first)
	gone(t, c, csiDriver("uninstalled"))
	for _, object := range objects {
		if crds(object) && object.GetName() != first.GetName() {
			mustDelete(t, c, object)
			gone(t, c, object)
		}
	}
	if err := c.install(lasting(t), crds); err != nil { // for the tests that follow
		t.Fatal(err)
	}
}

// checkNothingLeft is how every test ends, when its agent has. What a failed test has left of these kinds is removed, so that the tests
// that follow say only what is wrong with themselves.
func checkNothingLeft(tb testing.TB, c *cluster) {
	tb.Helper()
	agent.CheckNoGoroutines(tb)
	var left []client.Object
	for _, list := range []client.ObjectList{
		&pavv1.PavProvisionerList{}, &pavv1.PavVolumeList{}, &pavv1.PavStageList{}, &pavv1.PavSnapshotList{},
		&snapshotv1.VolumeSnapshotList{}, &snapshotv1.VolumeSnapshotContentList{}, &snapshotv1.VolumeSnapshotClassList{},
		&corev1.PersistentVolumeList{}, &corev1.PersistentVolumeClaimList{}, &corev1.PodList{}, &corev1.NodeList{},
	} {
		if err := c.Admin.List(lasting(tb), list); err != nil {
			tb.Error(err)
		}
		eachItem(tb, list, func(object client.Object) {
			tb.Errorf("%T %s is left", object, object.GetName())
			left = append(left, object)
		})
	}
	for _, object := range left {
		// In this order: controllers add their finalizers again to what is not being deleted.
		err := errors.Join(
			client.IgnoreNotFound(c.Admin.Delete(lasting(tb), object, client.GracePeriodSeconds(0))),
			client.IgnoreNotFound(c.Admin.Patch(lasting(tb), object, client.RawPatch(types.MergePatchType, []byte(`{"metadata": {"finalizers": null}}`)))),
		)
		if err != nil {
			tb.Error(err)
		}
	}
}

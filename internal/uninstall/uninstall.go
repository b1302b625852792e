// Package uninstall prepares the removal of PaV from a cluster. It deletes no volume, no definition, and no object of the
// installation other than PaV's own CSIDriver.
package uninstall

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/protocol"
)

// ErrInUse means that PaV cannot be removed without losing volumes.
var ErrInUse = errors.New("PaV is in use")

// unregisterTimeout is how long the node agents may take to remove the sockets of PaV's driver.
const unregisterTimeout = time.Minute

// Run is Prepare with a client of its own.
func Run(ctx context.Context, config *rest.Config) (unreachable []string, err error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), pavv1.AddToScheme(scheme)); err != nil {
		return nil, fmt.Errorf("registering kinds: %w", err)
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("connecting to the API server: %w", err)
	}
	return Prepare(ctx, c)
}

// Prepare fails with ErrInUse if there are PavProvisioners, or volumes and snapshots that only PaV can delete or unstage. Otherwise it
// deletes PaV's CSIDriver, and waits until the node agents, which must still run, have removed the driver from all nodes
// that are ready. If they do not, it creates the CSIDriver again. It returns the other nodes, on which the driver stays registered.
func Prepare(ctx context.Context, c client.Client) (unreachable []string, err error) {
	left, err := remaining(ctx, c)
	if err != nil {
		return nil, err
	}
	if len(left) > 0 {
		return nil, fmt.Errorf("%w: there are still %s; run: kubectl delete crd pavprovisioners.%s, which waits until all volumes and snapshots except retained ones are deleted",
			ErrInUse, strings.Join(left, ", "), pavv1.GroupVersion.Group)
	}
	driver := &storagev1.CSIDriver{}
	switch err := c.Get(ctx, client.ObjectKey{Name: pavv1.Driver}, driver); {
	case apierrors.IsNotFound(err):
		if unreachable, err = unregistered(ctx, c); err != nil {
			err = fmt.Errorf("%w; CSIDriver %q does not exist, so that no pod of PaV starts: to go on with PaV, install it again", err, pavv1.Driver)
		}
		return unreachable, err
	case err != nil:
		return nil, fmt.Errorf("getting CSIDriver %q: %w", pavv1.Driver, err)
	}
	if err := c.Delete(ctx, driver, client.Preconditions{UID: &driver.UID}); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("deleting CSIDriver %q: %w", driver.Name, err)
	}
	unreachable, err = unregistered(ctx, c)
	if err == nil {
		return unreachable, nil
	}
	// PaV stays installed, and serves no pod without its driver.
	again := &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: driver.Name, Labels: driver.Labels, Annotations: driver.Annotations}, Spec: driver.Spec}
	if left := c.Create(context.WithoutCancel(ctx), again); left != nil && !apierrors.IsAlreadyExists(left) {
		return nil, errors.Join(err, fmt.Errorf("creating CSIDriver %q again: %w", driver.Name, left))
	}
	return nil, err
}

// remaining returns the objects that are in the way, in words.
func remaining(ctx context.Context, c client.Client) ([]string, error) {
	provisioners, volumes, stages, snapshots := &pavv1.PavProvisionerList{}, &pavv1.PavVolumeList{}, &pavv1.PavStageList{}, &pavv1.PavSnapshotList{}
	for _, list := range []client.ObjectList{provisioners, volumes, stages, snapshots} {
		if err := c.List(ctx, list); err != nil && !meta.IsNoMatchError(err) && client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("looking for objects of PaV: %w", err)
		}
	}
	volumes.Items = slices.DeleteFunc(volumes.Items, func(v pavv1.PavVolume) bool { return v.Status.Phase == pavv1.VolumeRetained })
	snapshots.Items = slices.DeleteFunc(snapshots.Items, func(s pavv1.PavSnapshot) bool { return s.Status.Phase == pavv1.SnapshotRetained })
	// Records of failed attempts protect nothing.
	stages.Items = slices.DeleteFunc(stages.Items, func(s pavv1.PavStage) bool { return !slices.Contains(s.Finalizers, pavv1.StageFinalizer) })
	var left []string
	for _, found := range []struct {
		kind  string
		count int
	}{{"PavProvisioner", len(provisioners.Items)}, {"PavVolume", len(volumes.Items)}, {"PavStage", len(stages.Items)}, {"PavSnapshot", len(snapshots.Items)}} {
		if found.count > 0 {
			left = append(left, fmt.Sprintf("%d %s(s)", found.count, found.kind))
		}
	}
	return left, nil
}

// unregistered waits until PaV's driver is registered on no node that is ready, and returns the others on which it is.
func unregistered(ctx context.Context, c client.Client) (unreachable []string, err error) {
	var on []string
	// The command runs once, for a second or two, so a watch would be no gain.
	err = wait.PollUntilContextTimeout(ctx, time.Second, unregisterTimeout, true, func(ctx context.Context) (bool, error) {
		registered, nodes := &storagev1.CSINodeList{}, &corev1.NodeList{}
		for _, list := range []client.ObjectList{registered, nodes} {
			if err := c.List(ctx, list); err != nil {
				return false, fmt.Errorf("listing nodes: %w", err)
			}
		}
		on, unreachable = judge(registered.Items, nodes.Items)
		return len(on) == 0, nil
	})
	if wait.Interrupted(err) && len(on) > 0 {
		return nil, fmt.Errorf("driver %q is still registered on %d node(s), for example %q: is the node agent running there?", pavv1.Driver, len(on), on[0])
	}
	if err != nil {
		return nil, fmt.Errorf("waiting for the nodes to remove driver %q: %w", pavv1.Driver, err)
	}
	return unreachable, nil
}

// judge returns the nodes on which PaV's driver is registered: those that are ready, so that an agent can remove it, and
// the others.
func judge(registered []storagev1.CSINode, nodes []corev1.Node) (ready, unreachable []string) {
	up := map[string]bool{}
	for i := range nodes {
		up[nodes[i].Name] = slices.ContainsFunc(nodes[i].Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
		})
	}
	for i := range registered {
		switch name := registered[i].Name; {
		case !protocol.IsRegistered(&registered[i], pavv1.Driver):
		case up[name]:
			ready = append(ready, name)
		default:
			unreachable = append(unreachable, name)
		}
	}
	return ready, unreachable
}

package stage

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/reconcile"
	"github.com/albertofaria/pav/internal/workflow"
)

// unlabelledPeriod is how often a node reads all PersistentVolumes of the cluster at most. It does so only for a volume
// whose PersistentVolume does not have PaV's labels yet, or is gone.
const unlabelledPeriod = 10 * time.Second

// Index is the Catalogue of an agent. It watches no PersistentVolumes, as those of all nodes are many: it finds them by
// the label that the controller agent gives them.
type Index struct {
	cache, live client.Reader
	turn        chan struct{}       // held by the call that reads the PersistentVolumes without labels
	read        time.Time           // when they were read last
	unlabelled  map[Volume][]string // their names
}

// NewIndex returns a Catalogue that reads PavProvisioners from a cache, and PersistentVolumes from the API server.
func NewIndex(cache, live client.Reader) *Index {
	return &Index{cache: cache, live: live, turn: make(chan struct{}, 1)}
}

// VolumeNames implements Catalogue. First it takes what the API server has in memory, which may be a moment old; if that is
// not one volume, its newest state, which may take a tenth of a second more.
func (x *Index) VolumeNames(ctx context.Context, driver, handle string) ([]string, error) {
	for _, version := range []string{"0", ""} {
		names, err := x.labelled(ctx, driver, handle, version)
		if err != nil || len(names) == 1 || len(names) > 0 && version == "" {
			return names, err
		}
	}
	return x.namesOfUnlabelled(ctx, driver, handle)
}

// labelled returns the names of the volume's PersistentVolumes that have the label, at a resource version.
func (x *Index) labelled(ctx context.Context, driver, handle, version string) ([]string, error) {
	list := &corev1.PersistentVolumeList{}
	of := client.MatchingLabels{pavv1.StorageLabel: workflow.Hash(driver, handle)}
	if err := x.live.List(ctx, list, of, &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: version}}); err != nil {
		return nil, fmt.Errorf("finding the volume: %w", err)
	}
	var names []string
	for i := range list.Items {
		if isOf(&list.Items[i], Volume{Driver: driver, Handle: handle}) { // a label may be wrong
			names = append(names, list.Items[i].Name)
		}
	}
	return names, nil
}

// namesOfUnlabelled returns the names of the volume's PersistentVolumes that do not have PaV's labels: the controller agent
// is an earlier version, or not there. They may be as old as unlabelledPeriod.
func (x *Index) namesOfUnlabelled(ctx context.Context, driver, handle string) ([]string, error) {
	select {
	case x.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-x.turn }()
	if now := time.Now(); x.read.IsZero() || now.Sub(x.read) >= unlabelledPeriod {
		found, err := x.readUnlabelled(ctx)
		if err != nil {
			return nil, err
		}
		x.read, x.unlabelled = now, found
	}
	return x.unlabelled[Volume{Driver: driver, Handle: handle}], nil
}

// readUnlabelled returns the names of all PersistentVolumes of PavProvisioners that do not have PaV's labels.
func (x *Index) readUnlabelled(ctx context.Context) (map[Volume][]string, error) {
	provisioners := &pavv1.PavProvisionerList{}
	if err := x.cache.List(ctx, provisioners, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing PavProvisioners: %w", err)
	}
	ours := map[string]bool{}
	for i := range provisioners.Items {
		ours[provisioners.Items[i].Name] = true
	}
	var names map[Volume][]string
	begin := func() { names = map[Volume][]string{} }
	err := reconcile.Pages(ctx, x.live, &corev1.PersistentVolumeList{}, nil, begin, func(page *corev1.PersistentVolumeList) {
		for i := range page.Items {
			if pv := &page.Items[i]; !reconcile.IsLabelled(pv) && ours[pv.Spec.CSI.Driver] {
				of := Volume{Driver: pv.Spec.CSI.Driver, Handle: pv.Spec.CSI.VolumeHandle}
				names[of] = append(names[of], pv.Name)
			}
		}
	})
	if err != nil {
		return nil, fmt.Errorf("reading the persistent volumes without PaV's labels: %w", err)
	}
	return names, nil
}

// Provisioner implements Catalogue.
func (x *Index) Provisioner(ctx context.Context, name string) (*pavv1.PavProvisioner, error) {
	provisioner := &pavv1.PavProvisioner{}
	if err := x.cache.Get(ctx, client.ObjectKey{Name: name}, provisioner); apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("getting PavProvisioner %q: %w", name, err)
	}
	return provisioner, nil
}

package provisioner

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// held are the names of a provisioner's records that have PaV's finalizer. Retained volumes, snapshots and buckets, and the record of a
// failed stage, have none.
type held struct {
	volumes, stages, snapshots, buckets, accesses []string
}

// any reports whether there are any.
func (h held) any() bool {
	return len(h.volumes)+len(h.stages)+len(h.snapshots)+len(h.buckets)+len(h.accesses) > 0
}

// String lists them, with one name of each kind. The text changes only with the list.
func (h held) String() string {
	var all []string
	for _, of := range []struct {
		kind  string
		names []string
	}{{"PavVolume", h.volumes}, {"PavStage", h.stages}, {"PavSnapshot", h.snapshots}, {"PavBucket", h.buckets}, {"PavBucketAccess", h.accesses}} {
		if n := len(of.names); n > 0 {
			all = append(all, fmt.Sprintf("%d %s(s), for example %q", n, of.kind, slices.Min(of.names)))
		}
	}
	return strings.Join(all, ", and for ")
}

// selectors select the objects of a provisioner, by kind.
type selectors struct {
	volumes, stages, snapshots, buckets, accesses client.ListOption
}

// findHeld returns those of the selected objects that have PaV's finalizer.
func findHeld(ctx context.Context, reader client.Reader, selected selectors) (held, error) {
	var found held
	for _, of := range []struct {
		kind      string
		list      client.ObjectList
		selected  client.ListOption
		finalizer string
		names     *[]string
	}{
		{"PavVolumes", &pavv1.PavVolumeList{}, selected.volumes, pavv1.VolumeFinalizer, &found.volumes},
		{"PavStages", &pavv1.PavStageList{}, selected.stages, pavv1.StageFinalizer, &found.stages},
		{"PavSnapshots", &pavv1.PavSnapshotList{}, selected.snapshots, pavv1.SnapshotFinalizer, &found.snapshots},
		{"PavBuckets", &pavv1.PavBucketList{}, selected.buckets, pavv1.BucketFinalizer, &found.buckets},
		{"PavBucketAccesses", &pavv1.PavBucketAccessList{}, selected.accesses, pavv1.BucketFinalizer, &found.accesses},
	} {
		if err := reader.List(ctx, of.list, of.selected); err != nil {
			return held{}, fmt.Errorf("looking up %s: %w", of.kind, err)
		}
		err := meta.EachListItem(of.list, func(item runtime.Object) error {
			if object, ok := item.(client.Object); ok && controllerutil.ContainsFinalizer(object, of.finalizer) {
				*of.names = append(*of.names, object.GetName())
			}
			return nil
		})
		if err != nil {
			return held{}, fmt.Errorf("looking up %s: %w", of.kind, err)
		}
	}
	return found, nil
}

// heldNow returns the objects of a provisioner that the API server has, and that have PaV's finalizer.
func (r *Reconciler) heldNow(ctx context.Context, p *pavv1.PavProvisioner) (held, error) {
	labelled := client.MatchingLabels{pavv1.ProvisionerLabel: p.Name}
	return findHeld(ctx, r.Live, selectors{volumes: labelled, stages: labelled, snapshots: labelled, buckets: labelled, accesses: labelled})
}

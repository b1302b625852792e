package snapshot

import (
	"context"
	"fmt"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/protocol"
	"github.com/albertofaria/pav/internal/reconcile"
)

// found collects the other objects that have the handle of a snapshot, for messages.
type found struct {
	record  *pavv1.PavSnapshot
	storage string
	others  []string

	// later are the records that are deleted after this one: of those that are to be deleted with one handle, the first by name goes
	// first.
	later map[string]bool

	// retained are the records of the snapshot that no VolumeSnapshotContent has any more; only if the snapshot is to be deleted.
	retained []*pavv1.PavSnapshot
}

func newFound(record *pavv1.PavSnapshot, handle string) *found {
	return &found{record: record, storage: reconcile.Storage(record.Spec.Provisioner, handle), later: map[string]bool{}}
}

// addRecords adds PavSnapshots. They must be added before VolumeSnapshotContents.
func (f *found) addRecords(records *pavv1.PavSnapshotList) {
	for i := range records.Items {
		other := &records.Items[i]
		if other.Name == f.record.Name || reconcile.StorageOfSnapshot(other) != f.storage {
			continue
		}
		// An administrator who lets a snapshot be deleted by another VolumeSnapshotContent decides about a retained one, too; but not about
		// one that was retained while the other waited: that was to keep the storage.
		if f.record.Status.Phase == pavv1.SnapshotDeleting && other.Status.Phase == pavv1.SnapshotRetained && !f.isRetainedLater(other) {
			f.retained = append(f.retained, other)
			continue
		}
		// Two that are to be deleted must not wait for each other.
		if f.record.Status.Phase == pavv1.SnapshotDeleting && other.Status.Phase == pavv1.SnapshotDeleting && other.Name > f.record.Name {
			f.later[other.Name] = true
			continue
		}
		f.others = append(f.others, fmt.Sprintf("PavSnapshot %q", other.Name))
	}
}

// isRetainedLater reports whether another record was retained after the deletion of the snapshot had begun.
func (f *found) isRetainedLater(other *pavv1.PavSnapshot) bool {
	began, since := meta.FindStatusCondition(f.record.Status.Conditions, pavv1.SnapshotDeleted), other.Status.RetainedTime
	return began != nil && since != nil && !since.Before(&began.LastTransitionTime)
}

// addContents adds VolumeSnapshotContents. One that only waits for something else than PaV has no use for the snapshot.
func (f *found) addContents(contents *snapshotv1.VolumeSnapshotContentList) {
	for i := range contents.Items {
		other := &contents.Items[i]
		if storageOfContent(other) != f.storage || other.UID == f.record.Spec.ContentRef.UID {
			continue
		}
		ends := other.DeletionTimestamp != nil && !controllerutil.ContainsFinalizer(other, protocol.SnapshotContentFinalizer)
		if name := protocol.SnapshotOf(other); ends || name == f.record.Name || f.later[name] {
			continue
		}
		f.others = append(f.others, fmt.Sprintf("VolumeSnapshotContent %q", other.Name))
	}
}

// recordsWith returns the PavSnapshots that may have a storage, see reconcile.Storage, according to the cache. They are shared, and only read.
func (r *Reconciler) recordsWith(ctx context.Context, storage string) (*pavv1.PavSnapshotList, error) {
	records := &pavv1.PavSnapshotList{}
	if err := r.Client.List(ctx, records, client.MatchingFields{reconcile.SnapshotsByStorage: reconcile.Bucket(storage)}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("looking up who has the storage %q: %w", storage, err)
	}
	return records, nil
}

// holders returns the other objects that have the handle of a snapshot, according to the cache.
func (r *Reconciler) holders(ctx context.Context, record *pavv1.PavSnapshot, handle string) ([]string, error) {
	f := newFound(record, handle)
	records, err := r.recordsWith(ctx, f.storage)
	if err != nil {
		return nil, err
	}
	contents := &snapshotv1.VolumeSnapshotContentList{}
	if err := r.Client.List(ctx, contents, client.MatchingFields{contentsByStorage: reconcile.Bucket(f.storage)}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("looking up who has the snapshot handle %q: %w", handle, err)
	}
	f.addRecords(records)
	f.addContents(contents)
	return f.others, nil
}

// forgetRetained deletes the records of a snapshot that was retained, and is deleted by another VolumeSnapshotContent.
func (r *Reconciler) forgetRetained(ctx context.Context, record *pavv1.PavSnapshot) error {
	f := newFound(record, handleOf(record))
	records, err := r.recordsWith(ctx, f.storage)
	if err != nil {
		return err
	}
	f.addRecords(records)
	for _, other := range f.retained {
		if err := r.remove(ctx, other); err != nil {
			return err
		}
	}
	return nil
}

// earlier returns another record of a snapshot that is taken over, as of one that was retained, which tells what a VolumeSnapshotContent
// does not: from which nodes the snapshot can be reached, and its size. It is nil if there is none.
func (r *Reconciler) earlier(ctx context.Context, record *pavv1.PavSnapshot, handle string) (*pavv1.PavSnapshot, error) {
	storage := reconcile.Storage(record.Spec.Provisioner, handle)
	records, err := r.recordsWith(ctx, storage)
	if err != nil {
		return nil, err
	}
	return earlierIn(records, record.Name, storage), nil
}

func earlierIn(records *pavv1.PavSnapshotList, name, storage string) *pavv1.PavSnapshot {
	for i := range records.Items {
		other := &records.Items[i]
		if other.Name != name && other.Status.Handle != "" && reconcile.StorageOfSnapshot(other) == storage {
			return other
		}
	}
	return nil
}

// checkAlone asks the API server whether no other object has the snapshot that is about to be deleted. If one has, the cache is behind,
// and the error is reconcile.ErrStale. The API server has no index by handle, so each answer reads all snapshots of the provisioner, and
// all VolumeSnapshotContents, in pages. One is asked at a time: the copies in 500 PavSnapshots can have 32 MiB, and many snapshots may be
// deleted at once.
func (r *Reconciler) checkAlone(ctx context.Context, record *pavv1.PavSnapshot) error {
	select {
	case r.asking <- struct{}{}:
		defer func() { <-r.asking }()
	case <-ctx.Done():
		return ctx.Err()
	}
	f := newFound(record, handleOf(record))
	again := func() { *f = *newFound(record, handleOf(record)) }
	ofProvisioner := []client.ListOption{client.MatchingLabels{pavv1.ProvisionerLabel: record.Spec.Provisioner}}
	if err := reconcile.Pages(ctx, r.Live, &pavv1.PavSnapshotList{}, ofProvisioner, again, f.addRecords); err != nil {
		return fmt.Errorf("asking who has the snapshot handle %q: %w", handleOf(record), err)
	}
	known := *f
	if err := reconcile.Pages(ctx, r.Live, &snapshotv1.VolumeSnapshotContentList{}, nil, func() { *f = known }, f.addContents); err != nil {
		return fmt.Errorf("asking who has the snapshot handle %q: %w", handleOf(record), err)
	}
	if len(f.others) > 0 {
		return reconcile.ErrStale
	}
	return nil
}

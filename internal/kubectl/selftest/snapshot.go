package selftest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// restoreSnapshot makes a snapshot of the volume, creates a volume from it, and deletes it. It returns whether no step failed.
func (s *scenario) restoreSnapshot(ctx context.Context) bool {
	if !s.step(ctx, &s.volume, "make a snapshot", s.makeSnapshot) {
		return false
	}
	if !s.snapshotted {
		return true // the cluster has none
	}
	intact := s.copy(ctx, pavv1.DataSourceSnapshot)
	if s.options.Keep || s.stuck {
		return intact
	}
	return s.step(ctx, &s.volume, "delete the snapshot", func(ctx context.Context) (outcome, error) {
		if err := errors.Join(s.deleteSnapshots(ctx), s.awaitSnapshots(ctx)); err != nil {
			return outcome{}, err
		}
		return passed("")
	}) && intact
}

// makeSnapshot makes a snapshot of the volume, and waits until it can be used.
func (s *scenario) makeSnapshot(ctx context.Context) (outcome, error) {
	if !slices.ContainsFunc(s.created, func(object client.Object) bool { return kindOf(object) == "VolumeSnapshotClass" }) {
		if err := s.create(ctx, s.snapshotClass()); meta.IsNoMatchError(err) {
			return skipped("the cluster has no definitions of snapshots")
		} else if err != nil {
			return outcome{}, err
		}
	}
	snapshot := s.volumeSnapshot(s.volume)
	if err := s.post(ctx, snapshot); err != nil {
		return outcome{}, fmt.Errorf("creating the VolumeSnapshot: %w", err)
	}
	s.snapshotted, s.snapshots = true, true
	err := s.troubles.ofSnapshots(ctx, func(ctx context.Context) error {
		return await(ctx, s.client, &snapshotv1.VolumeSnapshotList{}, func(seen objects) (bool, error) {
			now, _ := seen[client.ObjectKeyFromObject(snapshot)].(*snapshotv1.VolumeSnapshot)
			if now == nil {
				return false, errors.New("the VolumeSnapshot was deleted")
			}
			now.DeepCopyInto(snapshot)
			return now.Status != nil && now.Status.ReadyToUse != nil && *now.Status.ReadyToUse, nil
		}, only(snapshot.Namespace, snapshot.Name)...)
	})
	if err != nil {
		return outcome{}, notReady(snapshot, err)
	}
	s.size = snapshot.Status.RestoreSize
	return passed("")
}

// notReady adds to an error what the VolumeSnapshot says of it.
func notReady(snapshot *snapshotv1.VolumeSnapshot, err error) error {
	if !errors.Is(err, errTimeout) {
		return err
	}
	err = fmt.Errorf("the VolumeSnapshot is not ready to use: %w", err)
	if status := snapshot.Status; status != nil && status.Error != nil && status.Error.Message != nil {
		return errors.Join(err, errors.New(*status.Error.Message))
	}
	if snapshot.Status == nil {
		return errors.Join(err, errors.New("nothing handles it: the cluster's snapshot-controller may not be running"))
	}
	return err
}

// snapshotClass returns the VolumeSnapshotClass of the test, with the parameters of the one in the files, if any.
func (r *run) snapshotClass() *snapshotv1.VolumeSnapshotClass {
	class := &snapshotv1.VolumeSnapshotClass{ObjectMeta: r.meta("", r.name), Driver: r.name, DeletionPolicy: snapshotv1.VolumeSnapshotContentDelete}
	for _, other := range r.input.others {
		pattern := &snapshotv1.VolumeSnapshotClass{}
		if other.GetKind() == "VolumeSnapshotClass" && decode(other.Object, pattern) == nil && pattern.Driver == r.input.provisioner() {
			class.Parameters = pattern.Parameters
			break
		}
	}
	return class
}

// volumeSnapshot returns the VolumeSnapshot of a volume.
func (r *run) volumeSnapshot(v volume) *snapshotv1.VolumeSnapshot {
	claim, class := v.claim(), r.name
	return &snapshotv1.VolumeSnapshot{
		ObjectMeta: r.meta(r.name, claim),
		Spec:       snapshotv1.VolumeSnapshotSpec{Source: snapshotv1.VolumeSnapshotSource{PersistentVolumeClaimName: &claim}, VolumeSnapshotClassName: &class},
	}
}

// deleteSnapshots deletes all VolumeSnapshots of the test.
func (r *run) deleteSnapshots(ctx context.Context) error {
	if !r.snapshots {
		return nil
	}
	if err := r.client.DeleteAllOf(ctx, &snapshotv1.VolumeSnapshot{}, client.InNamespace(r.name), client.MatchingLabels(r.labels())); err != nil {
		return fmt.Errorf("deleting the test's VolumeSnapshots: %w", err)
	}
	return nil
}

// awaitSnapshots waits until the snapshots that were deleted are gone, with their storage.
func (r *run) awaitSnapshots(ctx context.Context) error {
	if !r.snapshots {
		return nil
	}
	return r.troubles.ofSnapshots(ctx, func(ctx context.Context) error {
		if err := gone(ctx, r.client, &snapshotv1.VolumeSnapshotList{}, client.InNamespace(r.name), client.MatchingLabels(r.labels())); err != nil {
			return fmt.Errorf("a VolumeSnapshot that was deleted is still there: %w", err)
		}
		if err := gone(ctx, r.client, &pavv1.PavSnapshotList{}, client.MatchingLabels{pavv1.ProvisionerLabel: r.name}); err != nil {
			return fmt.Errorf("a PavSnapshot is still there: %w", err)
		}
		return nil
	})
}

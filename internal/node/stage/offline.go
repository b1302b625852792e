package stage

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// growsOffline reports whether a volume is to grow, or grows, while no node has it staged.
func growsOffline(record *pavv1.PavVolume) bool {
	return record != nil && record.Status.Expansion != nil && record.Status.Expansion.Offline
}

// awaitExpansion waits until a volume has grown that no node is to have staged meanwhile.
func (t *task) awaitExpansion(ctx context.Context, record *pavv1.PavVolume) error {
	err := await(ctx, t.client, &pavv1.PavVolumeList{}, record.Name, &pavv1.PavVolume{}, func(now *pavv1.PavVolume) bool {
		return now.UID != record.UID || !growsOffline(now)
	})
	if err != nil {
		return fmt.Errorf("%w: %w: %w", ErrPending, t.grows(record.Name), err)
	}
	return nil
}

func (t *task) grows(volume string) error {
	return fmt.Errorf("provisioner %q: volume %q is to grow while no node has it staged, and is staged after that: see kubectl pav describe pv %s", t.Driver, volume, volume)
}

// observeOffline gathers whether no node is to have the volume now. This is asked after the PavStage was written, so that either
// the controller agent sees the PavStage, or the node sees that the volume grows.
func (t *task) observeOffline(ctx context.Context, o *observation) error {
	if t.ending || t.newCapacity > 0 || t.ofClient() || o.restaging || o.stagingIntended || o.phase == pavv1.StageStaged || o.phase == pavv1.StageUnstaging {
		return nil
	}
	provisioner, err := t.catalogue.Provisioner(ctx, t.Driver)
	if err != nil || provisioner == nil || provisioner.Spec.VolumeExpansion == nil {
		return err // Its volumes do not grow.
	}
	volume := &corev1.PersistentVolume{}
	if err := json.Unmarshal(t.stage.Spec.Volume.Raw, volume); err != nil {
		return fmt.Errorf("reading the persistent volume of PavStage %q: %w", t.stage.Name, err)
	}
	record, err := t.recordOf(ctx, volume)
	o.offline = growsOffline(record)
	return err
}

// giveWay removes the PavStage again, of which no pod has run, so that the volume can grow.
func (t *task) giveWay(ctx context.Context) error {
	volume := t.stage.Spec.VolumeName
	if err := t.unstage(ctx, t.Subject); err != nil {
		return err
	}
	return fmt.Errorf("%w: %w", ErrBusy, t.grows(volume))
}

package stage

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// withheldTo returns what is to be done with a volume while no node has it staged, so that no node may begin to stage it now;
// "" if nodes may.
func withheldTo(record *pavv1.PavVolume) string {
	if record == nil {
		return ""
	}
	if record.Spec.BucketRef != nil && record.Status.Bucket == nil {
		return "get access to its bucket"
	}
	if record.Status.Expansion != nil && record.Status.Expansion.Offline {
		return "grow"
	}
	for _, reader := range record.Status.Readers {
		switch {
		case !reader.Unstaged:
		case reader.Kind == "PavVolume":
			return "be cloned"
		default:
			return "be snapshotted"
		}
	}
	return ""
}

// errWithheld says for what a volume is withheld.
func (t *task) errWithheld(volume, to string) error {
	return fmt.Errorf("provisioner %q: volume %q is to %s while no node has it staged, and is staged after that: see kubectl pav describe pv %s", t.Driver, volume, to, volume)
}

// awaitRelease waits until a volume is not withheld any more.
func (t *task) awaitRelease(ctx context.Context, record *pavv1.PavVolume) error {
	err := await(ctx, t.client, &pavv1.PavVolumeList{}, record.Name, &pavv1.PavVolume{}, func(now *pavv1.PavVolume) bool {
		return now.UID != record.UID || withheldTo(now) == ""
	})
	if err != nil {
		return fmt.Errorf("%w: %w: %w", ErrPending, t.errWithheld(record.Name, withheldTo(record)), err)
	}
	return nil
}

// observeWithheld gathers whether no node is to have the volume now. This is asked after the PavStage was written, so that either
// the controller agent sees the PavStage, or the node sees that the volume is withheld. The definition says nothing about that: a
// snapshot or a clone that is being made may have been requested before it was changed, and the cache may be behind.
func (t *task) observeWithheld(ctx context.Context, o *observation) error {
	if t.ending || t.newCapacity > 0 || t.ofClient() || o.restaging || o.stagingIntended || o.phase == pavv1.StageStaged || o.phase == pavv1.StageUnstaging {
		return nil
	}
	volume := &corev1.PersistentVolume{}
	if err := json.Unmarshal(t.stage.Spec.Volume.Raw, volume); err != nil {
		return fmt.Errorf("reading the persistent volume of PavStage %q: %w", t.stage.Name, err)
	}
	record, err := t.recordOf(ctx, volume)
	t.withheldTo = withheldTo(record)
	o.withheld = t.withheldTo != ""
	return err
}

// giveWay removes the PavStage again, of which no pod has run, so that the controller agent finds none.
func (t *task) giveWay(ctx context.Context) error {
	volume := t.stage.Spec.VolumeName
	if err := t.unstage(ctx, t.Subject); err != nil {
		return err
	}
	return fmt.Errorf("%w: %w", ErrBusy, t.errWithheld(volume, t.withheldTo))
}

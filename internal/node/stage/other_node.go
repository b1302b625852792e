package stage

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/observability"
)

// checkOthers reports whether a volume that only one node may have is staged on another node, under the name of
// volumes that many nodes may have: the access modes of a PersistentVolume can be changed.
func (t *task) checkOthers(ctx context.Context, want *pavv1.PavStage) (free bool, err error) {
	if !want.Spec.Exclusive || t.ofClient() {
		return true, nil
	}
	stages := &pavv1.PavStageList{}
	if err := t.client.List(ctx, stages, client.MatchingLabels{pavv1.VolumeLabel: want.Labels[pavv1.VolumeLabel]}); err != nil {
		return false, fmt.Errorf("listing the PavStages of volume %q: %w", want.Spec.VolumeName, err)
	}
	for i := range stages.Items {
		other := &stages.Items[i]
		if other.Name != want.Name && other.Spec.VolumeName == want.Spec.VolumeName && other.Spec.NodeName != t.node && !holdsNothing(other) {
			return false, t.awaitNode(ctx, want, other)
		}
	}
	return true, nil
}

// awaitNode waits until another node has unstaged the volume, so that staging begins immediately after that. Only the
// first call that finds the node returns at once, so that kubelet reports it on the client pod.
func (t *task) awaitNode(ctx context.Context, want, other *pavv1.PavStage) error {
	held := fmt.Errorf("%w: volume %q of provisioner %q may be on one node at a time, and is still on node %q", ErrHeld, want.Spec.VolumeName, t.Driver, other.Spec.NodeName)
	if t.ahead {
		return held // Kubelet's call waits, and reports it.
	}
	if t.attempts.isNewHolder(want.Name, other.UID) {
		t.reportOnStage(ctx, want, corev1.EventTypeWarning, "FailedMount", observability.Clip(fmt.Sprintf(
			"volume %s may be on one node at a time, and is still on node %s (PavStage %s); waiting until that node has unstaged it; if it is lost for good, delete its Node, or taint it %s",
			want.Spec.VolumeName, other.Spec.NodeName, other.Name, corev1.TaintNodeOutOfService), observability.MaxNote))
		return held
	}
	err := await(ctx, t.client, &pavv1.PavStageList{}, other.Name, &pavv1.PavStage{}, func(now *pavv1.PavStage) bool {
		return now.UID != other.UID || holdsNothing(now)
	})
	if err != nil {
		return errors.Join(held, err)
	}
	return nil
}

// contend handles a PavStage that exists although this node has to create it: another node has the volume, or the
// record of a failed attempt of another node, which protects nothing, is in the way.
func (t *task) contend(ctx context.Context, want *pavv1.PavStage) error {
	found := &pavv1.PavStage{}
	if err := t.client.Get(ctx, client.ObjectKey{Name: want.Name}, found); err != nil {
		return fmt.Errorf("getting PavStage %q: %w", want.Name, err)
	}
	if found.Spec.NodeName == t.node {
		return nil // It was created in between: the next observation finds it.
	}
	if IsTerminating(found) {
		t.stage = found
		return t.yield(ctx)
	}
	if IsRecord(found) {
		err := t.client.Delete(ctx, found, client.Preconditions{UID: &found.UID, ResourceVersion: &found.ResourceVersion})
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting PavStage %q of a failed attempt: %w", found.Name, err)
		}
		return nil
	}
	// There was no directory of this name before this call.
	if err := t.dirs.Remove(ctx, want.Name); err != nil {
		return err
	}
	return t.awaitNode(ctx, want, found)
}

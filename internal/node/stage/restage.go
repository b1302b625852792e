package stage

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/mount"
	"github.com/albertofaria/pav/internal/observability"
)

// Restage stages a volume again while clients have a dead mount of it: one that will never answer again, and whose
// writes do not reach the storage. Restage checks that, and fences the mount (Fencer), as a second mount beside one
// that works again could corrupt the storage. It may be repeated, and continues the work of an earlier call or agent
// that was interrupted:
//
//  1. the PavStage becomes Unstaging, with restaging set: the volume stays reserved for the node;
//  2. the volume is detached and unstaged as Unstage does, except for the targets of clients;
//  3. it is staged as Stage does, by the pods of further attempts, until one succeeds;
//  4. it is mounted over the dead mount at the targets, after that is recorded;
//  5. the PavStage becomes Staged.
//
// A call of kubelet interrupts it: the error is then ErrBusy. It does nothing for a stage that is neither Staged nor
// being restaged, and creates none that is gone.
func (s *Stager) Restage(ctx context.Context, name string) error {
	record, err := s.dirs.Recorded(ctx, name)
	if err != nil || record == nil {
		return err
	}
	of := Subject{Volume: Volume{Driver: record.Driver, Handle: record.Handle}}
	if record.Client != nil {
		of.Target = record.Client.Target
	}
	return s.untilCalled(ctx, of, s.newTask(of, "").restage)
}

func (t *task) restage(ctx context.Context) error {
	o, err := t.observe(ctx)
	if err != nil {
		return t.interrupted(ctx, err)
	}
	switch {
	case !o.exists || !o.thisBoot || o.claimOnly:
		return nil
	case o.restaging:
	case o.phase != pavv1.StageStaged:
		return nil
	default:
		if err := t.beginRestaging(ctx); err != nil {
			return err
		}
	}
	return t.run(ctx, restageTable)
}

// beginRestaging marks the stage as being restaged, once it is certain that no client can write to the volume any more.
func (t *task) beginRestaging(ctx context.Context) error {
	var paths []string
	if t.attached != "" {
		paths = append(paths, t.dirs.Volume(t.attached))
	}
	for i := range t.published {
		paths = append(paths, t.published[i].Target)
	}
	for _, path := range paths {
		if err := t.mustBeDead(ctx, path); err != nil {
			return err
		}
	}
	if err := t.fenceAll(ctx, paths); err != nil {
		return err
	}
	if err := t.update(ctx, func(status *pavv1.PavStageStatus) {
		status.Phase = pavv1.StageUnstaging
		status.Restaging = true
		status.StagingFailure, status.UnstagingFailure = nil, nil
		t.handleRetry(status)
		t.setReady(t.stage, metav1.ConditionFalse, "Restaging", "the volume is being restaged")
	}); err != nil {
		return err
	}
	t.eventf(ctx, corev1.EventTypeNormal, "Restaging", "the volume is being restaged on node %s: provisioner %q", t.node, t.Driver)
	return nil
}

// mustBeDead returns errAnswers unless the mount at path is dead, or there is none.
func (t *task) mustBeDead(ctx context.Context, path string) error {
	mounted, err := t.mounts.Mounted(ctx, path)
	if err != nil || !mounted {
		return err
	}
	if t.health == nil {
		return fmt.Errorf("%w: it cannot be checked at %q", errAnswers, path)
	}
	_, err = t.health.Probe(ctx, t.stage.Name, path)
	if errors.Is(err, mount.ErrDead) {
		return nil
	}
	return errors.Join(fmt.Errorf("%w: at %q", errAnswers, path), err)
}

// Fencer makes sure that a dead mount never answers again.
type Fencer interface {
	// Fence cuts off a daemon that may still serve the file system at path. The error is mount.ErrUnsupported if this
	// node cannot do that, and mount.ErrNotMounted if nothing is mounted.
	Fence(ctx context.Context, path string) error
}

// Fence implements Fencer.
func (h Host) Fence(ctx context.Context, path string) error {
	return h.Namespace.Do(ctx, func() error { return mount.Fence(path) })
}

// fenceAll makes sure that the dead mounts never answer again, even if a daemon that has lost its servers still runs.
// If the node cannot do that, the timeout of the file system must suffice.
func (t *task) fenceAll(ctx context.Context, paths []string) error {
	fencer, is := t.mounts.(Fencer)
	if !is {
		return nil
	}
	for _, path := range paths {
		switch err := fencer.Fence(ctx, path); {
		case err == nil, errors.Is(err, mount.ErrNotMounted), errors.Is(err, mount.ErrUnsupported):
		case ctx.Err() != nil:
			return err
		default:
			return errors.Join(t.reportUnfenced(ctx, err), err)
		}
	}
	return nil
}

// reportUnfenced reports once why a volume is not restaged.
func (t *task) reportUnfenced(ctx context.Context, reason error) error {
	words := observability.Clip(fmt.Sprintf("volume %s on node %s is dead, but is not restaged, as its daemon might come back: %v; delete the pods on the node that use it",
		t.stage.Spec.VolumeName, t.node, reason), observability.MaxCondition)
	degraded := meta.FindStatusCondition(t.stage.Status.Conditions, pavv1.StageDegraded)
	if degraded != nil && degraded.Message == words {
		return nil
	}
	if err := t.update(ctx, func(*pavv1.PavStageStatus) {
		t.setCondition(t.stage, pavv1.StageDegraded, metav1.ConditionTrue, pavv1.ReasonVolumeDead, words)
	}); err != nil {
		return err
	}
	t.eventf(ctx, corev1.EventTypeWarning, pavv1.ReasonVolumeDead, "%s", words)
	return nil
}

// renew begins the next attempt to restage a volume, after everything of the last one is removed. The pods of the
// last attempt are deleted while they are recorded; after that, package collect removes their finalizers.
func (t *task) renew(ctx context.Context) error {
	if err := t.dirs.Renew(ctx, t.stage.Name); err != nil {
		return err
	}
	for _, pod := range []*corev1.Pod{t.stagingPod, t.unstagingPod} {
		if pod == nil {
			continue
		}
		if err := t.runner.Stop(ctx, pod); err != nil {
			return err
		}
	}
	return t.update(ctx, func(status *pavv1.PavStageStatus) {
		status.Phase = pavv1.StageStaging
		status.Attempt++
		status.Validated = true
		status.StagingPod = nil
		if status.UnstagingPod != nil {
			status.UnstagingPod = nil
			status.UnstagingAttempt++ // so that no two pods have one name
		}
		status.UnstagingFailure = nil
		t.setReady(t.stage, metav1.ConditionFalse, "Restaging", "the volume is about to be restaged")
	})
}

// reasonCovering is the reason of the condition Ready from just before the first running client gets the new volume.
// From then on the volume must not be unstaged, even if its staging pod fails.
const reasonCovering = "Covering"

func isCovering(status *pavv1.PavStageStatus) bool {
	ready := meta.FindStatusCondition(status.Conditions, pavv1.StageReady)
	return ready != nil && ready.Reason == reasonCovering
}

// overMount mounts the new volume over the dead mounts of running clients. Clients whose containers receive mounts
// see it at once. The device of a running container cannot be replaced.
func (t *task) overMount(ctx context.Context) error {
	if !isCovering(&t.stage.Status) {
		if attached, err := t.verify(ctx); err != nil || !attached {
			return err
		}
		if err := t.update(ctx, func(*pavv1.PavStageStatus) {
			t.setReady(t.stage, metav1.ConditionFalse, reasonCovering, "the volume was restaged, and is being mounted for the pods that use it")
		}); err != nil {
			return err
		}
	}
	if err := t.keepRecord(ctx, t.stage); err != nil { // further clients may get the volume, too
		return err
	}
	if t.stage.Spec.VolumeMode == corev1.PersistentVolumeFilesystem {
		for i := range t.published {
			if err := t.overMountTarget(ctx, &t.published[i]); err != nil {
				return err
			}
		}
	}
	return t.available(ctx)
}

func (t *task) overMountTarget(ctx context.Context, p *publication) error {
	// A target that was recorded but not mounted yet is published when kubelet calls again.
	mounted, err := t.mounts.Mounted(ctx, p.Target)
	if err != nil || !mounted {
		return err
	}
	return t.mounts.Bind(ctx, Binding{
		Source: t.dirs.Volume(t.stage.Name), Target: p.Target, Mode: t.stage.Spec.VolumeMode, Options: p.Options, Cover: true,
	})
}

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

// Restage stages a volume anew under its clients, where the present one is dead: it will never answer
// again, and nothing that is written to it reaches the storage. That is checked, and the volume is fenced
// (Fencer), for a second volume beside one that works again could corrupt the storage. It may be repeated, and goes on where an earlier call,
// or an earlier agent, was interrupted:
//
//  1. the PavStage becomes Unstaging, marked as being staged anew: the claim on the volume stays;
//  2. the volume is detached and unstaged as Unstage does, but for the targets of clients;
//  3. it is staged as Stage does, by the pods of another attempt, until that succeeds;
//  4. it is mounted over the dead one at the targets, which is on record before the first of them;
//  5. the PavStage becomes Staged.
//
// It gives way to kubelet's calls: the error is then ErrBusy. Nothing is done for a stage that is not
// Staged, nor being staged anew, and none is made where it has gone meanwhile.
func (s *Stager) Restage(ctx context.Context, name string) error {
	record, err := s.dirs.Recorded(ctx, name)
	if err != nil || record == nil {
		return err
	}
	of := Subject{Volume: Volume{Driver: record.Driver, Handle: record.Handle}}
	if record.Client != nil {
		of.Target = record.Client.Target
	}
	yielding, end := s.inflight.preemptible(ctx, of.key())
	defer end()
	release, err := s.Lock(of)
	if err != nil {
		return err
	}
	defer release()
	defer s.tell(s.namesOf(of)...)

	t := s.newTask(of, "")
	err = t.restage(yielding)
	if err != nil && yielding.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("%w: kubelet has called", ErrBusy)
	}
	return err
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
	return t.run(ctx, decideRestage)
}

// beginRestaging marks the stage, once it is certain that nobody can write to the volume any more.
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
		t.setReady(t.stage, metav1.ConditionFalse, "Restaging", "the volume is being staged anew")
	}); err != nil {
		return err
	}
	t.eventf(ctx, corev1.EventTypeNormal, "Restaging", "the volume is being staged anew on node %s: provisioner %q", t.node, t.Driver)
	return nil
}

// mustBeDead returns errAnswers unless what is mounted at path, if anything is, is dead.
func (t *task) mustBeDead(ctx context.Context, path string) error {
	mounted, err := t.mounts.Mounted(ctx, path)
	if err != nil || !mounted {
		return err
	}
	if t.health == nil {
		return fmt.Errorf("%w: nobody can look at %q", errAnswers, path)
	}
	_, err = t.health.Probe(ctx, t.stage.Name, path)
	if errors.Is(err, mount.ErrDead) {
		return nil
	}
	return errors.Join(fmt.Errorf("%w: at %q", errAnswers, path), err)
}

// Fencer makes sure that what is dead stays so.
type Fencer interface {
	// Fence ends what a daemon that may live yet could do for the file system at path. The error is
	// mount.ErrUnsupported where that cannot be done on this node, and mount.ErrNotMounted where nothing
	// is mounted.
	Fence(ctx context.Context, path string) error
}

// Fence implements Fencer.
func (h Host) Fence(ctx context.Context, path string) error {
	return h.Namespace.Do(ctx, func() error { return mount.Fence(path) })
}

// fenceAll sees to it that the dead volume never answers again, be it that its daemon, which is cut off from
// its servers, gave the kernel's answer itself. Where the node cannot do that, its timeout has to do.
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

// reportUnfenced tells once why a volume is not staged anew.
func (t *task) reportUnfenced(ctx context.Context, reason error) error {
	words := observability.Clip(fmt.Sprintf("volume %s on node %s is dead, but not staged anew, as its daemon might come back: %v; delete the pods on the node that use it",
		t.stage.Spec.VolumeName, t.node, reason), observability.MaxCondition)
	told := meta.FindStatusCondition(t.stage.Status.Conditions, pavv1.StageDegraded)
	if told != nil && told.Message == words {
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

// renew begins the next attempt to stage a volume anew, with nothing left of the last one. The pods of that are deleted
// while the record names them; once it does not, outcomes removes their finalizers.
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
		t.setReady(t.stage, metav1.ConditionFalse, "Restaging", "the volume is about to be staged anew")
	})
}

// reasonCovering is the condition Ready's reason from before the first running client gets the new volume:
// from then on it is not to be unstaged under them, whatever becomes of its staging pod.
const reasonCovering = "Covering"

func isCovering(status *pavv1.PavStageStatus) bool {
	ready := meta.FindStatusCondition(status.Conditions, pavv1.StageReady)
	return ready != nil && ready.Reason == reasonCovering
}

// overMount mounts the new volume over what running clients have. Those whose containers receive mounts see
// it at once. A device cannot be exchanged under a container.
func (t *task) overMount(ctx context.Context) error {
	if !isCovering(&t.stage.Status) {
		if attached, err := t.verify(ctx); err != nil || !attached {
			return err
		}
		if err := t.update(ctx, func(*pavv1.PavStageStatus) {
			t.setReady(t.stage, metav1.ConditionFalse, reasonCovering, "the volume was staged anew, and is being given to the pods that use it")
		}); err != nil {
			return err
		}
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
	// One that was on record but not mounted yet is kubelet's to ask for again.
	mounted, err := t.mounts.Mounted(ctx, p.Target)
	if err != nil || !mounted {
		return err
	}
	return t.mounts.Bind(ctx, Binding{
		Source: t.dirs.Volume(t.stage.Name), Target: p.Target, Mode: t.stage.Spec.VolumeMode, Options: p.Options, Cover: true,
	})
}

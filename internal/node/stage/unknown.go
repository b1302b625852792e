package stage

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// RemoveUnknown removes the directory of a stage that has neither a record nor a PavStage. That is checked again
// while calls that could create them are locked out. The error is ErrBusy if a pod still has a mount of it.
func (s *Stager) RemoveUnknown(ctx context.Context, name string) error {
	release, err := s.inflight.lockStages(name)
	if err != nil {
		return err
	}
	defer release()
	if known, err := s.isKnown(ctx, name); err != nil || known {
		return err
	}
	inUse, err := s.dirs.InUse(ctx, name)
	if err != nil {
		return err
	}
	published, err := s.IsPublished(ctx, name)
	if err != nil {
		return err
	}
	if inUse || published {
		return fmt.Errorf("%w: a pod still has a mount of PavStage %q, which does not exist", ErrBusy, name)
	}
	return s.dirs.Remove(ctx, name)
}

// isKnown reports whether a stage has a record on the node, or a PavStage.
func (s *Stager) isKnown(ctx context.Context, name string) (bool, error) {
	if has, err := s.hasRecord(ctx, name); err != nil || has {
		return has, err
	}
	stage := &pavv1.PavStage{}
	if err := s.client.Get(ctx, client.ObjectKey{Name: name}, stage); err != nil {
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return false, fmt.Errorf("getting PavStage %q: %w", name, err)
	}
	return stage.Spec.NodeName == s.node && !IsTerminating(stage), nil
}

// IsPublished reports whether the stage's volume is mounted for a client. The record alone is not enough: the agent
// may have been killed between the record and the mount.
func (s *Stager) IsPublished(ctx context.Context, name string) (bool, error) {
	publications, err := s.Publications(ctx, name)
	if err != nil {
		return false, err
	}
	return s.anyMounted(ctx, publications)
}

// anyMounted reports whether something is mounted at one of the targets.
func (s *Stager) anyMounted(ctx context.Context, publications []publication) (bool, error) {
	for i := range publications {
		mounted, err := s.mounts.Mounted(ctx, publications[i].Target)
		if err != nil || mounted {
			return mounted, err
		}
	}
	return false, nil
}

// UnstageIdle unstages as Unstage does, but a call of kubelet interrupts it, as a pod may need the volume again.
// Whether the volume is idle is checked again while other calls are locked out: kubelet's call for a pod that is
// bound to the node later arrives later, and interrupts this.
func (s *Stager) UnstageIdle(ctx context.Context, of Subject, idle func(context.Context) (bool, error)) error {
	return s.untilCalled(ctx, of, func(ctx context.Context) error {
		if is, err := idle(ctx); err != nil || !is {
			return err
		}
		return s.unstage(ctx, of)
	})
}

package stage

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// RemoveUnknown removes the directory of a stage that nobody knows. Whether that is so is asked once more while no
// call that could make it one of a stage can come in between, and nobody may have anything of it.
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
		return fmt.Errorf("%w: a pod still has something of PavStage %q, which nobody knows", ErrBusy, name)
	}
	return s.dirs.Remove(ctx, name)
}

// isKnown reports whether a stage is on the node's record or in the ledger.
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

// IsPublished reports whether the stage's volume is mounted for a client. A record alone says little:
// the agent may have ended between it and the mount.
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

// UnstageIdle unstages as Unstage does, but gives way to kubelet's calls: somebody may want the volume
// again. Whether it is idle is asked once more while no call can come in between: whoever is scheduled to
// the node later calls later, and ends this.
func (s *Stager) UnstageIdle(ctx context.Context, of Subject, idle func(context.Context) (bool, error)) error {
	yielding, end := s.inflight.preemptible(ctx, of.key())
	defer end()
	release, err := s.Lock(of)
	if err != nil {
		return err
	}
	defer release()
	if is, err := idle(yielding); err != nil || !is {
		return err
	}
	defer s.tell(s.namesOf(of)...)
	return s.unstage(yielding, of)
}

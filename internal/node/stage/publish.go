package stage

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/mount"
	"github.com/albertofaria/pav/internal/node/pavdir"
	"github.com/albertofaria/pav/internal/observability"
)

// Publication is what a client pod is to see of a staged volume.
type Publication struct {
	// Target is the path in the client pod's directory.
	Target string

	// Options are what the pod's view is restricted to; the kernel enforces them.
	Options mount.BindOptions

	// Mode is the volume's mode.
	Mode corev1.PersistentVolumeMode

	// Single says that the volume may have this one target only.
	Single bool

	// Client is the pod, as far as the caller tells.
	Client pavdir.Client
}

// publication is what the node has on record of a target.
type publication = pavdir.Publication

// Publish makes a staged volume available to a client pod. It may be repeated. It needs no API server,
// unless the scope is Pod: then the volume is staged for the pod first, as Stage says.
func (s *Stager) Publish(ctx context.Context, v Volume, p Publication) (err error) {
	began := s.now()
	defer func() { s.calls.Published(v.Driver, s.now().Sub(began), err) }()
	err = s.publish(ctx, v, p)
	if !errors.Is(err, errOutlived) {
		if detached, failure := s.isDetached(ctx, v, err); failure != nil || !detached {
			return errors.Join(err, failure)
		}
	}
	// To kubelet, the volume is staged: both persistent volumes are one volume to it, and it does not see that one is
	// not mounted for pods any more. It does not ask for that.
	if err := s.Stage(ctx, v, Staging{Mode: p.Mode}); err != nil {
		return err
	}
	return s.publish(ctx, v, p)
}

func (s *Stager) publish(ctx context.Context, v Volume, p Publication) error {
	of := Subject{Volume: v, Target: p.Target}
	release, err := s.Lock(of)
	if err != nil {
		return err
	}
	defer release()

	name, record, err := s.mustBeRecorded(ctx, v)
	if err != nil {
		return err
	}
	defer s.tell(name)
	observability.Note(ctx, observability.Volume, record.VolumeName)
	observability.Note(ctx, observability.Claim, observability.Name(record.ClaimNamespace, record.ClaimName))
	observability.Note(ctx, observability.Pod, observability.Name(p.Client.Namespace, p.Client.Name))
	if record.Mode != p.Mode {
		return fmt.Errorf("%w: volume %q is staged with the mode %s", ErrMismatch, record.VolumeName, record.Mode)
	}
	if asked := volumeNameIn(p.Target); asked != "" && asked != record.VolumeName {
		return s.rejectDuplicatePV(ctx, v, record.VolumeName, asked)
	}
	p.Options.ReadOnly = p.Options.ReadOnly || record.ReadOnly
	if p.Single {
		if err := s.checkSingle(ctx, v, name, p.Target); err != nil {
			return err
		}
	}
	if pavv1.StagingScope(record.Scope) == pavv1.StagingScopePod {
		return s.publishStaged(ctx, of, p)
	}
	return s.bind(ctx, name, p)
}

// recorded returns the name of the volume's stage and what the node has on record of it, or nil.
func (s *Stager) recorded(ctx context.Context, v Volume) (string, *pavdir.Stage, error) {
	shared, exclusive := s.names(v)
	for _, name := range []string{exclusive, shared} {
		record, err := s.dirs.Recorded(ctx, name)
		if err != nil || record != nil {
			return name, record, err
		}
	}
	return "", nil, nil
}

// mustBeRecorded returns the name of the volume's stage and what the node has on record of it. Where that has
// been lost, the error is ErrBusy, and the monitor restores it: kubelet, which believes that
// the volume is staged, would not ask for that again.
func (s *Stager) mustBeRecorded(ctx context.Context, v Volume) (string, *pavdir.Stage, error) {
	name, record, err := s.recorded(ctx, v)
	switch {
	case errors.Is(err, pavdir.ErrTorn):
	case err != nil || record != nil:
		return name, record, err
	default:
		if name, err = s.stageDirectoryOf(ctx, v); err != nil {
			return "", nil, err
		}
		if name == "" {
			return "", nil, fmt.Errorf("%w: provisioner %q, handle %q", ErrNotStaged, v.Driver, v.Handle)
		}
		err = errNoRecord
	}
	s.tell(name)
	return "", nil, fmt.Errorf("%w: PavStage %q: %w", ErrBusy, name, err)
}

// errNoRecord means that a stage's directory has no record of it.
var errNoRecord = errors.New("the node has no record of it")

// stageDirectoryOf returns the name under which the node has a directory of the volume's stage, or nothing.
func (s *Stager) stageDirectoryOf(ctx context.Context, v Volume) (string, error) {
	shared, exclusive := s.names(v)
	for _, name := range []string{exclusive, shared} {
		exists, err := s.dirs.Exists(ctx, name)
		if err != nil || exists {
			return name, err
		}
	}
	return "", nil
}

// publishStaged stages the volume for one client pod, and makes it available to that.
func (s *Stager) publishStaged(ctx context.Context, of Subject, p Publication) error {
	name := s.clientName(of.Volume, of.Target)
	defer s.tell(name)
	t := s.newTask(of, p.Mode)
	t.user, t.readOnly = p.Client, p.Options.ReadOnly
	if err := t.run(ctx, decideStage); err != nil {
		return err
	}
	if err := s.repairRecord(ctx, t.stage); err != nil {
		return err
	}
	return s.bind(ctx, name, p)
}

// errDetached means that a stage has no volume at present.
var errDetached = errors.New("it has no volume at present")

// isDetached reports whether a target could not be published because the volume, which was staged, is not mounted
// for pods any more. One that is on its way is for kubelet to ask for again.
func (s *Stager) isDetached(ctx context.Context, v Volume, err error) (bool, error) {
	if !errors.Is(err, errDetached) {
		return false, nil
	}
	stage, err := s.stageOf(ctx, Subject{Volume: v})
	return stage != nil && stage.Status.Phase == pavv1.StageStaged && !stage.Status.Restaging, err
}

// bind puts the target on record, and mounts the stage's volume there.
func (s *Stager) bind(ctx context.Context, stage string, p Publication) error {
	attached, err := s.dirs.Attached(ctx, stage)
	if err != nil {
		return err
	}
	if !attached {
		return fmt.Errorf("%w: PavStage %q: %w", ErrBusy, stage, errDetached)
	}
	done, err := s.isPublished(ctx, stage, p)
	if err != nil || done {
		return err
	}
	if err := s.dirs.RecordPublication(ctx, stage, publication{
		Target: p.Target, Options: p.Options, Single: p.Single, Client: p.Client, Boot: s.boot,
	}); err != nil {
		return err
	}
	return s.mounts.Bind(ctx, Binding{Source: s.dirs.Volume(stage), Target: p.Target, Mode: p.Mode, Options: p.Options})
}

// isPublished reports whether a target is published already as is asked for. The error is ErrMismatch where it
// is in another way: a view that can be written to must not stand in for a read-only one.
func (s *Stager) isPublished(ctx context.Context, stage string, p Publication) (bool, error) {
	all, err := s.Publications(ctx, stage)
	if err != nil {
		return false, err
	}
	for i := range all {
		if all[i].Target != p.Target {
			continue
		}
		mounted, err := s.mounts.Mounted(ctx, p.Target)
		if err != nil || !mounted {
			return false, err
		}
		// Of the other options a change reaches clients that come later: a volume's mount options may be edited
		// while pods have it, and a final error would keep their containers from being restarted.
		if all[i].Options.ReadOnly != p.Options.ReadOnly {
			return false, fmt.Errorf("%w: target %q is published with read-only %t", ErrMismatch, p.Target, all[i].Options.ReadOnly)
		}
		return true, nil
	}
	return false, nil
}

// checkSingle reports whether a volume that may have one target only has another one.
func (s *Stager) checkSingle(ctx context.Context, v Volume, stage, target string) error {
	if !s.inflight.first(v.key(), target) {
		return fmt.Errorf("%w: it is being published to another pod, or taken from it", ErrBusy)
	}
	all, err := s.Publications(ctx, stage)
	if err != nil {
		return err
	}
	for i := range all {
		other := all[i].Target
		if other == target {
			continue
		}
		// One that was on record but never mounted is no user.
		mounted, err := s.mounts.Mounted(ctx, other)
		if err != nil {
			return err
		}
		if mounted {
			return fmt.Errorf("%w: at %q", ErrInUse, other)
		}
	}
	// With scope Pod, each target is on record with a stage of its own.
	clients, torn, err := s.clientRecords(ctx, v)
	if torn && err == nil {
		clients, err = s.clientTargets(ctx, v)
	}
	if err != nil {
		return err
	}
	for _, other := range clients {
		if other != target {
			return fmt.Errorf("%w: at %q", ErrInUse, other)
		}
	}
	return nil
}

// Unpublish takes a volume away from a client pod, and removes the target. It may be repeated. With scope
// Pod, the volume is unstaged for the pod as Unstage says; otherwise no API server is needed.
func (s *Stager) Unpublish(ctx context.Context, v Volume, target string) error {
	of := Subject{Volume: v, Target: target}
	s.inflight.interrupt(ctx, v.key())
	release, err := s.Lock(of)
	if err != nil {
		return err
	}
	defer release()
	if err := s.unpublish(ctx, v, target); err != nil {
		return err
	}
	staged, err := s.mayBeStagedFor(ctx, v, target)
	if err != nil {
		return err
	}
	if staged {
		defer s.tell(s.clientName(v, target))
		if err := s.unstage(ctx, of); err != nil {
			return err
		}
	}
	return s.mounts.Remove(ctx, target)
}

// mayBeStagedFor reports whether the volume may have a stage of its own for a client pod. The client's directory
// tells, or, where that may be lost, the API server has to be asked: the scope on record says so, as does a
// record that is lost itself.
func (s *Stager) mayBeStagedFor(ctx context.Context, v Volume, target string) (bool, error) {
	staged, err := s.dirs.Exists(ctx, s.clientName(v, target))
	if err != nil {
		return false, err
	}
	name, record, err := s.recorded(ctx, v)
	switch {
	case errors.Is(err, pavdir.ErrTorn):
		s.tell(name)
		return true, nil
	case err != nil:
		return false, err
	case record != nil:
		s.tell(name)
		return staged || pavv1.StagingScope(record.Scope) == pavv1.StagingScopePod, nil
	}
	name, err = s.stageDirectoryOf(ctx, v)
	if name != "" {
		s.tell(name)
	}
	return staged || name != "", err
}

// unpublish unmounts a target, and takes it off the record.
func (s *Stager) unpublish(ctx context.Context, v Volume, target string) error {
	if err := s.mounts.Unmount(ctx, target); err != nil {
		return err
	}
	shared, exclusive := s.names(v)
	for _, stage := range []string{shared, exclusive, s.clientName(v, target)} {
		if err := s.dirs.ForgetPublication(ctx, stage, target); err != nil {
			return err
		}
	}
	return nil
}

// unpublishAll takes the volume from clients that still have it, though kubelet says that none has.
func (t *task) unpublishAll(ctx context.Context) error {
	for i := range t.published {
		target := t.published[i].Target
		if err := t.unpublish(ctx, t.Volume, target); err != nil {
			return err
		}
		if err := t.mounts.Remove(ctx, target); err != nil {
			return err
		}
	}
	return nil
}

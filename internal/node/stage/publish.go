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

// Publication describes how a client pod gets a staged volume.
type Publication struct {
	// Target is the path in the client pod's directory.
	Target string

	// Options are restrictions that the kernel enforces.
	Options mount.BindOptions

	// Mode is the volume's mode.
	Mode corev1.PersistentVolumeMode

	// Single says that the volume may have only this target.
	Single bool

	// Client is the pod, as far as the caller knows it.
	Client pavdir.Client
}

// publication is the record of a target on the node.
type publication = pavdir.Publication

// Publish makes a staged volume available to a client pod. It may be repeated. It needs no API server, except with
// scope Pod: then the volume is first staged for the pod, as Stage describes.
func (s *Stager) Publish(ctx context.Context, v Volume, p Publication) (err error) {
	began := s.now()
	defer func() { s.calls.Published(v.Driver, s.now().Sub(began), err) }()
	err = s.publish(ctx, v, p)
	if !errors.Is(err, errOutlived) {
		if detached, failure := s.isDetached(ctx, v, err); failure != nil || !detached {
			return errors.Join(err, failure)
		}
	}
	// For kubelet the volume is staged: it takes both PersistentVolumes for one volume, and does not see that it is
	// not mounted for pods any more. So it does not call NodeStageVolume again.
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
	if record.Restaging {
		return fmt.Errorf("%w: PavStage %q: the volume is being restaged", ErrBusy, name)
	}
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

// recorded returns the name of the volume's stage and its record on the node, or nil.
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

// mustBeRecorded returns the name of the volume's stage and its record on the node. If the record is lost, the error
// is ErrBusy, and the monitor restores it: for kubelet the volume is staged, so it would not call NodeStageVolume
// again.
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

// stageDirectoryOf returns the name of the directory of the volume's stage on the node, or "".
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

// publishStaged stages the volume for one client pod, then publishes it.
func (s *Stager) publishStaged(ctx context.Context, of Subject, p Publication) error {
	name := s.clientName(of.Volume, of.Target)
	defer s.tell(name)
	t := s.newTask(of, p.Mode)
	t.user, t.readOnly = p.Client, p.Options.ReadOnly
	if err := t.run(ctx, stageTable); err != nil {
		return err
	}
	if err := s.repairRecord(ctx, t.stage); err != nil {
		return err
	}
	return s.bind(ctx, name, p)
}

// errDetached means that the volume of a stage is not mounted for pods.
var errDetached = errors.New("its volume is not mounted")

// isDetached reports whether a target could not be published because the volume, which was staged, is not mounted for
// pods any more. If the volume is only being staged, kubelet calls again.
func (s *Stager) isDetached(ctx context.Context, v Volume, err error) (bool, error) {
	if !errors.Is(err, errDetached) {
		return false, nil
	}
	stage, err := s.stageOf(ctx, Subject{Volume: v})
	return stage != nil && stage.Status.Phase == pavv1.StageStaged && !stage.Status.Restaging, err
}

// bind records the target, and mounts the stage's volume there.
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

// isPublished reports whether a target is already published with these parameters. The error is ErrMismatch if it has
// other ones: a writable mount must not be used for a read-only request.
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
		// Changes of the other options reach only later clients: mount options may be edited while pods have the
		// volume, and a final error would prevent their containers from being restarted.
		if all[i].Options.ReadOnly != p.Options.ReadOnly {
			return false, fmt.Errorf("%w: target %q is published with read-only %t", ErrMismatch, p.Target, all[i].Options.ReadOnly)
		}
		return true, nil
	}
	return false, nil
}

// checkSingle reports whether a volume that may have only one target has another one.
func (s *Stager) checkSingle(ctx context.Context, v Volume, stage, target string) error {
	if !s.inflight.first(v.key(), target) {
		return fmt.Errorf("%w: it is being published to another pod, or unpublished from it", ErrBusy)
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
		// A target that was recorded but never mounted does not count.
		mounted, err := s.mounts.Mounted(ctx, other)
		if err != nil {
			return err
		}
		if mounted {
			return fmt.Errorf("%w: at %q", ErrInUse, other)
		}
	}
	// With scope Pod, each target has the record of a stage of its own.
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

// Unpublish unmounts a volume from a client pod, and removes the target. It may be repeated. With scope Pod, the
// volume is unstaged for the pod, as Unstage describes; otherwise no API server is needed.
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
// shows it. If that may be lost, the API server must be asked: the recorded scope is Pod, or the record itself is
// lost.
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

// unpublish unmounts a target, and removes its record.
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

// unpublishAll unmounts the volume from targets that still have it, although kubelet has none of them any more.
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

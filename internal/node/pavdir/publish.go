package pavdir

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/albertofaria/pav/internal/mount"
)

// Publish mounts the stage's directory at target, a path in a workflow pod's directory, so that mounts below one of
// them appear below the other. It may be repeated.
func (d *Directories) Publish(ctx context.Context, stage, target string) error {
	return d.host.Do(ctx, func() error { return d.publish(ctx, d.ofStage(stage), target, true) })
}

// Given reports whether the stage's directory was mounted for a pod since it was last reset, renewed or removed.
func (d *Directories) Given(ctx context.Context, stage string) (bool, error) {
	return mount.In(ctx, d.host, func() (bool, error) { return exists(filepath.Join(d.stagePath(stage), givenName)) })
}

// Unpublish unmounts a stage's directory from target, and returns the name of the stage, or "" if it is not known any
// more. Mounts of the pod below /pav stay in the stage's directory.
func (d *Directories) Unpublish(ctx context.Context, target string) (stage string, err error) {
	return mount.In(ctx, d.host, func() (string, error) {
		of, err := d.unpublish(ctx, target)
		if err != nil || filepath.Dir(of.path) != d.stages() {
			return "", err
		}
		return filepath.Base(of.path), nil
	})
}

// Users returns the mount points at which pods, even those that the API server does not have any more, still have the
// stage's directory, sorted.
func (d *Directories) Users(ctx context.Context, stage string) ([]string, error) {
	return mount.In(ctx, d.host, func() ([]string, error) { return d.usersOf(d.ofStage(stage)) })
}

// InUse reports whether a pod, even one that the API server does not have any more, still has the stage's directory.
func (d *Directories) InUse(ctx context.Context, stage string) (bool, error) {
	return mount.In(ctx, d.host, func() (bool, error) { return d.inUse(d.ofStage(stage)) })
}

// publish mounts a directory at target. If markGiven is true, it marks the directory as Given before it mounts it.
func (d *Directories) publish(ctx context.Context, of directory, target string, markGiven bool) error {
	mounted, err := mount.IsMountPoint(target)
	if err != nil || mounted {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	// After a reboot, kubelet restarts a pod whose directory is not mounted any more.
	if err := d.create(of); err != nil {
		return err
	}
	if err := d.alone(of); err != nil {
		return err
	}
	if err := mount.CreateDir(filepath.Dir(target), filepath.Base(target), 0o750); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if markGiven {
		if err := os.WriteFile(filepath.Join(of.path, givenName), nil, 0o600); err != nil {
			return fmt.Errorf("marking the directory of a stage as given: %w", err)
		}
	}
	return mount.BindShared(of.pav(), target)
}

// ErrHidden is wrapped if a directory cannot be mounted for a second pod: where kubelet's directory is bound on itself,
// each mount below it has a copy that is hidden, and that of one pod could not be unmounted while another has the
// directory. Kubelet tries again.
var ErrHidden = errors.New("another pod still has /pav, and kubelet's directory is bound on itself")

// alone reports whether a directory may be mounted for a further pod.
func (d *Directories) alone(of directory) error {
	users, err := d.usersAt(of)
	if err != nil {
		return err
	}
	for _, copies := range users {
		points := map[string]bool{}
		for _, c := range copies {
			if points[c.Point] {
				return fmt.Errorf("%w: waiting until it is unmounted from %q", ErrHidden, c.Point)
			}
			points[c.Point] = true
		}
	}
	return nil
}

// unpublish unmounts a directory from target, and returns the directory, if it is known.
func (d *Directories) unpublish(ctx context.Context, target string) (directory, error) {
	mounted, err := mount.IsMountPoint(target)
	if err != nil {
		return directory{}, err
	}
	var of directory
	if mounted {
		if of, err = d.separate(ctx, target); err != nil {
			return directory{}, err
		}
	}
	if err := mount.Unmount(ctx, target); err != nil {
		return directory{}, err
	}
	return of, mount.RemoveDir(target)
}

// separate returns the directory that target is a copy of, if any, and makes sure that unmounting the target does not
// affect it.
func (d *Directories) separate(ctx context.Context, target string) (directory, error) {
	table, err := mount.ReadTable()
	if err != nil {
		return directory{}, err
	}
	of, source, err := d.sourceOf(table, target)
	if err == nil && source.joined {
		err = d.part(ctx, table, of, source.Mount, target)
	}
	return of, err
}

// part makes sure that unmounting the target, with the mounts below it, unmounts nothing from the source. If no other
// pod has the source, the source leaves the peer group, so that copies of the target in other mount namespaces are
// unmounted with it. Otherwise the target leaves the group, so that the other pod keeps its mount; that is the last
// step, and so the target is a peer until all is done.
func (d *Directories) part(ctx context.Context, table mount.Table, of directory, source mount.Mount, target string) error {
	users, err := d.users(table, func(m mount.Mount) bool { return peers(m, source) || sameContent(m, source) })
	if err != nil {
		return err
	}
	joined := 0
	for _, copies := range users {
		if slices.ContainsFunc(copies, func(m mount.Mount) bool { return peers(m, source) }) {
			joined++
		}
	}
	if joined > 1 {
		if err := unmountCopies(ctx, table, users, target, func(mount.Mount) bool { return true }); err != nil {
			return err
		}
		return mount.Isolate(target)
	}
	// An agent that was killed has begun with the copies while another pod had the source.
	if err := unmountCopies(ctx, table, users, target, func(m mount.Mount) bool { return !peers(m, source) }); err != nil {
		return err
	}
	err = mount.Separate(of.pav())
	if errors.Is(err, mount.ErrStacked) {
		return nil // The pod mounted something over /pav itself, which is unmounted with it.
	}
	return err
}

// unmountCopies unmounts the copies of a target at the same place, as mounts below them would prevent them from being
// unmounted with it.
func unmountCopies(ctx context.Context, table mount.Table, users map[mount.Place][]mount.Mount, target string, which func(mount.Mount) bool) error {
	here, err := table.At(target)
	if err != nil || len(here) == 0 {
		return err
	}
	isHere := func(m mount.Mount) bool {
		return slices.ContainsFunc(here, func(h mount.Mount) bool { return h.ID == m.ID })
	}
	for _, copies := range users {
		if !slices.ContainsFunc(copies, isHere) {
			continue
		}
		for _, c := range copies {
			if isHere(c) || c.Point == here[0].Point || !which(c) {
				continue
			}
			if err := mount.Isolate(c.Point); err != nil {
				return err
			}
			if err := mount.Unmount(ctx, c.Point); err != nil {
				return err
			}
		}
	}
	return nil
}

// origin is the mount of a directory that a target is a copy of.
type origin struct {
	mount.Mount

	// joined says that mounts below one of them appear below the other. They are parted before the target is
	// unmounted, which an agent that was killed in between did not do.
	joined bool
}

// sourceOf returns the directory and the mount that target is a copy of, if any.
func (d *Directories) sourceOf(table mount.Table, target string) (directory, origin, error) {
	targets, err := table.At(target)
	if err != nil || len(targets) == 0 {
		return directory{}, origin{}, err
	}
	sources, err := table.Below(d.root())
	if err != nil {
		return directory{}, origin{}, err
	}
	for _, source := range sources {
		joined := slices.ContainsFunc(targets, func(t mount.Mount) bool { return peers(t, source) })
		if !joined && !sameContent(targets[0], source) {
			continue
		}
		// The mount table has paths without symbolic links, so paths are compared by their mounts.
		stage := filepath.Dir(source.Point)
		of := directory{path: filepath.Join(d.root(), filepath.Base(filepath.Dir(stage)), filepath.Base(stage))}
		own, err := table.At(of.pav())
		if err != nil {
			return directory{}, origin{}, err
		}
		if slices.ContainsFunc(own, func(o mount.Mount) bool { return o.ID == source.ID }) {
			return of, origin{source, joined}, nil
		}
	}
	return directory{}, origin{}, nil
}

// peers reports whether mounts below one of two mounts appear below the other.
func peers(a, b mount.Mount) bool { return a.PeerGroup != 0 && a.PeerGroup == b.PeerGroup }

// sameContent reports whether two mounts are of the same directory of a file system.
func sameContent(a, b mount.Mount) bool {
	return a.Major == b.Major && a.Minor == b.Minor && a.Root == b.Root
}

// users returns, for each place outside PaV's directory that has a mount for which is is true, the mounts there. There
// are several if a parent directory is mounted several times, as kubelet's directory may be.
func (d *Directories) users(table mount.Table, is func(mount.Mount) bool) (map[mount.Place][]mount.Mount, error) {
	ours, err := table.Below(d.root())
	if err != nil {
		return nil, err
	}
	places := table.Places()
	own := map[mount.Place]bool{}
	for _, m := range ours {
		own[places[m.ID]] = true
	}
	users := map[mount.Place][]mount.Mount{}
	for _, m := range table {
		if place := places[m.ID]; is(m) && !own[place] {
			users[place] = append(users[place], m)
		}
	}
	return users, nil
}

// usersOf returns the paths at which pods have a directory, sorted. A target that was parted from the directory, and not
// unmounted, is among them: what the pod mounted is still mounted there.
func (d *Directories) usersOf(of directory) ([]string, error) {
	users, err := d.usersAt(of)
	if err != nil {
		return nil, err
	}
	var points []string
	for _, copies := range users {
		for _, c := range copies {
			points = append(points, c.Point)
		}
	}
	slices.Sort(points)
	return slices.Compact(points), nil
}

// usersAt is users of a directory, whichever way their mounts are related to it.
func (d *Directories) usersAt(of directory) (map[mount.Place][]mount.Mount, error) {
	mounted, err := mount.IsMountPoint(of.pav())
	if err != nil || !mounted {
		return nil, err
	}
	table, err := mount.ReadTable()
	if err != nil {
		return nil, err
	}
	sources, err := table.At(of.pav())
	if err != nil || len(sources) == 0 {
		return nil, err
	}
	return d.users(table, func(m mount.Mount) bool {
		return sameContent(m, sources[0]) ||
			slices.ContainsFunc(sources, func(source mount.Mount) bool { return peers(m, source) })
	})
}

func (d *Directories) inUse(of directory) (bool, error) {
	users, err := d.usersAt(of)
	return len(users) > 0, err
}

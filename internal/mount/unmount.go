package mount

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// unmountPatience is how long one way of unmounting may take. Writing back a
	// healthy file system's data happens after it has left the mount table and
	// does not count.
	unmountPatience = 10 * time.Second
	// unmountRounds bounds the race with someone who mounts all the time.
	unmountRounds = 64
)

// Unmount unmounts everything at and below path, however stacked, and returns
// nil only once the mount table shows none of it; also if there was nothing.
// Whatever is in the peer groups of these mounts' parents loses its copies too,
// so Separate from them what must survive.
//
// Mounts are unmounted one by one, those that lie on others first. What is busy,
// or does not answer within ten seconds, is detached: it leaves the mount table
// at once, and is gone when its last user is. If that fails too, the error is
// ErrStillMounted; if ctx ends first, it is that of ctx. MNT_FORCE is never used:
// it cuts off the file system as a whole, and so every other bind of it.
//
// Unmount works on threads of its own, in the namespace of the caller's, and
// leaves one behind in a system call that does not return.
func Unmount(ctx context.Context, path string) error {
	return unmountWithin(ctx, path, unmountPatience)
}

func unmountWithin(ctx context.Context, path string, timeout time.Duration) error {
	namespace, err := Open(ownNamespace)
	if err != nil {
		return fmt.Errorf("unmounting %q: %w", path, procError(err))
	}
	defer release(namespace.file)
	var failures []error
	for _, way := range []func(context.Context, string) error{unmountOneByOne, detach} {
		err := namespace.within(ctx, timeout, func(ctx context.Context) error { return way(ctx, path) })
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("unmounting %q: %w", path, err)
		}
		failures = append(failures, err)
	}
	return fmt.Errorf("unmounting %q: %w: %w", path, ErrStillMounted, errors.Join(failures...))
}

// within is Do with a time limit. The context that f gets ends with the call, so
// that an f which was given up does no more when it wakes: by then there may be
// new mounts, which are not its business.
func (n *Namespace) within(ctx context.Context, limit time.Duration, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return n.Do(ctx, func() error { return f(ctx) })
}

// unmountOneByOne never reaches through a mount: each goes after all that were
// mounted on it.
func unmountOneByOne(ctx context.Context, path string) error {
	return unmountAll(ctx, path, 0, unmountOrder)
}

// detach takes whole trees away, for it may be impossible to look into them.
func detach(ctx context.Context, path string) error {
	return unmountAll(ctx, path, unix.MNT_DETACH, treeTops)
}

// unmountAll repeats until the mount table shows nothing at or below path, or a
// round makes no progress.
func unmountAll(ctx context.Context, path string, flags int, order func([]Mount) []Mount) error {
	at, err := locate(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer at.close()
	var failures []error
	progress := true
	for range unmountRounds {
		mounts, err := mountsBelow(at.point)
		if err != nil {
			return err
		}
		if len(mounts) == 0 {
			return nil
		}
		if !progress {
			return errors.Join(failures...)
		}
		failures, progress = nil, false
		for _, mount := range order(mounts) {
			if err := at.unmount(ctx, mount.Point, flags); err != nil {
				failures = append(failures, err)
			} else {
				progress = true
			}
		}
	}
	return errors.Join(append(failures, errors.New("mounts keep appearing"))...)
}

// unmount unmounts the uppermost mount at a point at or below the location. The
// directories between are under the control of pods, so the one that holds the
// mount point is opened without following links, and named by its descriptor.
func (l *location) unmount(ctx context.Context, point string, flags int) error {
	relative, err := filepath.Rel(filepath.Dir(l.point), point)
	if err != nil {
		return fmt.Errorf("unmounting %q: %w", point, err)
	}
	holder := l.parent
	dir, base := filepath.Split(relative)
	if dir != "" {
		holder, err = openBeneath(l.parent, filepath.Clean(dir), unix.O_PATH|unix.O_DIRECTORY, noLinks)
		if err != nil {
			return err
		}
		defer release(holder)
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("unmounting %q: %w", point, err)
	}
	if err := unix.Unmount(procPath(holder)+"/"+base, flags|unix.UMOUNT_NOFOLLOW); err != nil {
		return fmt.Errorf("unmounting %q: %w", point, err)
	}
	Traced("umount2")
	return nil
}

// forest arranges mounts by the mount that each lies on.
type forest struct {
	roots    []Mount
	children map[int][]Mount
}

// newForest sorts siblings so that one which hides another comes first: it was
// mounted on a directory above, and so has the shorter path.
func newForest(mounts []Mount) forest {
	known := make(map[int]bool, len(mounts))
	for _, mount := range mounts {
		known[mount.ID] = true
	}
	f := forest{children: make(map[int][]Mount)}
	ordered := slices.Clone(mounts)
	slices.SortStableFunc(ordered, func(a, b Mount) int {
		return cmp.Compare(len(a.Point), len(b.Point))
	})
	for _, mount := range ordered {
		if known[mount.Parent] && mount.Parent != mount.ID {
			f.children[mount.Parent] = append(f.children[mount.Parent], mount)
		} else {
			f.roots = append(f.roots, mount)
		}
	}
	return f
}

// unmountOrder puts every mount after those that lie on it or hide it.
func unmountOrder(mounts []Mount) []Mount {
	f := newForest(mounts)
	order := make([]Mount, 0, len(mounts))
	var visit func([]Mount)
	visit = func(siblings []Mount) {
		for _, mount := range siblings {
			visit(f.children[mount.ID])
			order = append(order, mount)
		}
	}
	visit(f.roots)
	return order
}

// treeTops picks the mounts that carry all others, and those stacked on them.
func treeTops(mounts []Mount) []Mount {
	var tops []Mount
	for _, root := range newForest(mounts).roots {
		if slices.ContainsFunc(tops, func(top Mount) bool {
			return root.Point == top.Point || strings.HasPrefix(root.Point, top.Point+"/")
		}) {
			continue
		}
		for _, mount := range mounts {
			if mount.Point == root.Point {
				tops = append(tops, mount)
			}
		}
	}
	return tops
}

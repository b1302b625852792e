package mount

import (
	"errors"
	"io/fs"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// Known remembers the mounts that were seen at paths, so that At need not read the mount table as long as they are
// there. What it remembers is only where to look: the kernel is asked each time. Before Linux 6.8 it remembers
// nothing. It is for one mount namespace, and safe for concurrent use.
type Known struct {
	mu  sync.Mutex
	ids map[string]uniqueID // by path
}

// At is the function At.
func (k *Known) At(path string) ([]Mount, error) {
	k.mu.Lock()
	id := k.ids[path]
	k.mu.Unlock()
	return mountsAt(path, id)
}

// Note remembers the mount that is seen at path, if there is one. It opens path as Bind does, so it may hang where
// Bind may.
func (k *Known) Note(path string) {
	file, found, err := openMountable(path)
	if err != nil {
		k.Forget(path)
		return
	}
	defer release(file)
	if !found.mountRoot {
		found.unique = 0
	}
	k.set(path, found.unique)
}

// Attach is Volume.Attach, and remembers the mount at target. It does not open it for that.
func (k *Known) Attach(v *Volume, target string, options BindOptions) error {
	id, err := v.attach(target, options)
	if err != nil {
		return err
	}
	k.set(target, id)
	return nil
}

// Forget forgets the mount at path.
func (k *Known) Forget(path string) { k.set(path, 0) }

func (k *Known) set(path string, id uniqueID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if id == 0 {
		delete(k.ids, path)
		return
	}
	if k.ids == nil {
		k.ids = map[string]uniqueID{}
	}
	k.ids[path] = id
}

// mountsAt is At, with the mount that is expected at path; zero for none. The mount table is read only if another one,
// or more than one, may be there.
func mountsAt(path string, expected uniqueID) ([]Mount, error) {
	return located(path, func(where *location) ([]Mount, error) {
		if only, is := where.only(expected); is {
			return []Mount{only}, nil
		}
		if mounted, isKnown := where.isMountPoint(); isKnown && !mounted {
			return nil, nil
		}
		return where.mounts()
	})
}

// isMountPoint reports whether something is mounted at the location, without touching it: the look-up stops before it
// enters a mount. It returns false for isKnown if only the mount table can tell.
//
// If the directory is itself the root of a mount, it may be that of a file system that never answers, so it is not
// asked for a name.
func (l *location) isMountPoint() (mounted, isKnown bool) {
	if parent, err := inspect(l.parent); err != nil || parent.mountRoot {
		return false, false
	}
	file, err := openBeneath(l.parent, l.base, unix.O_PATH|unix.O_NOFOLLOW, sameMount)
	switch {
	case err == nil:
		release(file)
		return false, true
	case errors.Is(err, unix.EXDEV):
		return true, true
	default:
		return false, errors.Is(err, fs.ErrNotExist)
	}
}

// only reports whether the mount is the only one at the location, and describes it then, without touching it. It is
// the lowest one if it lies on the mount that the look-up of the directory leads to, and so it is not hidden either.
// It is the uppermost one if no other lies on its root.
func (l *location) only(id uniqueID) (Mount, bool) {
	found, is := id.describe()
	if !is || found.Point != l.point || found.on != uniqueIDOf(l.parent) {
		return Mount{}, false
	}
	below, is := id.below()
	if !is {
		return Mount{}, false
	}
	for _, other := range below {
		above, is := other.describe()
		if !is || above.on == id && !strings.HasPrefix(above.Point, l.point+"/") {
			return Mount{}, false
		}
	}
	return found.Mount, true
}

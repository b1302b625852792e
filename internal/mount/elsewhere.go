package mount

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// MountedElsewhere reports whether a process in another mount namespace than the
// caller's has something mounted that lies at or below path, as a container has
// files of its pod's directory. What is unmounted here stays mounted there where
// unmounting does not propagate. It needs a /proc that shows those processes.
//
// A path whose parent directory does not exist is mounted nowhere. What a process
// holds open, but has not mounted, does not count.
func MountedElsewhere(path string) (bool, error) {
	place, err := placeOf(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	own, err := os.Readlink(ownNamespace)
	if err != nil {
		return false, fmt.Errorf("reading the mount namespace: %w", procError(err))
	}
	processes, err := os.ReadDir("/proc")
	if err != nil {
		return false, fmt.Errorf("listing processes: %w", err)
	}
	seen := map[string]bool{own: true}
	for _, process := range processes {
		if _, err := strconv.Atoi(process.Name()); err != nil {
			continue
		}
		found, err := place.isMountedFor("/proc/"+process.Name(), seen)
		if err != nil || found {
			return found, err
		}
	}
	return false, nil
}

// placeOf says where a path lies, whether or not there is anything. It does not
// touch what is mounted at the path itself.
func placeOf(path string) (Place, error) {
	at, err := locate(path)
	if err != nil {
		return Place{}, err
	}
	defer at.close()
	crossed, err := mountsAlong(filepath.Dir(at.point))
	if err != nil {
		return Place{}, err
	}
	if len(crossed) == 0 {
		return Place{}, fmt.Errorf("looking for the mount of %q: %w", path, ErrNotMounted)
	}
	holder := crossed[len(crossed)-1]
	below := strings.TrimPrefix(at.point, strings.TrimSuffix(holder.Point, "/"))
	return Place{Major: holder.Major, Minor: holder.Minor, Path: filepath.Join(holder.Root, below)}, nil
}

// isMountedFor looks into the mount namespace of a process, given by its directory
// in /proc, unless that was looked into before.
func (p Place) isMountedFor(process string, seen map[string]bool) (bool, error) {
	namespace, err := os.Readlink(process + "/ns/mnt")
	if isForeign(err) || seen[namespace] {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading the mount namespace of a process: %w", err)
	}
	table, err := os.ReadFile(process + "/mountinfo")
	if isForeign(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading the mount table of a process: %w", err)
	}
	found := false
	_, err = mountinfo.GetMountsFromReader(bytes.NewReader(table), func(info *mountinfo.Info) (skip, stop bool) {
		found = found || info.Major == p.Major && info.Minor == p.Minor &&
			(info.Root == p.Path || strings.HasPrefix(info.Root, strings.TrimSuffix(p.Path, "/")+"/"))
		return true, found
	})
	if err != nil {
		return false, fmt.Errorf("reading the mount table of a process: %w", err)
	}
	seen[namespace] = true
	return found, nil
}

// isForeign reports whether an error says that a process has ended, or that it is
// from outside: root of a node that is a container may look into all processes of
// that node, but not into one that came from where the node itself was started.
func isForeign(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EACCES)
}

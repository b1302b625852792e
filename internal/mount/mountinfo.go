package mount

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/moby/sys/mountinfo"
)

// Mount is an entry of the mount table. Options of the file system are left out,
// for they can hold credentials.
type Mount struct {
	ID     int
	Parent int
	// Point is where it is mounted, as an absolute path without links.
	Point string
	// Root is what of the file system is mounted, as a path in it.
	Root string
	// Type is that of the file system, without a subtype: "fuse", not "fuse.sshfs".
	Type         string
	Major, Minor int
	Options      BindOptions
	// PeerGroup and Master are numbers of peer groups, and zero if there is none.
	PeerGroup int
	Master    int
}

// IsMountPoint reports whether anything is mounted at path itself, and can be reached
// by it. It does not touch what is mounted. A path that does not exist is no mount point.
func IsMountPoint(path string) (bool, error) {
	return located(path, func(where *location) (bool, error) {
		if mounted, isKnown := where.isMountPoint(); isKnown {
			return mounted, nil
		}
		mounts, err := where.mounts()
		return len(mounts) > 0, err
	})
}

// Mounts lists the mounts at and below path, sorted by mount point; of those
// that are stacked on one point, in no particular order. Nothing is listed for
// a path whose parent directory does not exist.
func Mounts(path string) ([]Mount, error) {
	if filepath.Clean(path) == "/" {
		return mountsBelow("/")
	}
	return located(path, func(at *location) ([]Mount, error) { return mountsBelow(at.point) })
}

// mountsBelow lists the mounts at and below a path that has no links.
func mountsBelow(point string) ([]Mount, error) {
	mounts, err := selectMounts(func(info *mountinfo.Info) bool { return isBelow(info.Mountpoint, point) })
	slices.SortStableFunc(mounts, func(a, b Mount) int { return cmp.Compare(a.Point, b.Point) })
	return mounts, err
}

// isBelow reports whether a mount point is a path or below it.
func isBelow(mountPoint, path string) bool {
	return mountPoint == path || strings.HasPrefix(mountPoint, strings.TrimSuffix(path, "/")+"/")
}

// mountByID finds a mount of this thread's namespace.
func mountByID(id int) (Mount, error) {
	mounts, err := selectMounts(func(info *mountinfo.Info) bool { return info.ID == id })
	if err != nil {
		return Mount{}, err
	}
	if len(mounts) == 0 {
		return Mount{}, fmt.Errorf("looking for mount %d: %w", id, ErrNotMounted)
	}
	return mounts[0], nil
}

// selectMounts reads the mount table of the calling thread. The file is read at
// once, to be as close to one moment as the kernel makes possible.
func selectMounts(wanted func(*mountinfo.Info) bool) ([]Mount, error) {
	table, err := os.ReadFile("/proc/thread-self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("reading mount table: %w", procError(err))
	}
	filter := func(info *mountinfo.Info) (skip, stop bool) { return !wanted(info), false }
	infos, err := mountinfo.GetMountsFromReader(bytes.NewReader(table), filter)
	if err != nil {
		return nil, fmt.Errorf("reading mount table: %w", err)
	}
	mounts := make([]Mount, 0, len(infos))
	for _, info := range infos {
		mounts = append(mounts, toMount(info))
	}
	return mounts, nil
}

func toMount(info *mountinfo.Info) Mount {
	options := strings.Split(info.Options, ",")
	kind, _, _ := strings.Cut(info.FSType, ".")
	has := func(option string) bool { return slices.Contains(options, option) }
	return Mount{
		ID:     info.ID,
		Parent: info.Parent,
		Point:  info.Mountpoint,
		Root:   info.Root,
		Type:   kind,
		Major:  info.Major,
		Minor:  info.Minor,
		Options: BindOptions{
			ReadOnly: has("ro"),
			NoSuid:   has("nosuid"),
			NoDev:    has("nodev"),
			NoExec:   has("noexec"),
			NoAtime:  has("noatime"),
		},
		PeerGroup: group(info.Optional, "shared:"),
		Master:    group(info.Optional, "master:"),
	}
}

// group finds the number of a peer group among the optional fields of an entry.
func group(fields, tag string) int {
	for field := range strings.FieldsSeq(fields) {
		if text, found := strings.CutPrefix(field, tag); found {
			number, err := strconv.Atoi(text)
			if err == nil {
				return number
			}
		}
	}
	return 0
}

// At lists the mounts at path itself, the lowest first, so that the last is what
// is seen there; what cannot be reached by the path is left out: where a directory
// is bound on itself, all that is mounted below it is in the table twice, once
// hidden. At does not touch what is mounted.
func At(path string) ([]Mount, error) { return mountsAt(path, 0) }

// mounts lists the mounts at the location, as At does.
func (l *location) mounts() ([]Mount, error) {
	crossed, err := mountsAlong(l.point)
	return stackAt(crossed, l.point), err
}

// mountsAlong lists the mounts that a look-up of a path that has no links crosses,
// in that order.
func mountsAlong(point string) ([]Mount, error) {
	mounts, err := selectMounts(func(info *mountinfo.Info) bool { return isAlong(info.Mountpoint, point) })
	return crossed(mounts), err
}

// isAlong reports whether a mount point is a path or leads to it.
func isAlong(mountPoint, path string) bool {
	return mountPoint == path || strings.HasPrefix(path, strings.TrimSuffix(mountPoint, "/")+"/")
}

// crossed lists, of the mounts along a path, those that a look-up of the path crosses, in that order.
func crossed(along []Mount) []Mount {
	f := newForest(along)
	var crossed []Mount
	for next := f.roots; len(next) > 0; next = f.children[next[0].ID] {
		crossed = append(crossed, next[0])
	}
	return crossed
}

// stackAt removes the mounts on the way to a path, and leaves those at the path.
func stackAt(crossed []Mount, path string) []Mount {
	return slices.DeleteFunc(crossed, func(m Mount) bool { return m.Point != path })
}

// Table is the mount table of a thread at one moment, for questions that belong together, sorted by mount point.
type Table []Mount

// ReadTable reads the mount table of the calling thread.
func ReadTable() (Table, error) {
	return mountsBelow("/")
}

// At is the function At for the table.
func (t Table) At(path string) ([]Mount, error) {
	return located(path, func(where *location) ([]Mount, error) {
		var along []Mount
		for _, mount := range t {
			if isAlong(mount.Point, where.point) {
				along = append(along, mount)
			}
		}
		return stackAt(crossed(along), where.point), nil
	})
}

// Below lists the mounts of the table at and below a path other than /.
func (t Table) Below(path string) ([]Mount, error) {
	return located(path, func(where *location) ([]Mount, error) {
		var below []Mount
		for _, mount := range t {
			if isBelow(mount.Point, where.point) {
				below = append(below, mount)
			}
		}
		return below, nil
	})
}

// Place is a directory or file of a file system, wherever that is mounted.
type Place struct {
	Major, Minor int
	// Path is its path in the file system.
	Path string
}

// Places says what each mount of the table lies on, by the ID of the mount.
// Where a directory is mounted at several points, what is mounted below one
// propagates to the others: these copies lie on one place.
func (t Table) Places() map[int]Place {
	byID := make(map[int]Mount, len(t))
	for _, mount := range t {
		byID[mount.ID] = mount
	}
	places := make(map[int]Place, len(t))
	for _, mount := range t {
		parent, found := byID[mount.Parent]
		if !found {
			parent = Mount{Point: "/", Root: "/"}
		}
		below := strings.TrimPrefix(mount.Point, strings.TrimSuffix(parent.Point, "/"))
		places[mount.ID] = Place{Major: parent.Major, Minor: parent.Minor, Path: filepath.Join(parent.Root, below)}
	}
	return places
}

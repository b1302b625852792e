package mount

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
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
	Root         string
	Type         string
	Source       string
	Major, Minor int
	Options      BindOptions
	// PeerGroup and Master are numbers of peer groups, and zero if there is none.
	PeerGroup int
	Master    int
}

// IsMountPoint reports whether anything is mounted at path itself, and can be reached
// by it. It does not touch what is mounted. A path that does not exist is no mount point.
func IsMountPoint(path string) (bool, error) {
	mounts, err := At(path)
	return len(mounts) > 0, err
}

// Mounts lists the mounts at and below path, sorted by mount point; of those
// that are stacked on one point, in no particular order. Nothing is listed for
// a path whose parent directory does not exist.
func Mounts(path string) ([]Mount, error) {
	if filepath.Clean(path) == "/" {
		return mountsBelow("/")
	}
	at, err := locate(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer at.close()
	return mountsBelow(at.point)
}

// mountsBelow lists the mounts at and below a path that has no links.
func mountsBelow(point string) ([]Mount, error) {
	prefix := strings.TrimSuffix(point, "/") + "/"
	mounts, err := selectMounts(func(info *mountinfo.Info) bool {
		return info.Mountpoint == point || strings.HasPrefix(info.Mountpoint, prefix)
	})
	slices.SortStableFunc(mounts, func(a, b Mount) int { return cmp.Compare(a.Point, b.Point) })
	return mounts, err
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
	has := func(option string) bool { return slices.Contains(options, option) }
	return Mount{
		ID:     info.ID,
		Parent: info.Parent,
		Point:  info.Mountpoint,
		Root:   info.Root,
		Type:   info.FSType,
		Source: info.Source,
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
func At(path string) ([]Mount, error) {
	at, err := locate(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer at.close()
	crossed, err := mountsAlong(at.point)
	return slices.DeleteFunc(crossed, func(m Mount) bool { return m.Point != at.point }), err
}

// mountsAlong lists the mounts that a look-up of a path that has no links crosses,
// in that order.
func mountsAlong(point string) ([]Mount, error) {
	mounts, err := selectMounts(func(info *mountinfo.Info) bool {
		return info.Mountpoint == point || strings.HasPrefix(point, strings.TrimSuffix(info.Mountpoint, "/")+"/")
	})
	if err != nil {
		return nil, err
	}
	f := newForest(mounts)
	var crossed []Mount
	for next := f.roots; len(next) > 0; next = f.children[next[0].ID] {
		crossed = append(crossed, next[0])
	}
	return crossed, nil
}

// Place is a directory or file of a file system, wherever that is mounted.
type Place struct {
	Major, Minor int
	// Path is its path in the file system.
	Path string
}

// Places says what each mount of a whole table lies on, by the ID of the mount.
// Where a directory is mounted at several points, what is mounted below one
// propagates to the others: these copies lie on one place.
func Places(table []Mount) map[int]Place {
	byID := make(map[int]Mount, len(table))
	for _, mount := range table {
		byID[mount.ID] = mount
	}
	places := make(map[int]Place, len(table))
	for _, mount := range table {
		parent, found := byID[mount.Parent]
		if !found {
			parent = Mount{Point: "/", Root: "/"}
		}
		below := strings.TrimPrefix(mount.Point, strings.TrimSuffix(parent.Point, "/"))
		places[mount.ID] = Place{Major: parent.Major, Minor: parent.Minor, Path: filepath.Join(parent.Root, below)}
	}
	return places
}

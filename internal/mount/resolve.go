package mount

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// How names that pods control are resolved.
const (
	// insideOnly lets relative links and mounts be followed, but never out of
	// the directory.
	insideOnly = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS
	// noLinks follows no symbolic link at all.
	noLinks = insideOnly | unix.RESOLVE_NO_SYMLINKS
	// sameMount also stays on the mount of the directory.
	sameMount = noLinks | unix.RESOLVE_NO_XDEV
)

// resolveAttempts bounds the repetition of look-ups that a rename anywhere on
// the node disturbed. The kernel answers EAGAIN to those that have ".." in them.
const resolveAttempts = 256

// openBeneath opens name, which pods may control, below dir.
func openBeneath(dir *os.File, name string, flags int, resolve uint64) (*os.File, error) {
	how := unix.OpenHow{Flags: uint64(flags | unix.O_CLOEXEC), Resolve: resolve}
	var fd int
	err := unix.EAGAIN
	for range resolveAttempts {
		var failure error
		fd, failure = unix.Openat2(int(dir.Fd()), name, &how)
		if failure == nil {
			return os.NewFile(uintptr(fd), filepath.Join(dir.Name(), name)), nil
		}
		if !errors.As(failure, &err) || (err != unix.EAGAIN && err != unix.EINTR) {
			break
		}
	}
	if err == unix.EXDEV || err == unix.ELOOP {
		return nil, fmt.Errorf("opening %q below %q: %w: %w", name, dir.Name(), ErrEscapes, err)
	}
	return nil, fmt.Errorf("opening %q below %q: %w", name, dir.Name(), err)
}

// openTrusted opens an absolute path of the kubelet or the agent.
func openTrusted(path string, flags int) (*os.File, error) {
	if !filepath.IsAbs(path) {
		return nil, fmt.Errorf("opening %q: %w: not an absolute path", path, ErrInvalidName)
	}
	for {
		fd, err := unix.Open(filepath.Clean(path), flags|unix.O_CLOEXEC, 0)
		if err == nil {
			return os.NewFile(uintptr(fd), path), nil
		}
		if err != unix.EINTR {
			return nil, fmt.Errorf("opening %q: %w", path, err)
		}
	}
}

// release closes a descriptor that nothing was written through, so that its error
// would say nothing.
func release(file *os.File) {
	_ = file.Close()
}

// reopen opens the very file behind an O_PATH descriptor for use.
func reopen(file *os.File, flags int) (*os.File, error) {
	fd, err := unix.Open(procPath(file), flags|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("opening %q for use: %w", file.Name(), procError(err))
	}
	return os.NewFile(uintptr(fd), file.Name()), nil
}

// procPath is a path that leads to the file of a descriptor, whatever its name
// has become.
func procPath(file *os.File) string {
	return "/proc/thread-self/fd/" + strconv.Itoa(int(file.Fd()))
}

// procError keeps a /proc that is missing, or is of another PID namespace, from
// being taken for a missing file.
func procError(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: /proc does not show this process (is hostPID missing?)", ErrUnsupported)
	}
	return err
}

// location is a path taken apart into a directory that no pod controls and a
// name in it.
type location struct {
	parent *os.File
	base   string
	// point is the path as mount tables spell it: without links.
	point string
}

// locate opens the directory that holds path. It does not touch path itself,
// which may be on a file system that no longer answers.
func locate(path string) (*location, error) {
	clean := filepath.Clean(path)
	if !filepath.IsAbs(path) || clean == "/" {
		return nil, fmt.Errorf("locating %q: %w: not an absolute path below /", path, ErrInvalidName)
	}
	dir, base := filepath.Split(clean)
	parent, err := openTrusted(dir, unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return nil, fmt.Errorf("locating %q: %w", path, err)
	}
	held, err := os.Readlink(procPath(parent))
	if err != nil {
		release(parent)
		return nil, fmt.Errorf("locating %q: %w", path, procError(err))
	}
	return &location{parent: parent, base: base, point: filepath.Join(held, base)}, nil
}

func (l *location) close() {
	release(l.parent)
}

// located runs a function on the location of a path. It returns nothing for a path
// whose parent directory does not exist.
func located[T any](path string, f func(*location) (T, error)) (T, error) {
	var none T
	where, err := locate(path)
	if errors.Is(err, fs.ErrNotExist) {
		return none, nil
	}
	if err != nil {
		return none, err
	}
	defer where.close()
	return f(where)
}

// node is what this package needs to know of an open file.
type node struct {
	kind         uint16 // S_IFMT bits
	major, minor uint32
	inode        uint64
	// deviceMajor and deviceMinor tell which device a device file is.
	deviceMajor, deviceMinor uint32
	mountID                  int
	unique                   uniqueID // of the mount that it is on
	mountRoot                bool
}

// inspect looks at an open file. It asks for nothing that the kernel does not
// know already, so that a file system which no longer answers cannot hang it.
func inspect(file *os.File) (node, error) {
	const flags = unix.AT_EMPTY_PATH | unix.AT_STATX_DONT_SYNC | unix.AT_NO_AUTOMOUNT
	const mask = unix.STATX_TYPE | unix.STATX_INO | unix.STATX_MNT_ID
	var st unix.Statx_t
	if err := unix.Statx(int(file.Fd()), "", flags, mask, &st); err != nil {
		return node{}, fmt.Errorf("inspecting %q: %w", file.Name(), err)
	}
	return node{
		kind:        st.Mode & unix.S_IFMT,
		major:       st.Dev_major,
		minor:       st.Dev_minor,
		inode:       st.Ino,
		deviceMajor: st.Rdev_major,
		deviceMinor: st.Rdev_minor,
		mountID:     int(st.Mnt_id),
		unique:      uniqueIDOf(file),
		mountRoot:   st.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0,
	}, nil
}

// mount describes the mount that the file is on. The error is ErrNotMounted if
// that is not in the namespace of the thread.
func (n node) mount() (Mount, error) {
	if found, is := n.unique.describe(); is {
		return found.Mount, nil
	}
	return mountByID(n.mountID)
}

// sameFile reports whether two nodes are one file, on whichever mounts.
func (n node) sameFile(other node) bool {
	return n.major == other.major && n.minor == other.minor && n.inode == other.inode
}

// describe names the type of a file.
func (n node) describe() string {
	switch n.kind {
	case unix.S_IFREG:
		return "a regular file"
	case unix.S_IFDIR:
		return "a directory"
	case unix.S_IFLNK:
		return "a symbolic link"
	case unix.S_IFIFO:
		return "a named pipe"
	case unix.S_IFSOCK:
		return "a socket"
	case unix.S_IFCHR:
		return "a character device"
	case unix.S_IFBLK:
		return "a block device"
	default:
		return "of unknown type"
	}
}

// checkName accepts the name of one directory entry.
func checkName(name string) error {
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
		return fmt.Errorf("%w: %q", ErrInvalidName, name)
	}
	return nil
}

package mount

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// VolumeMode is what a volume is, in the words of Kubernetes.
type VolumeMode string

// The modes that a volume may have.
const (
	Filesystem VolumeMode = "Filesystem"
	Block      VolumeMode = "Block"
)

// Volume is a directory or block device that a pod offers, held by descriptor.
// What was opened is what gets mounted, whatever the pod does to its name.
type Volume struct {
	// Mode is the type that was found.
	Mode VolumeMode

	file *os.File
	node node
}

// OpenVolume opens the volume of that name in the directory. It may be a mount,
// and it may be a relative link to something inside. Its errors are
// fs.ErrNotExist, ErrEscapes, ErrNotVolume, or one of the system.
func (d *Dir) OpenVolume(name string) (*Volume, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	file, err := openBeneath(d.file, name, unix.O_PATH, insideOnly)
	if err != nil {
		return nil, err
	}
	found, err := inspect(file)
	if err != nil {
		release(file)
		return nil, err
	}
	switch found.kind {
	case unix.S_IFDIR:
		return &Volume{Mode: Filesystem, file: file, node: found}, nil
	case unix.S_IFBLK:
		return &Volume{Mode: Block, file: file, node: found}, nil
	default:
		release(file)
		return nil, fmt.Errorf("opening volume %q: %w but %s", file.Name(), ErrNotVolume, found.describe())
	}
}

// Close lets go of the volume. What Attach mounted stays.
func (v *Volume) Close() error {
	return v.file.Close()
}

// Attach mounts the volume, with all mounts below it, at target: a directory, or
// for a block device a file. The new tree belongs to peer groups of its own, so
// what is mounted or unmounted at the volume later does not reach it, and the
// other way round. The options hold from the first moment that the tree can be
// seen. If the volume is mounted at target already, with whatever options,
// nothing is done; if anything else is, the error is ErrOccupied.
//
// The volume must have been opened in the mount namespace of the thread.
func (v *Volume) Attach(target string, options BindOptions) error {
	_, err := v.attach(target, options)
	return err
}

// attach is Attach, and returns the mount at target.
func (v *Volume) attach(target string, options BindOptions) (uniqueID, error) {
	to, at, err := openTarget(target, v.node)
	if err != nil {
		return 0, err
	}
	defer release(to)
	if at.mountRoot {
		return at.unique, mustBeSame(v.node, at, target)
	}
	copied, err := copyFor(v.file, v.node, options)
	if err != nil {
		return 0, err
	}
	defer copied.close()
	if err := copied.leaveGroups(); err != nil {
		return 0, err
	}
	return uniqueIDOf(copied.file), copied.attach(to)
}

// openMountable opens something that can be mounted, or mounted on.
func openMountable(path string) (*os.File, node, error) {
	file, err := openTrusted(path, unix.O_PATH|unix.O_NOFOLLOW)
	if err != nil {
		return nil, node{}, err
	}
	found, err := inspect(file)
	if err == nil && found.kind == unix.S_IFLNK {
		err = fmt.Errorf("opening %q: %w: it is a symbolic link", path, ErrEscapes)
	}
	if err != nil {
		release(file)
		return nil, node{}, err
	}
	return file, found, nil
}

// openTarget opens what something is to be mounted on.
func openTarget(path string, wanted node) (*os.File, node, error) {
	file, at, err := openMountable(path)
	if err != nil {
		return nil, node{}, err
	}
	if (at.kind == unix.S_IFDIR) != (wanted.kind == unix.S_IFDIR) {
		release(file)
		return nil, node{}, fmt.Errorf("mounting at %q: %w", path, ErrMismatch)
	}
	return file, at, nil
}

// mustBeSame reports whether the mount found at target is the one wanted there.
func mustBeSame(wanted, at node, target string) error {
	if !wanted.sameFile(at) {
		return fmt.Errorf("mounting at %q: %w", target, ErrOccupied)
	}
	return nil
}

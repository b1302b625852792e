package mount

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// tree is a copy of a mount tree that is attached nowhere. All that is to be
// changed on it is changed before attach, so that nobody ever sees it half done,
// and a crash leaves either nothing or all of it.
type tree struct {
	file *os.File
}

// cloneTree copies the mount that source is on, from source downwards, with all
// mounts below. The copies are peers of the originals where those are shared.
func cloneTree(source *os.File) (*tree, error) {
	const flags = unix.OPEN_TREE_CLONE | unix.OPEN_TREE_CLOEXEC | unix.AT_EMPTY_PATH | unix.AT_RECURSIVE
	fd, err := unix.OpenTree(int(source.Fd()), "", flags)
	if err != nil {
		return nil, fmt.Errorf("copying mount tree of %q: %w", source.Name(), err)
	}
	return &tree{file: os.NewFile(uintptr(fd), source.Name())}, nil
}

// close dissolves a tree that was not attached, and changes nothing otherwise.
func (t *tree) close() {
	release(t.file)
}

// leaveGroups makes every mount of the tree the first of a new peer group,
// without a master.
func (t *tree) leaveGroups() error {
	return setPropagation(t.file, unix.MS_PRIVATE, unix.MS_SHARED)
}

// follow makes every mount of the tree receive what happens in its old peer
// group and return nothing. It is shared as well, in a new group, so that those
// who use it can in turn pass on what they receive.
func (t *tree) follow() error {
	return setPropagation(t.file, unix.MS_SLAVE, unix.MS_SHARED)
}

// restrict sets mount attributes on every mount of the tree.
func (t *tree) restrict(options BindOptions) error {
	attributes := options.attributes()
	if attributes == 0 {
		return nil
	}
	change := unix.MountAttr{Attr_set: attributes}
	if attributes&unix.MOUNT_ATTR__ATIME != 0 {
		// These are one field of the mount, to be cleared as a whole.
		change.Attr_clr = unix.MOUNT_ATTR__ATIME
	}
	if err := setAttributes(t.file, &change); err != nil {
		return fmt.Errorf("restricting mount tree of %q: %w", t.file.Name(), err)
	}
	return nil
}

// allowDevices lets the device files of the tree be opened.
func (t *tree) allowDevices() error {
	if err := setAttributes(t.file, &unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_NODEV}); err != nil {
		return fmt.Errorf("allowing devices in mount tree of %q: %w", t.file.Name(), err)
	}
	return nil
}

// attach mounts the tree at target.
func (t *tree) attach(target *os.File) error {
	const flags = unix.MOVE_MOUNT_F_EMPTY_PATH | unix.MOVE_MOUNT_T_EMPTY_PATH
	if err := unix.MoveMount(int(t.file.Fd()), "", int(target.Fd()), "", flags); err != nil {
		return fmt.Errorf("mounting %q at %q: %w", t.file.Name(), target.Name(), err)
	}
	Traced("move_mount")
	return nil
}

// setPropagation applies kinds one after the other to the mount tree at file.
func setPropagation(file *os.File, kinds ...uint64) error {
	for _, kind := range kinds {
		if err := setAttributes(file, &unix.MountAttr{Propagation: kind}); err != nil {
			return fmt.Errorf("setting propagation of mounts at %q: %w", file.Name(), err)
		}
	}
	return nil
}

// setAttributes changes all mounts of the tree at file, or none.
func setAttributes(file *os.File, change *unix.MountAttr) error {
	err := unix.MountSetattr(int(file.Fd()), "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, change)
	if err == nil {
		Traced("mount_setattr")
	}
	return err
}

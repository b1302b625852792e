package mount

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Tmpfs is a file system in memory.
type Tmpfs struct {
	// Size is how many bytes its files may have in all, and Inodes how many there may be.
	Size   int64
	Inodes int
	// Mode is that of its root.
	Mode fs.FileMode
	// NoExec keeps its programs from being run, and NoSwap its files from swap
	// space, from Linux 6.4 on.
	NoExec, NoSwap bool
}

// Mount mounts a file system in memory on a directory, in a peer group of its own,
// and without device files or programs that gain rights. If the directory is a mount
// point already, only what is missing of the peer group is made up for, as by SelfBind.
func (t Tmpfs) Mount(path string) error {
	dir, at, err := openMountable(path)
	if err != nil {
		return err
	}
	defer release(dir)
	if at.mountRoot {
		return SelfBind(path)
	}
	made, err := t.make()
	if err != nil {
		return fmt.Errorf("making a tmpfs for %q: %w", path, err)
	}
	defer made.close()
	if err := made.leaveGroups(); err != nil {
		return err
	}
	return made.attach(dir)
}

// make makes the file system, mounted nowhere yet.
func (t Tmpfs) make() (*tree, error) {
	context, err := unix.Fsopen("tmpfs", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return nil, err
	}
	defer func() { _ = unix.Close(context) }()
	for _, option := range [][2]string{
		{"source", "pav"},
		{"size", strconv.FormatInt(t.Size, 10)},
		{"nr_inodes", strconv.Itoa(t.Inodes)},
		{"mode", strconv.FormatUint(uint64(t.Mode.Perm()), 8)},
	} {
		if err := unix.FsconfigSetString(context, option[0], option[1]); err != nil {
			return nil, fmt.Errorf("setting %s: %w", option[0], err)
		}
	}
	attributes := unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV
	if t.NoExec {
		attributes |= unix.MOUNT_ATTR_NOEXEC
	}
	if t.NoSwap {
		if err := setIfKnown(context, "noswap"); err != nil {
			return nil, err
		}
	}
	if err := unix.FsconfigCreate(context); err != nil {
		return nil, err
	}
	mounted, err := unix.Fsmount(context, unix.FSMOUNT_CLOEXEC, attributes)
	if err != nil {
		return nil, err
	}
	return &tree{file: os.NewFile(uintptr(mounted), "tmpfs")}, nil
}

// setIfKnown sets a flag of a file system that older kernels do not have. One that
// is not known leaves the file system as it was.
func setIfKnown(context int, flag string) error {
	if err := unix.FsconfigSetFlag(context, flag); err != nil && !errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("setting %s: %w", flag, err)
	}
	return nil
}

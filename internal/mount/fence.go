package mount

import (
	"errors"
	"fmt"
	"strconv"

	"golang.org/x/sys/unix"
)

// Fence makes what Probe has found dead at path so for good, if it is a FUSE:
// its connection is aborted, so that no answer of its daemon, should that live,
// counts any more, in any bind of it. The node's other file systems are left
// alone, and so is whatever is no FUSE.
//
// The error is ErrNotMounted where nothing is mounted at path, and
// ErrUnsupported where this process may not abort connections. It asks the
// kernel only, and never waits for the daemon.
func Fence(path string) error {
	if err := fence(path); err != nil {
		return fmt.Errorf("aborting the FUSE connection of %q: %w", path, err)
	}
	return nil
}

func fence(path string) error {
	file, found, err := openMountable(path)
	if err != nil {
		return err
	}
	defer release(file)
	if !found.mountRoot {
		return ErrNotMounted
	}
	if found.kind != unix.S_IFDIR {
		return nil // The file system that contains a device node does not serve the device.
	}
	mounted, err := found.mount()
	if err != nil || !mounted.isFUSE() {
		return err
	}
	// The kernel names a connection by the number of its file system's device. A detached mount of
	// fusectl shows it wherever, and whether or not, the node has it mounted.
	connections, err := mountConnections()
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(connections) }()
	name := strconv.Itoa(mounted.Major<<20|mounted.Minor) + "/abort"
	fd, err := unix.Openat(connections, name, unix.O_WRONLY|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		return fmt.Errorf("opening %q: %w", name, err)
	}
	_, err = unix.Write(fd, []byte("1"))
	return errors.Join(err, unix.Close(fd))
}

// isFUSE reports whether a daemon serves the file system.
func (m Mount) isFUSE() bool {
	return m.Type == "fuse" || m.Type == "fuseblk"
}

// mountConnections mounts fusectl where no path leads to it.
func mountConnections() (fd int, err error) {
	fs, err := unix.Fsopen("fusectl", unix.FSOPEN_CLOEXEC)
	if err == nil {
		defer func() { _ = unix.Close(fs) }()
		err = unix.FsconfigCreate(fs)
	}
	if err == nil {
		fd, err = unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOEXEC)
	}
	for _, lacking := range []error{unix.EPERM, unix.ENODEV, unix.ENOSYS} {
		if errors.Is(err, lacking) {
			return -1, fmt.Errorf("%w: mounting fusectl: %w", ErrUnsupported, err)
		}
	}
	if err != nil {
		return -1, fmt.Errorf("mounting fusectl: %w", err)
	}
	return fd, nil
}

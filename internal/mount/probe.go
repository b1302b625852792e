package mount

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// Probe asks what is mounted at path, a directory or a block device, for an
// answer: nil if it gave one. The question goes to the server of the file system, past all
// caches, and may keep the caller waiting forever: call it within Do.
//
// ErrDead says that it will never answer again, and that nothing which is written
// to it from now on reaches a storage. That is so for two things only:
//
//   - FUSE without its daemon: ENOTCONN. The kernel says so once the last
//     descriptor of the daemon is closed or the connection was aborted, and that
//     cannot be undone. But some daemons (GlusterFS) give the same answer
//     themselves, as long as they do not reach their servers: ask again, unless
//     the daemon has ended, and Fence it before the volume is made again.
//   - A block device that is gone: opening it gives ENXIO or ENODEV and the kernel
//     has none of that number, or the device has no bytes (nothing is behind a
//     loop device or an NBD).
//
// No other error is a proof. EIO can be a single sector, or a loop device whose
// file was cut off, which still takes writes; ENXIO a SCSI path that returns;
// ESTALE, EHOSTDOWN and ETIMEDOUT a server that returns. All these are returned
// as they are. ErrNotMounted says that nothing is mounted at path.
func Probe(path string) error {
	file, found, err := openMountable(path)
	if err != nil {
		return err
	}
	defer release(file)
	if !found.mountRoot {
		return fmt.Errorf("probing %q: %w", path, ErrNotMounted)
	}
	switch found.kind {
	case unix.S_IFDIR:
		err = probeDirectory(file, found)
	case unix.S_IFBLK:
		err = probeDevice(file, found)
	default:
		err = fmt.Errorf("%w but %s", ErrNotVolume, found.describe())
	}
	if err != nil {
		return fmt.Errorf("probing %q: %w", path, err)
	}
	return nil
}

func probeDirectory(file *os.File, found node) error {
	var st unix.Statfs_t
	err := unix.Fstatfs(int(file.Fd()), &st)
	if err == nil || refused(err) {
		var root *os.File
		if root, err = reopen(file, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NONBLOCK); err == nil {
			release(root)
		}
	}
	if err == nil || refused(err) {
		return nil
	}
	if !errors.Is(err, unix.ENOTCONN) {
		return err
	}
	mounted, tableErr := found.mount()
	if tableErr != nil {
		return errors.Join(err, tableErr)
	}
	if mounted.isFUSE() {
		return fmt.Errorf("%w: %w", ErrDead, err)
	}
	return err
}

// refused reports whether an error is an answer: a server that squashes root, or a
// daemon that does without the call, lives.
func refused(err error) bool {
	return errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSYS)
}

func probeDevice(file *os.File, found node) error {
	// Read past the page cache, which goes on answering.
	device, err := openDevice(file, unix.O_DIRECT)
	if errors.Is(err, unix.ENXIO) || errors.Is(err, unix.ENODEV) {
		if found.deviceIsGone() {
			return fmt.Errorf("%w: %w", ErrDead, err)
		}
	}
	if err != nil {
		return err
	}
	defer release(device)
	size, err := deviceSize(device)
	if err != nil {
		return err
	}
	if size == 0 {
		return fmt.Errorf("%w: the device has no bytes", ErrDead)
	}
	return readSector(device)
}

// readSector reads the first sector of a device that is open for direct access.
func readSector(device *os.File) error {
	length, err := unix.IoctlGetUint32(int(device.Fd()), unix.BLKSSZGET)
	if err != nil {
		return fmt.Errorf("asking for the size of a sector: %w", err)
	}
	// Direct access wants memory that is aligned.
	sector, err := unix.Mmap(-1, 0, int(length), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return fmt.Errorf("making room for a sector: %w", err)
	}
	defer func() { _ = unix.Munmap(sector) }()
	if _, err := device.ReadAt(sector, 0); err != nil {
		return fmt.Errorf("reading a sector: %w", err)
	}
	return nil
}

// deviceIsGone reports whether the kernel has no block device of the file's number.
func (n node) deviceIsGone() bool {
	if _, err := os.Stat("/sys/dev/block"); err != nil {
		return false
	}
	_, err := os.Lstat(fmt.Sprintf("/sys/dev/block/%d:%d", n.deviceMajor, n.deviceMinor))
	return errors.Is(err, fs.ErrNotExist)
}

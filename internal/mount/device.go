package mount

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// Device gives the size of a block volume in bytes, and whether its device
// refuses to be written to: a read-only mount of a device file does not. The
// error is unix.ENOTBLK for a volume that is no device, or one of the system. A
// device that no longer answers may keep the caller waiting: call it within Do.
func (v *Volume) Device() (size int64, readOnly bool, err error) {
	if v.Mode != Block {
		return 0, false, fmt.Errorf("measuring volume %q: %w", v.file.Name(), unix.ENOTBLK)
	}
	device, err := openDevice(v.file, 0)
	if err != nil {
		return 0, false, err
	}
	defer release(device)
	size, err = deviceSize(device)
	if err != nil {
		return 0, false, err
	}
	locked, err := unix.IoctlGetUint32(int(device.Fd()), unix.BLKROGET)
	if err != nil {
		return 0, false, fmt.Errorf("asking whether %q is read-only: %w", v.file.Name(), err)
	}
	return size, locked != 0, nil
}

// deviceSize gives the size of an open block device in bytes, which is where it
// ends, on every architecture.
func deviceSize(device *os.File) (int64, error) {
	size, err := device.Seek(0, io.SeekEnd)
	if err != nil {
		return 0, fmt.Errorf("measuring device %q: %w", device.Name(), err)
	}
	return size, nil
}

// openDevice opens the block device behind an O_PATH descriptor for reading,
// without waiting for a medium.
func openDevice(file *os.File, flags int) (*os.File, error) {
	flags |= unix.O_RDONLY | unix.O_NONBLOCK
	device, err := reopen(file, flags)
	if !errors.Is(err, unix.EACCES) {
		return device, err
	}
	// Nodes may have kubelet's directory on a file system that is mounted nodev.
	copied, err := cloneTree(file)
	if err != nil {
		return nil, err
	}
	defer copied.close()
	if err := copied.allowDevices(); err != nil {
		return nil, err
	}
	return reopen(copied.file, flags)
}

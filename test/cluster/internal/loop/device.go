package loop

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/albertofaria/pav/test/cluster/internal/process"
)

// major is the kernel's major device number of loop devices.
const major = 7

// Device is a loop device in use, with the kernel's information about its backing file. The file's path is of little
// use, because it is relative to a namespace that may no longer exist. The numbers of the file system and of the inode
// are the same in all namespaces.
type Device struct {
	Number int
	// Path is the backing file's path in some namespace.
	Path string
	// Filesystem and Inode identify the backing file.
	Filesystem uint64
	Inode      uint64
	// Backing is the device number of the backing file, if the backing file is itself a device.
	Backing uint64
}

// Devices returns the loop devices that have a backing file.
func Devices() ([]Device, error) {
	paths, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	if err != nil {
		return nil, fmt.Errorf("listing loop devices: %w", err)
	}
	var devices []Device
	for _, path := range paths {
		name := filepath.Base(filepath.Dir(filepath.Dir(path)))
		number, err := strconv.Atoi(strings.TrimPrefix(name, "loop"))
		if err != nil {
			continue
		}
		device, err := inspect(number)
		if errors.Is(err, unix.ENXIO) || errors.Is(err, os.ErrNotExist) {
			continue // detached in the meantime
		}
		if err != nil {
			return nil, err
		}
		if content, err := os.ReadFile(path); err == nil {
			device.Path = strings.TrimSuffix(string(content), "\n")
		}
		devices = append(devices, device)
	}
	return devices, nil
}

// open opens a loop device and compares its device number. If containers have access to the machine's device files, a
// device file may be missing or replaced.
func open(number int) (*os.File, error) {
	file, err := os.OpenFile(fmt.Sprintf("/dev/loop%d", number), os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("opening a loop device: %w", err)
	}
	var stat unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &stat); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("inspecting loop device %d: %w", number, err)
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFBLK || stat.Rdev != unix.Mkdev(major, uint32(number)) {
		_ = file.Close()
		return nil, fmt.Errorf("/dev/loop%d is another device", number)
	}
	return file, nil
}

func inspect(number int) (Device, error) {
	file, err := open(number)
	if err != nil {
		return Device{}, err
	}
	defer func() { _ = file.Close() }()
	info, err := unix.IoctlLoopGetStatus64(int(file.Fd()))
	if err != nil {
		return Device{}, fmt.Errorf("inspecting loop device %d: %w", number, err)
	}
	return Device{Number: number, Filesystem: info.Device, Inode: info.Inode, Backing: info.Rdevice}, nil
}

// Detach detaches devices and waits until the kernel has released their backing files. The kernel releases a file when
// the last user of the device has closed it. A device may be attached to another device of the list. The order of the
// list does not matter.
func Detach(ctx context.Context, devices []Device) error {
	left := slices.Clone(devices)
	err := process.Until(ctx, 20*time.Millisecond, func() (bool, error) {
		var failed error
		left = slices.DeleteFunc(left, func(device Device) bool {
			detached, err := detachOnce(device)
			failed = errors.Join(failed, err)
			return detached
		})
		return len(left) == 0, failed
	})
	if err != nil {
		return fmt.Errorf("detaching loop devices %v: %w", left, err)
	}
	return nil
}

func detachOnce(device Device) (bool, error) {
	current, err := inspect(device.Number)
	if errors.Is(err, unix.ENXIO) || errors.Is(err, os.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	current.Path = device.Path
	if current != device {
		return true, nil // another user has the device by now
	}
	file, err := open(device.Number)
	if err != nil {
		return false, err
	}
	err = unix.IoctlSetInt(int(file.Fd()), unix.LOOP_CLR_FD, 0)
	_ = file.Close()
	if err != nil && !errors.Is(err, unix.ENXIO) && !errors.Is(err, unix.EBUSY) {
		return false, err
	}
	// The kernel detaches the device only when no process has it open any more, including this program.
	_, err = inspect(device.Number)
	return errors.Is(err, unix.ENXIO), nil
}

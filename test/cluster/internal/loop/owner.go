package loop

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Place describes the files of a node or cluster. Owned uses it to decide to which node or cluster a loop device
// belongs.
type Place struct {
	// Directory is the directory in which backing files are searched for.
	Directory string
	// Filesystems are the file systems that exist only in the node, such as memory-backed file systems of its pods.
	Filesystems []uint64
}

// file identifies a file on the machine.
type file struct{ filesystem, inode uint64 }

// Owned returns the devices whose backing file belongs to the place, directly or through further loop devices. (kubelet
// attaches a loop device to each block volume.)
//
// The devices in vanished belong to the place in any case.
func (p Place) Owned(devices, vanished []Device) ([]Device, error) {
	if len(devices) == 0 {
		return nil, nil
	}
	wanted := map[file]bool{}
	for _, device := range devices {
		wanted[file{device.Filesystem, device.Inode}] = true
	}
	found, err := search(p.Directory, wanted)
	if err != nil {
		return nil, err
	}
	return owned(devices, func(device Device) bool {
		return found[file{device.Filesystem, device.Inode}] ||
			slices.Contains(p.Filesystems, device.Filesystem) || below(device.Path, p.Directory) ||
			slices.Contains(vanished, device)
	}), nil
}

// owned returns the devices for which direct returns true, and all devices that are attached to a returned device.
func owned(devices []Device, direct func(Device) bool) []Device {
	mine := map[uint64]bool{}
	var found []Device
	for changed := true; changed; {
		changed = false
		for _, device := range devices {
			number := unix.Mkdev(major, uint32(device.Number))
			if mine[number] || !direct(device) && !mine[device.Backing] {
				continue
			}
			mine[number], changed = true, true
			found = append(found, device)
		}
	}
	return found
}

// Vanished returns the devices with a deleted backing file whose mount disappeared between two listings of the devices.
// A deleted file cannot be found by a search. But the kernel reports its path from the root of the namespace as long as
// the file system is mounted there, and from the root of the mount afterwards. So the second path is the first one
// without the mount's directory.
func Vanished(before, after []Device, directories []string) []Device {
	var vanished []Device
	for _, now := range after {
		for _, then := range before {
			same := then
			same.Path = now.Path
			moved := slices.ContainsFunc(directories, func(directory string) bool { return then.Path == directory+now.Path })
			if same == now && moved && strings.HasSuffix(now.Path, deleted) {
				vanished = append(vanished, now)
			}
		}
	}
	return vanished
}

// Moved returns the devices whose backing file was opened through a mount that disappeared between two listings of the
// devices. This happens when a node ends that attached the devices. As in Vanished, their paths show it.
func Moved(before, after []Device) []Device {
	var moved []Device
	for _, now := range after {
		if slices.ContainsFunc(before, func(then Device) bool {
			same := then
			same.Path = now.Path
			return same == now && then.Path != now.Path && strings.HasSuffix(then.Path, now.Path)
		}) {
			moved = append(moved, now)
		}
	}
	return moved
}

// deleted is the suffix that the kernel appends to the path of a deleted file.
const deleted = " (deleted)"

// below reports whether the kernel's path of a backing file is in the directory.
func below(path, directory string) bool {
	return directory != "" && strings.HasPrefix(path, strings.TrimSuffix(directory, "/")+"/")
}

// search returns the wanted files that are in the directory.
func search(directory string, wanted map[file]bool) (map[file]bool, error) {
	found := map[file]bool{}
	err := filepath.WalkDir(directory, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		if err != nil || entry.IsDir() {
			return err
		}
		var stat unix.Stat_t
		if err := unix.Lstat(path, &stat); err != nil {
			if errors.Is(err, unix.ENOENT) {
				return nil
			}
			return err
		}
		if key := (file{stat.Dev, stat.Ino}); wanted[key] {
			found[key] = true
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("searching backing files of loop devices: %w", err)
	}
	return found, nil
}

// PrivateFilesystems returns the file systems that are mounted in a process's mount namespace but not in the caller's.
// The process must be running.
func PrivateFilesystems(pid int) ([]uint64, error) {
	own, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("listing mounts: %w", err)
	}
	other, err := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", pid))
	if err != nil {
		return nil, fmt.Errorf("listing a node's mounts: %w", err)
	}
	shared := filesystems(string(own))
	return slices.DeleteFunc(filesystems(string(other)), func(number uint64) bool {
		return slices.Contains(shared, number)
	}), nil
}

// Held returns those of the file systems on which a device has its backing file. They keep their numbers as long as the
// device is attached. The number of any other may be given to a file system of another cluster when the node has ended.
func Held(filesystems []uint64, devices []Device) []uint64 {
	return slices.DeleteFunc(filesystems, func(number uint64) bool {
		return !slices.ContainsFunc(devices, func(device Device) bool { return device.Filesystem == number })
	})
}

// filesystems returns the numbers of the file systems in a mountinfo file.
func filesystems(mountinfo string) []uint64 {
	var numbers []uint64
	for line := range strings.Lines(mountinfo) {
		fields := strings.Fields(line)
		if len(fields) < 3 {
			continue
		}
		first, second, _ := strings.Cut(fields[2], ":")
		high, err := strconv.ParseUint(first, 10, 32)
		if err != nil {
			continue
		}
		low, err := strconv.ParseUint(second, 10, 32)
		if err != nil {
			continue
		}
		if number := unix.Mkdev(uint32(high), uint32(low)); !slices.Contains(numbers, number) {
			numbers = append(numbers, number)
		}
	}
	slices.Sort(numbers)
	return numbers
}

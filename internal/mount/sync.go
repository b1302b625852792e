package mount

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Sync writes to the storage what the kernel has in memory of the volume that is
// mounted at path: of a directory, all file systems of its mount tree, and of a
// block device, the device. What was written to it before the call, through any
// bind, is in the storage when Sync returns nil. It may keep the caller waiting
// forever: call it within Do. ErrNotMounted says that nothing is mounted at path.
//
// A FUSE gets what the kernel holds back for it. What its daemon has in memory,
// or has written to other file systems, is the daemon's matter: the kernel does not
// pass the request on to it.
func Sync(path string) error {
	file, found, err := openMountable(path)
	if err != nil {
		return err
	}
	defer release(file)
	if !found.mountRoot {
		return fmt.Errorf("synchronizing %q: %w", path, ErrNotMounted)
	}
	switch found.kind {
	case unix.S_IFDIR:
		err = syncTree(file, found, path)
	case unix.S_IFBLK:
		err = syncDevice(file)
	default:
		err = fmt.Errorf("%w but %s", ErrNotVolume, found.describe())
	}
	if err != nil {
		return fmt.Errorf("synchronizing %q: %w", path, err)
	}
	return nil
}

// syncTree synchronizes each file system that is mounted at path, where top is open, or below it.
func syncTree(top *os.File, found node, path string) error {
	if err := syncFileSystem(top, found); err != nil {
		return err
	}
	at, err := locate(path)
	if err != nil {
		return err
	}
	defer at.close()
	mounts, err := mountsBelow(at.point)
	if err != nil {
		return err
	}
	type number struct{ major, minor int }
	done := map[number]bool{{int(found.major), int(found.minor)}: true}
	for _, mounted := range mounts {
		is := number{mounted.Major, mounted.Minor}
		if done[is] {
			continue
		}
		done[is] = true
		if err := syncBelow(top, strings.TrimPrefix(mounted.Point, at.point+"/")); err != nil {
			return err
		}
	}
	return nil
}

// syncBelow synchronizes the file system that is mounted at a path below top. Clients can
// rename the directories that lead there: then it is not found, and that is an error.
func syncBelow(top *os.File, relative string) error {
	file, err := openBeneath(top, relative, unix.O_PATH, noLinks)
	if err != nil {
		return err
	}
	defer release(file)
	found, err := inspect(file)
	if err != nil {
		return err
	}
	return syncFileSystem(file, found)
}

// syncFileSystem synchronizes the file system of a file. The kernel wants the file open for
// use. What a device, a pipe or a socket does when it is opened is up to others, and the
// file system that one alone is mounted of holds nothing that clients could have written.
func syncFileSystem(file *os.File, found node) error {
	if found.kind != unix.S_IFDIR && found.kind != unix.S_IFREG {
		return nil
	}
	opened, err := reopen(file, unix.O_RDONLY|unix.O_NONBLOCK)
	if err != nil {
		return err
	}
	defer release(opened)
	if err := unix.Syncfs(int(opened.Fd())); err != nil {
		return fmt.Errorf("writing back %q: %w", file.Name(), err)
	}
	return nil
}

func syncDevice(file *os.File) error {
	device, err := openDevice(file, 0)
	if err != nil {
		return err
	}
	defer release(device)
	if err := device.Sync(); err != nil {
		return fmt.Errorf("writing back: %w", err)
	}
	return nil
}

package mount

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// parentMode is what directories get that are only made to hold another.
const parentMode = 0o750

// CreateDir makes the directory name, a relative path without "..", below root,
// which must exist. Below root no link is followed: ErrEscapes. Missing parents
// are made for root only. The last directory gets exactly mode, whatever the
// umask, also if it exists already; but not if something is mounted there, for
// that is a user's. What is mounted is not touched: it may be dead.
func CreateDir(root, name string, mode fs.FileMode) error {
	err := inParent(root, name, func(parent *os.File, base string) error {
		dir, _, err := enterOrCreate(parent, base, sameMount)
		if errors.Is(err, unix.EXDEV) {
			return nil // Something is mounted there.
		}
		if err != nil {
			return err
		}
		defer release(dir)
		return setMode(dir, mode)
	})
	if err != nil {
		return fmt.Errorf("creating directory %q: %w", name, err)
	}
	return nil
}

// CreateFile is CreateDir for an empty regular file, on which a device can be
// mounted. What is in a file that exists stays. Anything else at that name, but
// for a mount, is ErrNotRegular.
func CreateFile(root, name string, mode fs.FileMode) error {
	err := inParent(root, name, func(parent *os.File, base string) error {
		err := unix.Mknodat(int(parent.Fd()), base, unix.S_IFREG|0o600, 0)
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("making %q: %w", base, err)
		}
		if err == nil {
			Traced("mknodat")
		}
		// First only a handle, for opening a named pipe or a device has effects.
		handle, err := openBeneath(parent, base, unix.O_PATH, sameMount)
		if errors.Is(err, unix.EXDEV) {
			return nil // Something is mounted there.
		}
		if err != nil {
			return err
		}
		defer release(handle)
		found, err := inspect(handle)
		if err != nil {
			return err
		}
		if found.kind != unix.S_IFREG {
			return fmt.Errorf("%w but %s", ErrNotRegular, found.describe())
		}
		file, err := reopen(handle, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY)
		if err != nil {
			return err
		}
		defer release(file)
		return setMode(file, mode)
	})
	if err != nil {
		return fmt.Errorf("creating file %q: %w", name, err)
	}
	return nil
}

// inParent makes the directories that lead from root to name, and runs create
// in the last of them.
func inParent(root, name string, create func(parent *os.File, base string) error) error {
	if !filepath.IsLocal(name) || filepath.Clean(name) != name || name == "." {
		return ErrInvalidName
	}
	dir, err := openTrusted(root, unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer func() { release(dir) }()
	parts := strings.Split(name, "/")
	last := len(parts) - 1
	for _, part := range parts[:last] {
		next, created, err := enterOrCreate(dir, part, noLinks)
		if err != nil {
			return err
		}
		release(dir)
		dir = next
		if !created {
			continue
		}
		if err := setMode(dir, parentMode); err != nil {
			return err
		}
	}
	return create(dir, parts[last])
}

// enterOrCreate opens a directory in dir, after making it if it is missing.
func enterOrCreate(dir *os.File, name string, resolve uint64) (file *os.File, created bool, err error) {
	err = unix.Mkdirat(int(dir.Fd()), name, 0o700)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, false, fmt.Errorf("making %q: %w", name, err)
	}
	created = err == nil
	if created {
		Traced("mkdirat")
	}
	file, err = openBeneath(dir, name, unix.O_RDONLY|unix.O_DIRECTORY, resolve)
	return file, created, err
}

// setMode sets the mode of a file that no mount covers.
func setMode(file *os.File, mode fs.FileMode) error {
	found, err := inspect(file)
	if err != nil || found.mountRoot {
		return err
	}
	if err := file.Chmod(mode); err != nil {
		return fmt.Errorf("setting mode: %w", err)
	}
	return nil
}

// RemoveDir removes an empty directory; a path that does not exist is no error.
// One that is not empty stays, with what is in it, for it is not ours to delete:
// unix.ENOTEMPTY.
func RemoveDir(path string) error {
	err := unix.Rmdir(path)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("removing directory %q: %w", path, err)
	}
	Traced("unlinkat")
	return nil
}

// RemoveTarget removes what a volume was mounted on: an empty directory, or an
// empty regular file. A path that does not exist is no error. What has content
// stays: unix.ENOTEMPTY; so does what something is mounted on: ErrBusyMount.
// Links and special files stay, too: ErrEscapes, ErrNotRegular.
func RemoveTarget(path string) error {
	at, err := locate(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer at.close()
	err = unlink(at.parent, at.base, unix.AT_REMOVEDIR)
	if errors.Is(err, unix.ENOTDIR) {
		if err = at.mustBeEmptyFile(); err == nil {
			err = unlink(at.parent, at.base, 0)
		}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return removalError(at.point, err)
	}
	return nil
}

// mustBeEmptyFile reports whether the location is one that RemoveTarget may unlink.
func (l *location) mustBeEmptyFile() error {
	file, err := openBeneath(l.parent, l.base, unix.O_PATH, sameMount)
	if errors.Is(err, unix.EXDEV) {
		return unix.EBUSY // as the kernel calls a directory that is mounted on
	}
	if err != nil {
		return err
	}
	defer release(file)
	info, err := file.Stat()
	if err != nil {
		return fmt.Errorf("inspecting: %w", err)
	}
	if !info.Mode().IsRegular() {
		return ErrNotRegular
	}
	if info.Size() > 0 {
		return fmt.Errorf("it has %d bytes: %w", info.Size(), unix.ENOTEMPTY)
	}
	return nil
}

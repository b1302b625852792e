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
// that is a user's.
func CreateDir(root, name string, mode fs.FileMode) error {
	if !filepath.IsLocal(name) || filepath.Clean(name) != name || name == "." {
		return fmt.Errorf("creating directory %q: %w", name, ErrInvalidName)
	}
	dir, err := openTrusted(root, unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	parts := strings.Split(name, "/")
	for i, part := range parts {
		next, err := enterOrCreate(dir, part, i == len(parts)-1, mode)
		release(dir)
		if err != nil {
			return fmt.Errorf("creating directory %q: %w", name, err)
		}
		dir = next
	}
	return dir.Close()
}

// enterOrCreate opens a directory in dir, after making it if it is missing.
func enterOrCreate(dir *os.File, name string, last bool, mode fs.FileMode) (*os.File, error) {
	err := unix.Mkdirat(int(dir.Fd()), name, 0o700)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("making %q: %w", name, err)
	}
	created := err == nil
	file, err := openBeneath(dir, name, unix.O_RDONLY|unix.O_DIRECTORY, noLinks)
	if err != nil {
		return nil, err
	}
	switch {
	case last:
		err = setMode(file, mode)
	case created:
		err = setMode(file, parentMode)
	}
	if err != nil {
		release(file)
		return nil, err
	}
	return file, nil
}

// setMode sets the mode of a directory that no mount covers.
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
// One that is not empty stays, with what is in it: it is not ours to delete.
func RemoveDir(path string) error {
	if err := unix.Rmdir(path); err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("removing directory %q: %w", path, err)
	}
	return nil
}

package mount

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"golang.org/x/sys/unix"
)

// OpenDir opens the directory of that name that lies in the directory itself. Its
// errors are fs.ErrNotExist, ErrNotDirectory, ErrEscapes (a link, or a mount), or
// one of the system.
func (d *Dir) OpenDir(name string) (*Dir, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	handle, err := openBeneath(d.file, name, unix.O_PATH, sameMount)
	if err != nil {
		return nil, err
	}
	found, err := inspect(handle)
	if err == nil && found.kind != unix.S_IFDIR {
		err = fmt.Errorf("opening %q: %w but %s", handle.Name(), ErrNotDirectory, found.describe())
	}
	if err != nil {
		release(handle)
		return nil, err
	}
	return &Dir{file: handle}, nil
}

// OpenMount opens the root of what is mounted on the directory of that name. It
// must be the mount that was found there before, by At, which does not touch it: if
// there is another one by now, or none, the error is ErrEscapes.
func (d *Dir) OpenMount(name string, expected Mount) (*Dir, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	handle, err := openBeneath(d.file, name, unix.O_PATH|unix.O_DIRECTORY, noLinks)
	if err != nil {
		return nil, err
	}
	found, err := inspect(handle)
	if err == nil && (!found.mountRoot || found.mountID != expected.ID) {
		err = fmt.Errorf("opening %q: %w: another file system is there by now", handle.Name(), ErrEscapes)
	}
	if err != nil {
		release(handle)
		return nil, err
	}
	return &Dir{file: handle}, nil
}

// Names returns the names of the entries of the directory, sorted. If there are
// more than limit, the error is ErrTooMany, and the others are not read.
func (d *Dir) Names(limit int) ([]string, error) {
	file, err := reopen(d.file, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	defer release(file)
	names, err := file.Readdirnames(limit + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("listing %q: %w", d.file.Name(), err)
	}
	if len(names) > limit {
		return nil, fmt.Errorf("listing %q: %w: over %d", d.file.Name(), ErrTooMany, limit)
	}
	slices.Sort(names)
	return names, nil
}

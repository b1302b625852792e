package mount

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

const (
	// removeDepth is how deep a tree is entered, holding a descriptor for each
	// level. What lies deeper is moved to the top first.
	removeDepth = 32
	// removeBatch is how many names are held in memory for each level.
	removeBatch = 256
	// removePasses bounds the race with someone who keeps filling a directory.
	removePasses = 64
)

// RemoveTree deletes a directory and all that is in it. It never deletes across
// a mount: if one is at or below path, the error is ErrBusyMount with its path,
// and nothing was deleted; if one appears meanwhile, it and what it hides stay.
// Nor does it leave the tree by links or renames. A path that does not exist is
// no error; one that is a link is ErrEscapes. If ctx ends first, the rest of the
// tree stays.
func RemoveTree(ctx context.Context, path string) error {
	at, err := locate(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer at.close()
	mounts, err := mountsBelow(at.point)
	if err != nil {
		return err
	}
	if len(mounts) > 0 {
		return fmt.Errorf("removing %q: %w: %q", path, ErrBusyMount, mounts[0].Point)
	}
	top, err := openForRemoval(at.parent, at.base)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer release(top)
	r := remover{ctx: ctx, top: top}
	if err := r.empty(top, 0); err != nil {
		return err
	}
	err = unlink(at.parent, at.base, unix.AT_REMOVEDIR)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return removalError(at.point, err)
	}
	return nil
}

// remover empties a directory.
type remover struct {
	ctx context.Context
	top *os.File
	// moved counts the directories that were too deep.
	moved int
}

// empty deletes what is in dir, in as many passes as it takes: directories that
// were too deep turn up at the top again, and some file systems skip entries
// when others are deleted while they are listed.
func (r *remover) empty(dir *os.File, depth int) error {
	for pass := 0; pass <= removePasses+r.moved; pass++ {
		found, err := r.sweep(dir, depth)
		if err != nil {
			return err
		}
		if found == 0 {
			return nil
		}
	}
	return fmt.Errorf("removing what is in %q: it keeps being filled: %w", dir.Name(), unix.ENOTEMPTY)
}

// sweep deletes every entry that a listing of dir shows, and counts them.
func (r *remover) sweep(dir *os.File, depth int) (int, error) {
	if _, err := dir.Seek(0, io.SeekStart); err != nil {
		return 0, fmt.Errorf("listing %q: %w", dir.Name(), err)
	}
	found := 0
	for {
		if err := r.ctx.Err(); err != nil {
			return found, fmt.Errorf("removing what is in %q: %w", dir.Name(), err)
		}
		names, err := dir.Readdirnames(removeBatch)
		for _, name := range names {
			if err := r.remove(dir, name, depth); err != nil {
				return found, err
			}
		}
		found += len(names)
		if errors.Is(err, io.EOF) {
			return found, nil
		}
		if err != nil {
			return found, fmt.Errorf("listing %q: %w", dir.Name(), err)
		}
	}
}

// remove deletes one entry of dir. An entry that changes while that is done is
// left for the next pass.
func (r *remover) remove(dir *os.File, name string, depth int) error {
	err := unlink(dir, name, 0)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if !errors.Is(err, unix.EISDIR) {
		return removalError(dir.Name()+"/"+name, err)
	}
	if depth >= removeDepth {
		return r.moveToTop(dir, name)
	}
	child, err := openForRemoval(dir, name)
	if changed(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer release(child)
	if err := r.empty(child, depth+1); err != nil {
		return err
	}
	err = unlink(dir, name, unix.AT_REMOVEDIR)
	if err == nil || changed(err) || errors.Is(err, unix.ENOTEMPTY) {
		return nil
	}
	return removalError(child.Name(), err)
}

// moveToTop moves a directory that is too deep into the directory that is being
// removed, where a later pass finds it.
func (r *remover) moveToTop(dir *os.File, name string) error {
	for {
		r.moved++
		to := ".deep-" + strconv.Itoa(r.moved)
		err := unix.Renameat2(int(dir.Fd()), name, int(r.top.Fd()), to, unix.RENAME_NOREPLACE)
		switch {
		case err == nil:
			Traced("renameat2")
			return nil
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case errors.Is(err, fs.ErrExist):
			if err := r.ctx.Err(); err != nil {
				return fmt.Errorf("removing what is in %q: %w", dir.Name(), err)
			}
		default:
			return removalError(dir.Name()+"/"+name, err)
		}
	}
}

// unlink removes one entry of a directory; with unix.AT_REMOVEDIR, an empty
// directory.
func unlink(dir *os.File, name string, flags int) error {
	err := unix.Unlinkat(int(dir.Fd()), name, flags)
	if err == nil {
		Traced("unlinkat")
	}
	return err
}

// openForRemoval opens a directory for listing, unless it is a mount.
func openForRemoval(dir *os.File, name string) (*os.File, error) {
	file, err := openBeneath(dir, name, unix.O_RDONLY|unix.O_DIRECTORY, sameMount)
	if errors.Is(err, unix.EXDEV) {
		return nil, removalError(dir.Name()+"/"+name, unix.EBUSY)
	}
	return file, err
}

// changed reports whether an entry is no longer the directory that it was.
func changed(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP)
}

// removalError tells mounts, which the kernel reports as busy, from the rest.
func removalError(path string, err error) error {
	if errors.Is(err, unix.EBUSY) {
		return fmt.Errorf("removing %q: %w: %w", path, ErrBusyMount, err)
	}
	return fmt.Errorf("removing %q: %w", path, err)
}

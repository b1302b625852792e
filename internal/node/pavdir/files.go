package pavdir

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/albertofaria/pav/internal/mount"
)

// extraName is a directory, in one of those that ReadPodFiles reads, with further files.
const extraName = "extra"

// File is a file that a pod left in a directory of its /pav. The pod chose its name, too.
type File struct {
	// Name is its path below the directory: NAME or extra/NAME.
	Name string

	// Content has all of the file; nil if there is an Err, which says why it cannot be read, as mount.Dir.ReadFile does.
	Content []byte
	Err     error
}

// ReadPodFiles returns the files in a directory of a pod's own directory, and in the directory extra in it, of at most limit bytes
// each. If there are more than most, it reads none. Its errors are ErrLost, mount.ErrTooMany, and those of mount.Dir.OpenDir; for
// /pav/credentials mount.ErrNotMounted, or mount.ErrEscapes, if the mount that the pod has got is not there any more, or something
// is mounted over it. It must be called after the end of the pod's containers, or after PodReady.
func (d *Directories) ReadPodFiles(ctx context.Context, id, directoryName string, most, limit int) ([]File, error) {
	files, err := insidePod(ctx, d, id, func(of directory, pav *mount.Dir) ([]File, error) {
		open := pav.OpenDir
		if directoryName == credentialsName {
			open = func(string) (*mount.Dir, error) { return of.openCredentials(pav) }
		}
		dir, err := open(directoryName)
		if err != nil {
			return nil, err
		}
		defer func() { _ = dir.Close() }()
		return readFiles(dir, most, limit)
	})
	if errors.Is(err, errCovered) {
		return nil, fmt.Errorf("reading %q: %w", directoryName, err)
	}
	return files, err
}

// readFiles is ReadPodFiles for a directory that is open.
func readFiles(dir *mount.Dir, most, limit int) ([]File, error) {
	names, err := dir.Names(most + 1) // extra is no file
	if err != nil {
		return nil, err
	}
	var files []File
	read := func(in *mount.Dir, prefix string, names []string) {
		for _, name := range names {
			content, err := in.ReadFile(name, limit)
			files = append(files, File{Name: prefix + name, Content: content, Err: err})
		}
	}
	at, hasExtra := slices.BinarySearch(names, extraName)
	if !hasExtra {
		if len(names) > most {
			return nil, fmt.Errorf("%w: over %d", mount.ErrTooMany, most)
		}
		read(dir, "", names)
		return files, nil
	}
	names = slices.Delete(names, at, at+1)
	extra, err := dir.OpenDir(extraName)
	if err != nil {
		read(dir, "", names)
		return append(files, File{Name: extraName, Err: err}), nil
	}
	defer func() { _ = extra.Close() }()
	more, err := extra.Names(most - len(names))
	if err != nil {
		return nil, err
	}
	read(dir, "", names)
	read(extra, extraName+"/", more)
	return files, nil
}

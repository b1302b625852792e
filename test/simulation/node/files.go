package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/albertofaria/pav/internal/mount"
	"github.com/albertofaria/pav/internal/node/pavdir"
)

// credentials is the directory of a grant pod that is a file system of its own. What pods mount over it is not simulated.
const credentials = "credentials"

// ReadPodFiles implements collect.Directories.
func (d *Directories) ReadPodFiles(ctx context.Context, id, name string, most, limit int) ([]pavdir.File, error) {
	if err := checkID(id); err != nil {
		return nil, err
	}
	files, err := ask(ctx, d.agent, "ReadPodFiles "+id+" "+name, func() ([]pavdir.File, error) {
		f := d.agent.node.pods[id]
		pav, err := f.open()
		if err != nil {
			return nil, err
		}
		if !pav.mounted {
			return nil, pavdir.ErrLost
		}
		if name == credentials {
			pod, err := decode[pavdir.Pod](f.record, id)
			if err != nil {
				return nil, err
			}
			if pod == nil || !pod.Credentials {
				return nil, fmt.Errorf("opening /pav/%s: %w", name, mount.ErrNotMounted)
			}
			return pav.readAll(name, most, limit)
		}
		switch found, exists := pav.files[name]; {
		case !exists:
			return nil, fmt.Errorf("opening /pav/%s: %w", name, fs.ErrNotExist)
		case !found.directory:
			return nil, fmt.Errorf("opening /pav/%s: %w", name, mount.ErrNotDirectory)
		}
		return pav.readAll(name, most, limit)
	})
	if errors.Is(err, errCovered) {
		return nil, fmt.Errorf("reading %q: %w", name, err)
	}
	return files, err
}

// readAll returns the files in a directory, and in the directory extra in it.
func (p *directory) readAll(name string, most, limit int) ([]pavdir.File, error) {
	var files, extra []pavdir.File
	for _, path := range slices.Sorted(maps.Keys(p.files)) {
		below, is := strings.CutPrefix(path, name+"/")
		further, isExtra := strings.CutPrefix(below, "extra/")
		switch {
		case !is || strings.Contains(further, "/"):
		case isExtra:
			extra = append(extra, p.readOne(path, below, limit))
		case below != "extra":
			files = append(files, p.readOne(path, below, limit))
		case !p.files[path].directory:
			extra = []pavdir.File{{Name: below, Err: fmt.Errorf("opening %q: %w", path, mount.ErrNotDirectory)}}
		}
	}
	if len(files)+len(extra) > most {
		return nil, fmt.Errorf("%w: over %d", mount.ErrTooMany, most)
	}
	return append(files, extra...), nil
}

func (p *directory) readOne(path, name string, limit int) pavdir.File {
	found := p.files[path]
	switch {
	case found.directory:
		return pavdir.File{Name: name, Err: fmt.Errorf("reading %q: %w but a directory", path, mount.ErrNotRegular)}
	case len(found.text) > limit:
		return pavdir.File{Name: name, Err: fmt.Errorf("reading %q: %w: over %d bytes", path, mount.ErrTooLarge, limit)}
	}
	return pavdir.File{Name: name, Content: []byte(found.text)}
}

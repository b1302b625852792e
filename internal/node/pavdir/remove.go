package pavdir

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/albertofaria/pav/internal/mount"
)

// records are what is removed from a directory last, in this order, so that an interrupted removal can be
// told from a new directory.
var records = []string{targetsName, stageRecord, podRecord}

// Remove takes down whatever is still mounted below the stage's directory, and removes the directory, and
// at last what is on record of the stage.
func (d *Directories) Remove(ctx context.Context, stage string) error {
	d.watcher.remove(d.pav(stage))
	return d.host.Do(ctx, func() error { return d.ofStage(stage).remove(ctx) })
}

// Renew is Remove, but for what is on record of the stage and its targets. Then Prepare makes a new directory.
func (d *Directories) Renew(ctx context.Context, stage string) error {
	d.watcher.remove(d.pav(stage))
	return d.host.Do(ctx, func() error { return d.ofStage(stage).empty(ctx) })
}

// Reset is Renew, and then Prepare: the stage's directory is as if it were new.
func (d *Directories) Reset(ctx context.Context, stage string) error {
	d.watcher.remove(d.pav(stage))
	return d.host.Do(ctx, func() error {
		if err := d.ofStage(stage).empty(ctx); err != nil {
			return err
		}
		// Nobody takes away what a call makes that has ended.
		if err := ctx.Err(); err != nil {
			return err
		}
		return d.create(d.ofStage(stage))
	})
}

// remove takes down whatever is mounted below the directory, the directory's own mounts and what pods
// left, and then removes the directory.
func (p directory) remove(ctx context.Context) error {
	if err := p.empty(ctx); err != nil {
		return err
	}
	for _, name := range records {
		if err := discard(ctx, filepath.Join(p.path, name)); err != nil {
			return err
		}
	}
	return mount.RemoveTree(ctx, p.path)
}

// empty takes down whatever is mounted below the directory, and removes all that is in it but the records.
func (p directory) empty(ctx context.Context) error {
	if err := mount.Unmount(ctx, p.path); err != nil {
		return err
	}
	entries, err := os.ReadDir(p.path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("listing the directory of a stage or pod: %w", err)
	}
	for _, entry := range entries {
		if slices.Contains(records, entry.Name()) {
			continue
		}
		if err := discard(ctx, filepath.Join(p.path, entry.Name())); err != nil {
			return err
		}
	}
	return nil
}

// discard removes an entry of a directory, whatever it is, unless something is mounted there.
func discard(ctx context.Context, path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("removing %q: %w", path, err)
	case info.IsDir():
		return mount.RemoveTree(ctx, path)
	default:
		return removeFile(path)
	}
}

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

// records are the files that are removed from a directory last, in this order, so that an interrupted removal differs
// from a new directory.
var records = []string{targetsName, stageRecord, podRecord}

// Remove unmounts everything below the stage's directory, and removes the directory, the records last.
func (d *Directories) Remove(ctx context.Context, stage string) error {
	d.forget(d.ofStage(stage))
	return d.host.Do(ctx, func() error { return d.ofStage(stage).remove(ctx) })
}

// Renew is Remove, but keeps the records of the stage and its targets. Prepare creates a new directory then.
func (d *Directories) Renew(ctx context.Context, stage string) error {
	d.forget(d.ofStage(stage))
	return d.host.Do(ctx, func() error { return d.ofStage(stage).empty(ctx) })
}

// Reset is Renew, then Prepare: the stage's directory is as new.
func (d *Directories) Reset(ctx context.Context, stage string) error {
	d.forget(d.ofStage(stage))
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

// remove unmounts everything below the directory, its own mounts and those of pods, then removes the directory.
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

// empty unmounts everything below the directory, and removes its content except the records.
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

// discard removes an entry of a directory, of any type, unless something is mounted there.
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

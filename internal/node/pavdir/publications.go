package pavdir

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/albertofaria/pav/internal/mount"
)

// Publication is a target at which a client has the volume of a stage. Each is recorded in a separate file, so that
// concurrent calls for different targets do not conflict.
type Publication struct {
	Target  string            `json:"target"`
	Options mount.BindOptions `json:"options"`

	// Single says that the volume may have only this target.
	Single bool   `json:"single,omitempty"`
	Client Client `json:"client"`

	// Boot is the start of the node in which it was published. After a restart, nothing is mounted there.
	Boot
}

func (d *Directories) targets(stage string) string {
	return filepath.Join(d.stagePath(stage), targetsName)
}

// publication returns the name of a target's file.
func publication(target string) string {
	sum := sha256.Sum256([]byte(target))
	return hex.EncodeToString(sum[:]) + ".json"
}

// RecordPublication writes the record of a target, and replaces an earlier one. It must be called after Record, and
// before anything is mounted at the target. The record is lost when the machine stops, as the mounts are.
func (d *Directories) RecordPublication(ctx context.Context, stage string, p Publication) error {
	raw, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("encoding the record of target %q: %w", p.Target, err)
	}
	return d.host.Do(ctx, func() error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := mount.CreateDir(d.stagePath(stage), targetsName, 0o750); err != nil {
			return err
		}
		unsynced := func(*os.File) error { return nil }
		if err := replaceFile(filepath.Join(d.targets(stage), publication(p.Target)), raw, unsynced); err != nil {
			return fmt.Errorf("writing the record of target %q: %w", p.Target, err)
		}
		return nil
	})
}

// ForgetPublication removes the record of a target. It must be called when nothing is mounted there any more. It is
// not an error if the target is not recorded.
func (d *Directories) ForgetPublication(ctx context.Context, stage, target string) error {
	return d.host.Do(ctx, func() error {
		if err := removeFile(filepath.Join(d.targets(stage), publication(target))); err != nil {
			return fmt.Errorf("removing the record of target %q: %w", target, err)
		}
		return nil
	})
}

// Publications returns the recorded targets, sorted, including those of earlier boots.
func (d *Directories) Publications(ctx context.Context, stage string) ([]Publication, error) {
	return mount.In(ctx, d.host, func() ([]Publication, error) {
		entries, err := os.ReadDir(d.targets(stage))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("listing the targets of stage %q: %w", stage, err)
		}
		var all []Publication
		for _, entry := range entries {
			if strings.HasPrefix(entry.Name(), ".") {
				continue
			}
			p, err := readPublication(filepath.Join(d.targets(stage), entry.Name()))
			if err != nil {
				return nil, err
			}
			if p != nil {
				all = append(all, *p)
			}
		}
		slices.SortFunc(all, func(a, b Publication) int { return cmp.Compare(a.Target, b.Target) })
		return all, nil
	})
}

// readPublication returns nil if the record was removed meanwhile, or if the file is torn: files are replaced
// atomically, so only a stop of the machine can tear one, and the mount is gone as well then.
func readPublication(path string) (*Publication, error) {
	p, err := readRecord[Publication](path)
	if errors.Is(err, ErrTorn) {
		return nil, nil
	}
	return p, err
}

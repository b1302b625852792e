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

// Publication is a target where a client has the volume of a stage. Each has a file of its own, so that
// concurrent calls for different targets do not meet.
type Publication struct {
	Target  string            `json:"target"`
	Options mount.BindOptions `json:"options"`

	// Single says that the volume may have this one target only.
	Single bool   `json:"single,omitempty"`
	Client Client `json:"client"`

	// Boot is the start of the node in which it was published: in another one, nothing is mounted there.
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

// RecordPublication puts a target on record, in place of what was on record of it. It must be called
// before anything is mounted there, and after Record. It is lost when the machine stops, as the mounts are.
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

// ForgetPublication takes a target off the record. It must be called after nothing is mounted there any
// more. A target that is not on record is no error.
func (d *Directories) ForgetPublication(ctx context.Context, stage, target string) error {
	return d.host.Do(ctx, func() error {
		if err := removeFile(filepath.Join(d.targets(stage), publication(target))); err != nil {
			return fmt.Errorf("removing the record of target %q: %w", target, err)
		}
		return nil
	})
}

// Publications returns the targets on record, sorted, those of earlier boots among them.
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

// readPublication returns nil where the target was forgotten meanwhile, and where the file is torn: as it
// is put in place whole, only a stop of the machine tears it, and with that the mount has gone.
func readPublication(path string) (*Publication, error) {
	p, err := readRecord[Publication](path)
	if errors.Is(err, ErrTorn) {
		return nil, nil
	}
	return p, err
}

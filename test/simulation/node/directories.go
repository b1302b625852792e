package node

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"

	"github.com/albertofaria/pav/internal/mount"
	"github.com/albertofaria/pav/internal/node/collect"
	"github.com/albertofaria/pav/internal/node/csi"
	"github.com/albertofaria/pav/internal/node/flush"
	"github.com/albertofaria/pav/internal/node/pavdir"
	"github.com/albertofaria/pav/internal/node/stage"
)

// Directories gives an agent access to the /pav directories and the records of a node.
type Directories struct {
	agent *Agent
}

var (
	_ stage.Directories   = (*Directories)(nil)
	_ collect.Directories = (*Directories)(nil)
	_ csi.Directories     = (*Directories)(nil)
	_ flush.Syncer        = (*Directories)(nil)
)

// makeDirectory returns the directory of a stage or a pod. It creates the directory if it does not exist.
func makeDirectory(all map[string]*stageDirectory, id string) *stageDirectory {
	if all[id] == nil {
		all[id] = &stageDirectory{}
	}
	return all[id]
}

// create creates the /pav of a directory and mounts it. It does nothing if /pav is already mounted.
func (f *stageDirectory) create() {
	if f.pav == nil {
		f.pav = newDirectory()
	}
	f.pav.mounted = true
}

// empty removes the content of a stage's directory, except for the records.
func (n *Node) empty(stage string) {
	f := n.stages[stage]
	if f == nil {
		return
	}
	n.detach(stage)
	delete(n.places, n.volumeOf(stage))
	f.discard()
}

func (f *stageDirectory) discard() {
	f.unmount()
	if f.pav != nil {
		f.pav.removed = true
	}
	f.pav, f.given = nil, false
}

// Exists implements stage.Directories.
func (d *Directories) Exists(ctx context.Context, stage string) (bool, error) {
	return ask(ctx, d.agent, "Exists "+stage, func() (bool, error) { return d.agent.node.stages[stage] != nil, nil })
}

// Stages implements stage.Directories.
func (d *Directories) Stages(ctx context.Context) ([]string, error) {
	return ask(ctx, d.agent, "Stages", func() ([]string, error) { return slices.Sorted(maps.Keys(d.agent.node.stages)), nil })
}

// Prepare implements stage.Directories.
func (d *Directories) Prepare(ctx context.Context, stage string) error {
	return d.agent.do(ctx, "Prepare "+stage, d.prepare(stage))
}

func (d *Directories) prepare(stage string) func() error {
	return func() error {
		makeDirectory(d.agent.node.stages, stage).create()
		return nil
	}
}

// emptying returns a step that ends the watch of a stage's /pav and empties the stage's directory.
func (d *Directories) emptying(stage string) func() error {
	return func() error {
		delete(d.agent.watched, stage)
		d.agent.node.empty(stage)
		return nil
	}
}

// Sync implements flush.Syncer. There is no data in memory that it could write to the storage.
func (d *Directories) Sync(ctx context.Context, stage string) error {
	return d.agent.do(ctx, "Sync "+stage, func() error {
		at := d.agent.node.volumeOf(stage)
		switch {
		case !d.agent.node.isMounted(at):
			return fmt.Errorf("synchronizing the volume of stage %q: %w", stage, mount.ErrNotMounted)
		case d.agent.node.places[at].seen().content.health != Answers:
			return fmt.Errorf("synchronizing the volume of stage %q: %w", stage, unix.ENOTCONN)
		}
		return nil
	})
}

// Renew implements stage.Directories.
func (d *Directories) Renew(ctx context.Context, stage string) error {
	return d.agent.do(ctx, "Renew "+stage, d.emptying(stage))
}

// Reset implements stage.Directories.
func (d *Directories) Reset(ctx context.Context, stage string) error {
	return d.agent.do(ctx, "Reset "+stage, d.emptying(stage), d.prepare(stage))
}

// Remove implements stage.Directories.
func (d *Directories) Remove(ctx context.Context, stage string) error {
	stages := d.agent.node.stages
	return d.agent.do(ctx, "Remove "+stage, d.emptying(stage),
		func() error {
			if f := stages[stage]; f != nil {
				f.targets = nil
			}
			return nil
		},
		func() error {
			if f := stages[stage]; f != nil {
				f.record = nil
			}
			return nil
		},
		func() error {
			delete(stages, stage)
			return nil
		})
}

// Record implements stage.Directories.
func (d *Directories) Record(ctx context.Context, stage string, s pavdir.Stage) error {
	raw, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("encoding the record of stage %q: %w", stage, err)
	}
	return d.agent.do(ctx, "Record "+stage,
		func() error {
			makeDirectory(d.agent.node.stages, stage)
			return nil
		},
		func() error {
			makeDirectory(d.agent.node.stages, stage).record = raw
			return nil
		})
}

// Recorded implements stage.Directories.
func (d *Directories) Recorded(ctx context.Context, stage string) (*pavdir.Stage, error) {
	return ask(ctx, d.agent, "Recorded "+stage, func() (*pavdir.Stage, error) {
		f := d.agent.node.stages[stage]
		if f == nil {
			return nil, nil
		}
		return decode[pavdir.Stage](f.record, filepath.Join(d.agent.node.directoryOf(stage), "stage.json"))
	})
}

// decode decodes a record. It returns nil if raw is nil.
func decode[T any](raw []byte, path string) (*T, error) {
	if raw == nil {
		return nil, nil
	}
	record := new(T)
	if err := json.Unmarshal(raw, record); err != nil {
		return nil, fmt.Errorf("decoding %q: %w: %w", path, pavdir.ErrTorn, err)
	}
	return record, nil
}

// RecordPublication implements stage.Directories.
func (d *Directories) RecordPublication(ctx context.Context, stage string, p pavdir.Publication) error {
	raw, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("encoding the record of target %q: %w", p.Target, err)
	}
	return d.agent.do(ctx, "RecordPublication "+stage+" "+p.Target, func() error {
		f := d.agent.node.stages[stage]
		if f == nil {
			return fmt.Errorf("creating directory %q: %w", d.agent.node.directoryOf(stage), fs.ErrNotExist)
		}
		if f.targets == nil {
			f.targets = map[string][]byte{}
		}
		f.targets[p.Target] = raw
		return nil
	})
}

// ForgetPublication implements stage.Directories.
func (d *Directories) ForgetPublication(ctx context.Context, stage, target string) error {
	return d.agent.do(ctx, "ForgetPublication "+stage+" "+target, func() error {
		if f := d.agent.node.stages[stage]; f != nil {
			delete(f.targets, target)
		}
		return nil
	})
}

// Publications implements stage.Directories.
func (d *Directories) Publications(ctx context.Context, stage string) ([]pavdir.Publication, error) {
	return ask(ctx, d.agent, "Publications "+stage, func() ([]pavdir.Publication, error) {
		f := d.agent.node.stages[stage]
		if f == nil {
			return nil, nil
		}
		var all []pavdir.Publication
		for _, raw := range f.targets {
			p, err := decode[pavdir.Publication](raw, stage)
			if err != nil {
				return nil, err
			}
			all = append(all, *p)
		}
		slices.SortFunc(all, func(a, b pavdir.Publication) int { return cmp.Compare(a.Target, b.Target) })
		return all, nil
	})
}

// KubeletHas implements stage.Directories.
func (d *Directories) KubeletHas(ctx context.Context, volumeName string) ([]string, error) {
	if !isName(volumeName) {
		return nil, fmt.Errorf("looking for the pods of a volume: %q is not the name of a volume", volumeName)
	}
	return ask(ctx, d.agent, "KubeletHas "+volumeName, func() ([]string, error) {
		return slices.Sorted(maps.Keys(d.agent.node.keeps[volumeName])), nil
	})
}

// Runs implements stage.Directories.
func (d *Directories) Runs(ctx context.Context, uid types.UID) (bool, error) {
	if !isName(string(uid)) {
		return false, fmt.Errorf("looking for the containers of a pod: %q is no UID", uid)
	}
	return ask(ctx, d.agent, "Runs "+string(uid), func() (bool, error) { return d.agent.node.runs[uid], nil })
}

// isName reports whether a text is a valid file name.
func isName(text string) bool {
	return text != "." && text == filepath.Base(text) && filepath.IsLocal(text)
}

// errCovered means that a mount over /pav hides it.
var errCovered = fmt.Errorf("%w: something is mounted over /pav", mount.ErrEscapes)

// open returns the /pav of a directory. It returns an error if the directory is nil, if it has no /pav, or if something
// is mounted over /pav.
func (f *stageDirectory) open() (*directory, error) {
	if f == nil || f.pav == nil {
		return nil, fmt.Errorf("opening /pav: %w", fs.ErrNotExist)
	}
	if f.pav.covers > 0 {
		return nil, errCovered
	}
	return f.pav, nil
}

// read returns the text of a file. It returns an error if the file is larger than limit bytes.
func (p *directory) read(name string, limit int) (string, error) {
	found, exists := p.files[name]
	switch {
	case !exists:
		return "", fmt.Errorf("reading %q: %w", name, fs.ErrNotExist)
	case found.directory:
		return "", fmt.Errorf("reading %q: %w but a directory", name, mount.ErrNotRegular)
	case len(found.text) > limit:
		return "", fmt.Errorf("reading %q: %w: over %d bytes", name, mount.ErrTooLarge, limit)
	}
	if err := mount.CheckText([]byte(found.text)); err != nil {
		return "", fmt.Errorf("reading %q: %w", name, err)
	}
	return found.text, nil
}

// Given implements stage.Directories.
func (d *Directories) Given(ctx context.Context, stage string) (bool, error) {
	return ask(ctx, d.agent, "Given "+stage, func() (bool, error) {
		f := d.agent.node.stages[stage]
		return f != nil && f.given, nil
	})
}

// Ready implements stage.Directories.
func (d *Directories) Ready(ctx context.Context, stage string) (bool, error) {
	return ask(ctx, d.agent, "Ready "+stage, func() (bool, error) {
		pav, err := d.agent.node.stages[stage].open()
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		// An existing watch stays on its /pav, even if someone other than the agent has removed that /pav.
		if d.agent.watched[stage] == nil {
			d.agent.watched[stage] = pav
		}
		_, ready := pav.files["ready"]
		return ready, nil
	})
}

// PodError implements stage.Directories.
func (d *Directories) PodError(ctx context.Context, stage string, began time.Time) string {
	text, _ := d.podText(ctx, "PodError "+stage, stage, "error", began)
	return text
}

// Infeasible implements stage.Directories.
func (d *Directories) Infeasible(ctx context.Context, stage string, began time.Time) (text string, found bool) {
	return d.podText(ctx, "Infeasible "+stage, stage, "infeasible", began)
}

func (d *Directories) podText(ctx context.Context, call, stage, name string, began time.Time) (text string, found bool) {
	const limit = 4 << 10
	text, err := ask(ctx, d.agent, call, func() (string, error) {
		pav, err := d.agent.node.stages[stage].open()
		if err != nil {
			return "", err
		}
		if file, exists := pav.files[name]; exists && file.written.Before(began) {
			return "", fs.ErrNotExist
		}
		return pav.read(name, limit)
	})
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", false
	case err != nil:
		return "(/pav/" + name + " cannot be read: " + err.Error() + ")", true
	default:
		return strings.TrimSpace(text), true
	}
}

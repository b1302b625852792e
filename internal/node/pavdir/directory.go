package pavdir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/albertofaria/pav/internal/mount"
)

// directory is one /pav of a node, that of a stage or of a single pod: a directory that no pod sees, with the
// directory that pods see as /pav. Its methods act in the mount namespace of their thread.
type directory struct {
	path string

	// secret says that pods see /pav/credentials.
	secret bool
}

func (p directory) pav() string { return filepath.Join(p.path, "pav") }

// credentials is where a grant pod leaves credentials.
func (p directory) credentials() string { return filepath.Join(p.pav(), credentialsName) }

// client is where the volume of a stage is attached for clients.
func (p directory) client() string { return filepath.Join(p.path, clientName) }

func (p directory) exists() (bool, error) { return exists(p.path) }

// exists reports whether a path exists, even as a dangling symbolic link.
func exists(path string) (bool, error) {
	err := unix.Faccessat(unix.AT_FDCWD, path, unix.F_OK, unix.AT_SYMLINK_NOFOLLOW)
	if errors.Is(err, unix.ENOENT) {
		return false, nil
	}
	return err == nil, err
}

// create creates a directory, and a mount of it, if they do not exist.
func (d *Directories) create(of directory) error {
	// A workflow pod may run as any user; the directory above, which belongs to root, protects it from other processes.
	if err := d.makeDir(of.pav(), 0o777); err != nil {
		return err
	}
	makeMount := mount.SelfBind
	if filepath.Dir(of.path) == d.pods() {
		pav := ownPav
		pav.NoSwap = of.secret // /pav/error may have credentials until it is read
		makeMount = pav.Mount
	}
	if err := makeMount(of.pav()); err != nil {
		return err
	}
	d.known.Note(of.pav())
	if of.secret {
		return of.createCredentials()
	}
	return nil
}

// forget forgets the mounts of a directory that is to be removed, and ends its watch.
func (d *Directories) forget(of directory) {
	d.watcher.remove(of.pav())
	d.known.Forget(of.pav())
	d.known.Forget(of.client())
}

// ownPav is the /pav of a pod that has its own: it holds a few small files, and must not fill the node's disk.
var ownPav = mount.Tmpfs{Size: 1 << 20, Inodes: 1024, Mode: 0o777}

// makeDir creates a directory of PaV, and its private parent directories.
func (d *Directories) makeDir(path string, mode fs.FileMode) error {
	plugins := filepath.Join(d.kubelet, "plugins")
	name, err := filepath.Rel(plugins, path)
	if err != nil {
		return fmt.Errorf("naming the directory %q: %w", path, err)
	}
	return mount.CreateDir(plugins, name, mode)
}

// errCovered means that something is mounted over /pav.
var errCovered = fmt.Errorf("%w: something is mounted over /pav", mount.ErrEscapes)

// inside runs a function on a directory, held by descriptor, in the host's mount namespace.
func inside[T any](ctx context.Context, d *Directories, of directory, f func(*mount.Dir) (T, error)) (T, error) {
	return mount.In(ctx, d.host, func() (T, error) { return opened(d, of, f) })
}

// opened is inside, on a thread that is already in the host's mount namespace.
func opened[T any](d *Directories, of directory, f func(*mount.Dir) (T, error)) (T, error) {
	var none T
	// If a pod mounted something over its /pav, that is not opened, as it may never answer.
	mounts, err := d.known.At(of.pav())
	if err != nil {
		return none, err
	}
	if len(mounts) > 1 {
		return none, errCovered
	}
	dir, err := mount.OpenDir(of.pav())
	if err != nil {
		return none, err
	}
	defer func() { _ = dir.Close() }()
	d.known.Note(of.pav()) // An earlier agent may have mounted it.
	return f(dir)
}

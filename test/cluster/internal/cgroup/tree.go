package cgroup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/albertofaria/pav/test/cluster/internal/process"
)

// parent is the directory of all clusters in each hierarchy.
const parent = "pav-cluster"

// leaf is the directory of a node's own processes in the unified hierarchy. There, a directory can either contain
// processes or delegate its controllers to the directories below it, but not both.
const leaf = "init"

// Path returns the path of a node's directory, relative to a hierarchy's root. With an empty node, it returns that of
// the cluster's directory.
func Path(cluster, node string) string { return filepath.Join(parent, cluster, node) }

// Join creates a node's directories and moves the calling process into them.
func Join(hierarchies []Hierarchy, path string) error {
	for _, hierarchy := range hierarchies {
		directory := filepath.Join(hierarchy.Mountpoint, path)
		if err := makeDirectories(directory); err != nil {
			return fmt.Errorf("making a cgroup: %w", err)
		}
		if err := prepare(hierarchy, path); err != nil {
			return err
		}
		if err := write(filepath.Join(directory, "cgroup.procs"), "0"); err != nil {
			return err
		}
	}
	return nil
}

// makeDirectories creates a directory and those above it. The end of another cluster removes the parent directory of all clusters
// while it is empty, which can be just before the directory is made in it.
func makeDirectories(directory string) error {
	const attempts = 100
	var err error
	for range attempts {
		err = os.MkdirAll(directory, 0o755)
		if !errors.Is(err, os.ErrNotExist) && !errors.Is(err, os.ErrExist) {
			return err
		}
	}
	return err
}

// Settle prepares a node's directory of the unified hierarchy for kubelet. It is called inside the node. It moves the
// node's first process one level down and delegates the controllers.
func Settle(hierarchies []Hierarchy) error {
	for _, hierarchy := range hierarchies {
		if !hierarchy.Unified {
			continue
		}
		directory := filepath.Join(hierarchy.Mountpoint, leaf)
		if err := os.MkdirAll(directory, 0o755); err != nil {
			return fmt.Errorf("making a cgroup: %w", err)
		}
		if err := write(filepath.Join(directory, "cgroup.procs"), "0"); err != nil {
			return err
		}
		if err := delegate(hierarchy.Mountpoint); err != nil {
			return err
		}
	}
	return nil
}

// prepare makes a new directory usable. In version 2, each directory above must delegate its controllers. In version 1,
// cpuset starts without any processor.
func prepare(hierarchy Hierarchy, path string) error {
	directory := hierarchy.Mountpoint
	for part := range strings.SplitSeq(path, "/") {
		above := directory
		directory = filepath.Join(directory, part)
		if hierarchy.Unified {
			if err := delegate(above); err != nil {
				return err
			}
			continue
		}
		for _, name := range []string{"cpuset.cpus", "cpuset.mems"} {
			if err := inherit(above, directory, name); err != nil {
				return err
			}
		}
	}
	return nil
}

func delegate(directory string) error {
	controllers, err := os.ReadFile(filepath.Join(directory, "cgroup.controllers"))
	if err != nil {
		return fmt.Errorf("reading a cgroup's controllers: %w", err)
	}
	for controller := range strings.FieldsSeq(string(controllers)) {
		if err := write(filepath.Join(directory, "cgroup.subtree_control"), "+"+controller); err != nil {
			return err
		}
	}
	return nil
}

func inherit(from, to, name string) error {
	current, err := os.ReadFile(filepath.Join(to, name))
	if errors.Is(err, os.ErrNotExist) || err == nil && len(strings.TrimSpace(string(current))) > 0 {
		return nil
	}
	value, err := os.ReadFile(filepath.Join(from, name))
	if err != nil {
		return fmt.Errorf("reading a cgroup's %s: %w", name, err)
	}
	return write(filepath.Join(to, name), strings.TrimSpace(string(value)))
}

func write(path, value string) error {
	if err := os.WriteFile(path, []byte(value), 0); err != nil {
		return fmt.Errorf("writing %q to a cgroup: %w", value, err)
	}
	return nil
}

// Remove kills the processes in a directory and in the directories below it, in all hierarchies, and removes these
// directories. If path is that of a cluster, Remove also removes the common parent directory of all clusters if it is
// empty.
func Remove(ctx context.Context, path string) error {
	hierarchies, err := Hierarchies()
	if err != nil {
		return err
	}
	for _, hierarchy := range hierarchies {
		directory := filepath.Join(hierarchy.Mountpoint, path)
		// The kernel releases the cgroup of an ended process a little after the process has ended.
		err := process.Until(ctx, 20*time.Millisecond, func() (bool, error) { return removeOnce(directory) })
		if err != nil {
			return fmt.Errorf("removing the cgroup %q: %w", directory, err)
		}
		if filepath.Dir(path) == parent {
			// The error is ignored, because another cluster may use the directory or be about to use it.
			_ = os.Remove(filepath.Join(hierarchy.Mountpoint, parent))
		}
	}
	return nil
}

func removeOnce(directory string) (bool, error) {
	var directories []string
	err := filepath.WalkDir(directory, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ENODEV) {
			return nil
		}
		if err == nil && entry.IsDir() {
			directories = append(directories, path)
		}
		return err
	})
	if err != nil {
		return false, fmt.Errorf("listing cgroups: %w", err)
	}
	done := true
	for _, directory := range slices.Backward(directories) {
		if err := killAll(directory); err != nil {
			return false, err
		}
		err := os.Remove(directory)
		if errors.Is(err, unix.EBUSY) || errors.Is(err, unix.ENOTEMPTY) {
			done = false
			continue
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return false, fmt.Errorf("removing a cgroup: %w", err)
		}
	}
	return done, nil
}

// killAll kills the processes of one directory. Only processes of a node can be in it.
func killAll(directory string) error {
	content, err := os.ReadFile(filepath.Join(directory, "cgroup.procs"))
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ENODEV) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("listing a cgroup's processes: %w", err)
	}
	for field := range strings.FieldsSeq(string(content)) {
		pid, err := strconv.Atoi(field)
		if err != nil {
			return fmt.Errorf("listing a cgroup's processes: %w", err)
		}
		if err := unix.Kill(pid, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("ending process %d: %w", pid, err)
		}
	}
	return nil
}

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

// leaf holds a node's own processes in the unified hierarchy, where a directory may either have
// processes or hand its controllers on to directories below it.
const leaf = "init"

// Path is a node's directory (or, without a node, a cluster's), relative to a hierarchy's root.
func Path(cluster, node string) string { return filepath.Join(parent, cluster, node) }

// Join moves the calling process into a node's directories, which it makes.
func Join(hierarchies []Hierarchy, path string) error {
	for _, hierarchy := range hierarchies {
		directory := filepath.Join(hierarchy.Mountpoint, path)
		if err := os.MkdirAll(directory, 0o755); err != nil {
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

// Settle frees a node's directory of the unified hierarchy for kubelet, from within the node: its
// first process moves one level down, and the controllers are handed on.
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

// prepare lets a new directory be used: version 2 wants controllers handed on from above, and
// cpuset of version 1 starts without any processor.
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

// Remove ends what still runs in a directory and below it, in all hierarchies, and removes them.
// With the path of a cluster it also removes the directory of all clusters once that is empty.
func Remove(ctx context.Context, path string) error {
	hierarchies, err := Hierarchies()
	if err != nil {
		return err
	}
	for _, hierarchy := range hierarchies {
		directory := filepath.Join(hierarchy.Mountpoint, path)
		// The kernel lets go of an ended process's cgroup a little after the process.
		err := process.Until(ctx, 20*time.Millisecond, func() (bool, error) { return removeOnce(directory) })
		if err != nil {
			return fmt.Errorf("removing the cgroup %q: %w", directory, err)
		}
		if filepath.Dir(path) == parent {
			// Another cluster may use it or be about to.
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

// killAll ends the processes of one directory. Only a node's processes can be in it.
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

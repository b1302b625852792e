package machine

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/albertofaria/pav/test/cluster/internal/cgroup"
)

// own are the directories of which each node has its own, and their permissions. Kubernetes and the container runtime
// keep their state in some of them. Host paths of pods are likely to use the others.
var own = []struct {
	path string
	mode os.FileMode
}{
	{"/var/lib", 0o755},
	{"/var/log", 0o755},
	{"/var/tmp", 0o777 | os.ModeSticky},
	{"/tmp", 0o777 | os.ModeSticky},
	{"/mnt", 0o755},
	{"/media", 0o755},
	{"/srv", 0o755},
}

// Directories returns the directories of which each node has its own, on its disk.
func Directories() []string {
	paths := make([]string, len(own))
	for i, directory := range own {
		paths[i] = directory.path
	}
	return paths
}

// SharedDirectory is the path at which a node sees the directory that all nodes share.
const SharedDirectory = "/var/lib/shared"

// mountAll changes the mounts of a new namespace, which are at first copies of the machine's mounts, into the mounts of
// a node.
func mountAll(spec Spec) error {
	steps := []func(Spec) error{
		// This comes first, so that the following mounts do not propagate to the machine.
		func(Spec) error { return mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "") },
		mountDirectories, mountShared, mountProcesses, mountSystem, mountFiles,
		// As on a real node, mounts that containers create can propagate to the node.
		func(Spec) error { return mount("", "/", "", unix.MS_REC|unix.MS_SHARED, "") },
	}
	for _, step := range steps {
		if err := step(spec); err != nil {
			return err
		}
	}
	return nil
}

func mountDirectories(spec Spec) error {
	// The copies of the mounts are created before other mounts hide them.
	kept := make([]int, len(spec.Keep))
	for i, path := range spec.Keep {
		tree, err := unix.OpenTree(unix.AT_FDCWD, path, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
		if err != nil {
			return fmt.Errorf("copying the mount of %q: %w", path, err)
		}
		defer func() { _ = unix.Close(tree) }()
		kept[i] = tree
	}
	if err := mountOwn(spec.Disk); err != nil {
		return err
	}
	for i, path := range spec.Keep {
		if !hidden(path) {
			continue
		}
		if err := os.MkdirAll(path, 0o755); err != nil {
			return fmt.Errorf("making %q visible: %w", path, err)
		}
		if err := unix.MoveMount(kept[i], "", unix.AT_FDCWD, path, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
			return fmt.Errorf("making %q visible: %w", path, err)
		}
	}
	if err := mount("tmpfs", "/dev/shm", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=1777"); err != nil {
		return err
	}
	// As on a real node, /run is empty after each start.
	return mount("tmpfs", "/run", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755")
}

// mountOwn mounts the node's own directories, which are on its disk, over the directories of the machine.
func mountOwn(disk string) error {
	for _, directory := range own {
		if info, err := os.Lstat(directory.path); err != nil || !info.IsDir() {
			continue
		}
		source := filepath.Join(disk, strings.ReplaceAll(directory.path[1:], "/", "-"))
		if err := makeDirectory(source, directory.mode); err != nil {
			return err
		}
		if err := mount(source, directory.path, "", unix.MS_BIND, ""); err != nil {
			return err
		}
	}
	return nil
}

// mountShared mounts the shared directory. It runs after mountDirectories, which could otherwise hide the mount or its
// source.
func mountShared(spec Spec) error {
	if err := makeDirectory(SharedDirectory, 0o755); err != nil {
		return err
	}
	return mount(spec.Shared, SharedDirectory, "", unix.MS_BIND, "")
}

// hidden reports whether a path is in a directory of which the node has its own.
func hidden(path string) bool {
	for _, directory := range own {
		if strings.HasPrefix(path, directory.path+"/") {
			return true
		}
	}
	return strings.HasPrefix(path, "/run/")
}

func makeDirectory(path string, mode os.FileMode) error {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return fmt.Errorf("making a directory of the node: %w", err)
	}
	// The permissions set by MkdirAll depend on the caller's umask.
	if err := os.Chmod(path, mode); err != nil {
		return fmt.Errorf("making a directory of the node: %w", err)
	}
	return nil
}

// pristine is the path of a second /proc, on which nothing is mounted. The kernel lets a user namespace mount /proc
// only if a /proc is visible that has no mounts on it. The node's ordinary /proc has mounts on it.
const pristine = "/run/pav-cluster/proc"

func mountProcesses(Spec) error {
	if err := os.MkdirAll(pristine, 0o700); err != nil {
		return fmt.Errorf("making a mount point: %w", err)
	}
	for _, path := range []string{"/proc", pristine} {
		if err := mount("proc", path, "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
			return err
		}
	}
	return nil
}

// mountSystem mounts a /sys with the node's network devices. Of each cgroup hierarchy, it mounts the node's part as if
// that were the whole hierarchy.
func mountSystem(spec Spec) error {
	if err := unix.Unmount("/sys", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("unmounting /sys: %w", err)
	}
	flags := uintptr(unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC)
	if err := mount("sysfs", "/sys", "sysfs", flags, ""); err != nil {
		return err
	}
	if len(spec.Hierarchies) != 1 || spec.Hierarchies[0].Mountpoint != cgroup.Root {
		if err := mount("tmpfs", cgroup.Root, "tmpfs", flags, "mode=755"); err != nil {
			return err
		}
	}
	for _, hierarchy := range spec.Hierarchies {
		if err := os.MkdirAll(hierarchy.Mountpoint, 0o755); err != nil {
			return fmt.Errorf("making a mount point: %w", err)
		}
		kind := "cgroup"
		if hierarchy.Unified {
			kind = "cgroup2"
		}
		if err := mount(kind, hierarchy.Mountpoint, kind, flags, hierarchy.Options); err != nil {
			return err
		}
	}
	return cgroup.Settle(spec.Hierarchies)
}

func mountFiles(spec Spec) error {
	for path, source := range spec.Files {
		if _, err := os.Stat(path); err != nil {
			continue // the machine has no such file, so no program reads it
		}
		if err := mount(source, path, "", unix.MS_BIND, ""); err != nil {
			return err
		}
	}
	return nil
}

func mount(source, target, kind string, flags uintptr, options string) error {
	if err := unix.Mount(source, target, kind, flags, options); err != nil {
		return fmt.Errorf("mounting %s: %w", target, err)
	}
	return nil
}

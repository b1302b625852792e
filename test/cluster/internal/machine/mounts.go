package machine

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/albertofaria/pav/test/cluster/internal/cgroup"
)

// own are the directories that each node has its own of, with their permissions: those that Kubernetes
// and the container runtime keep state in, and those that host paths of pods are likely to use.
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

// Directories returns the directories that each node has its own of on its disk.
func Directories() []string {
	paths := make([]string, len(own))
	for i, directory := range own {
		paths[i] = directory.path
	}
	return paths
}

// SharedDirectory is where a node sees the directory that it shares with the other nodes.
const SharedDirectory = "/var/lib/shared"

// mountAll turns the copy of the machine's mounts that a new namespace starts with into the node's.
func mountAll(spec Spec) error {
	steps := []func(Spec) error{
		// First, so that nothing of what follows reaches the machine.
		func(Spec) error { return mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "") },
		mountDirectories, mountShared, mountProcesses, mountSystem, mountFiles,
		// As on a real node, so that mounts which containers make get to the node.
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
	// Copies of the mounts are taken before anything hides them.
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
	// Like on a real node, this one is empty after each start.
	return mount("tmpfs", "/run", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755")
}

// mountOwn mounts the node's own directories, which are on its disk, over the machine's.
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

// mountShared comes after all that could hide the shared directory's own path.
func mountShared(spec Spec) error {
	if err := makeDirectory(SharedDirectory, 0o755); err != nil {
		return err
	}
	return mount(spec.Shared, SharedDirectory, "", unix.MS_BIND, "")
}

// hidden reports whether a path lies in a directory that the node has its own of.
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
	// The permissions that MkdirAll gives depend on the caller's umask.
	if err := os.Chmod(path, mode); err != nil {
		return fmt.Errorf("making a directory of the node: %w", err)
	}
	return nil
}

// pristine is a further /proc, on which nothing is mounted: the kernel lets a user namespace mount
// /proc only if one is visible that hides nothing, and the node's ordinary one does.
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

// mountSystem mounts a /sys that shows the node's network devices, and the node's part of each
// cgroup hierarchy as if it were the whole.
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
			continue // this machine has no such file, so nothing reads it
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

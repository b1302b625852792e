package mount

import (
	"errors"
	"io/fs"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// container simulates a container that kubelet starts with HostToContainer propagation. It returns the mount namespace
// of the container, and the path of the target in it.
func container(t *testing.T, dir, target string) (*Namespace, string) {
	t.Helper()
	return containerAt(t, dir, target, "data")
}

func containerAt(t *testing.T, dir, target, name string) (*Namespace, string) {
	t.Helper()
	data := makeDir(t, dir, name)
	namespace := newNamespace(t, dir, unix.MS_SLAVE)
	in(t, namespace, func() error { return unix.Mount(target, data, "", unix.MS_BIND|unix.MS_REC, "") })
	return namespace, data
}

// A volume dies twice and is replaced, while a container keeps running.
func TestCoverReachesRunningContainers(t *testing.T) {
	for name, options := range map[string]BindOptions{
		"writable":  {NoSuid: true},
		"read-only": {ReadOnly: true, NoDev: true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := workDir(t)
			source, target := makeDir(t, dir, "source"), makeDir(t, dir, "target")
			first := serveFUSE(t, source)
			must(t, Cover(source, target, options))
			running, data := container(t, dir, target)
			in(t, running, func() error { _, err := os.Stat(data + "/any"); return err })
			first.close()
			wantDeadIn(t, running, data)
			must(t, Unmount(t.Context(), source))

			second := serveFUSE(t, source)
			for range 2 {
				must(t, CreateDir(dir, "target", 0o750))
				must(t, Cover(source, target, options))
			}
			wantCount(t, target, 2)
			in(t, running, func() error { _, err := os.Stat(data + "/any"); return err })
			second.close()
			wantDeadIn(t, running, data)
			must(t, Unmount(t.Context(), source))

			must(t, mountTmpfs(source))
			must(t, mountTmpfs(source+"/sub"))
			writeFile(t, source+"/sub/file", "third")
			for range 2 {
				must(t, Cover(source, target, options))
			}
			wantCount(t, target, 4) // three at the target itself
			wantLastVolume(t, running, data, source, options)
			wantLastVolume(t, here(t), target, source, options)

			must(t, Unmount(t.Context(), target))
			wantCount(t, target, 0)
			in(t, running, func() error {
				mounts, err := Mounts(data)
				if len(mounts) != 1 || mounts[0].Type != "fuse" {
					t.Errorf("the container has %v", points(mounts))
				}
				return err
			})
			wantDeadIn(t, running, data)
			wantMounts(t, running, dir, "data", "source", "source/sub")
			must(t, Unmount(t.Context(), source))
		})
	}
}

func wantDeadIn(t *testing.T, namespace *Namespace, path string) {
	t.Helper()
	in(t, namespace, func() error {
		if _, err := os.Stat(path + "/any"); !errors.Is(err, unix.ENOTCONN) {
			t.Errorf("the dead volume at %s gives %v", path, err)
		}
		return nil
	})
}

// wantLastVolume checks the topmost mount tree, and its options.
func wantLastVolume(t *testing.T, namespace *Namespace, path, source string, options BindOptions) {
	t.Helper()
	in(t, namespace, func() error {
		wantFile(t, path+"/sub/file", "third")
		for _, place := range []string{"/new", "/sub/new"} {
			err := os.WriteFile(path+place, []byte("data"), 0o600)
			switch {
			case options.ReadOnly:
				wantError(t, err, unix.EROFS)
			case err != nil:
				t.Errorf("writing %s: %v", path+place, err)
			default:
				wantFile(t, source+place, "data")
			}
		}
		mounts, err := Mounts(path)
		for _, mount := range mounts {
			if mount.Options != options {
				t.Errorf("%s has options %+v", mount.Point, mount.Options)
			}
		}
		return err
	})
}

// A container may be restarted at any time. It then gets the topmost mount.
func TestCoverReachesContainersOfEveryLayer(t *testing.T) {
	dir := workDir(t)
	source, target := makeDir(t, dir, "source"), makeDir(t, dir, "target")
	must(t, mountTmpfs(source))
	must(t, Bind(source, target, BindOptions{}))
	type started struct {
		namespace *Namespace
		data      string
	}
	var containers []started
	for _, name := range []string{"first", "second", "third"} {
		namespace, data := containerAt(t, dir, target, name)
		containers = append(containers, started{namespace: namespace, data: data})
		must(t, Unmount(t.Context(), source))
		must(t, mountTmpfs(source))
		must(t, Cover(source, target, BindOptions{}))
		writeFile(t, source+"/file", name)
		for _, c := range containers {
			in(t, c.namespace, func() error {
				wantFile(t, c.data+"/file", name)
				return nil
			})
		}
	}
	unmountAllOf(t, target, source)
}

func TestCoverDoesNotPileUp(t *testing.T) {
	dir := workDir(t)
	source, target := makeDir(t, dir, "source"), makeDir(t, dir, "target")
	must(t, mountTmpfs(source))
	must(t, Bind(source, target, BindOptions{}))
	running, data := container(t, dir, target)
	var busy *os.File
	for range 2 * maxLayers {
		must(t, Unmount(t.Context(), source))
		must(t, mountTmpfs(source))
		must(t, Cover(source, target, BindOptions{}))
		writeFile(t, source+"/file", "data")
		if busy != nil {
			must(t, busy.Close())
		}
		for path, namespace := range map[string]*Namespace{target: here(t), data: running} {
			in(t, namespace, func() error {
				mounts, err := At(path)
				if len(mounts) < 2 || len(mounts) > maxLayers {
					t.Errorf("%s has %d layers", path, len(mounts))
				}
				return err
			})
		}
		in(t, running, func() error {
			var err error
			busy, err = os.Open(data + "/file")
			return err
		})
	}
	must(t, busy.Close())
	unmountAllOf(t, target, source)
}

// A writable tree that covers a target follows its source, as every bind does.
func TestCoverFollowsItsSource(t *testing.T) {
	dir := workDir(t)
	source, target := makeDir(t, dir, "source"), makeDir(t, dir, "target")
	must(t, mountTmpfs(target))
	running, data := container(t, dir, target)
	must(t, mountTmpfs(source))
	must(t, Cover(source, target, BindOptions{}))
	must(t, mountTmpfs(source+"/late"))
	wantMounts(t, here(t), target, "late")
	wantMounts(t, running, data, "late")
	in(t, running, func() error { return mountTmpfs(data + "/own") })
	wantMounts(t, here(t), dir, "source", "source/late", "target", "target", "target/late")
	unmountAllOf(t, target, source)
}

func TestCoverIsBindWhereNothingIsMounted(t *testing.T) {
	dir := workDir(t)
	staged, target := stagedTree(t, dir), makeDir(t, dir, "target")
	for range 2 {
		must(t, Cover(staged, target, BindOptions{NoExec: true}))
		must(t, Bind(staged, target, BindOptions{NoExec: true}))
		wantMounts(t, here(t), target, "sub", "sub/sub")
	}
	// Other options result in another mount.
	must(t, Cover(staged, target, BindOptions{ReadOnly: true}))
	wantError(t, os.Mkdir(target+"/new", 0o700), unix.EROFS)
	wantError(t, Bind(staged, target, BindOptions{}), ErrOccupied)

	writeFile(t, dir+"/file", "")
	must(t, os.Symlink("target", dir+"/link"))
	wantError(t, Cover(staged, dir+"/file", BindOptions{}), ErrMismatch)
	wantError(t, Cover(staged, dir+"/link", BindOptions{}), ErrEscapes)
	wantError(t, Cover(staged, dir+"/missing", BindOptions{}), fs.ErrNotExist)
	wantError(t, Cover(dir+"/missing", target, BindOptions{}), fs.ErrNotExist)
	unmountAllOf(t, target, staged)
}

// After an error of its disk, XFS refuses even stat. So does a FUSE file system of another user.
func TestCoverOfWhatCannotBeLookedAt(t *testing.T) {
	dir := workDir(t)
	source, target := stagedTree(t, dir), makeDir(t, dir, "target")
	server := serveFUSEFor(t, target, "user_id=12345,group_id=12345")
	running, data := container(t, dir, target)
	_, err := os.Stat(target)
	wantError(t, err, unix.EACCES)
	wantError(t, Bind(source, target, BindOptions{}), unix.EACCES)
	for range 2 {
		must(t, CreateDir(dir, "target", 0o750))
		must(t, Cover(source, target, BindOptions{}))
	}
	wantMounts(t, here(t), dir, "staged", "staged/sub", "staged/sub/sub", "target", "target", "target/sub", "target/sub/sub")
	wantMounts(t, running, data, "sub", "sub/sub")
	unmountAllOf(t, target, source)
	must(t, running.Close())
	server.close()
}

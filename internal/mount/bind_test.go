package mount

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// stagedTree creates a staged volume, which is a mount tree in its own peer groups, and returns its path.
func stagedTree(t *testing.T, dir string) string {
	t.Helper()
	pav, staged := makeDir(t, dir, "pav"), makeDir(t, dir, "staged")
	must(t, mountTmpfs(pav+"/volume"))
	must(t, mountTmpfs(pav+"/volume/sub"))
	must(t, mountTmpfs(pav+"/volume/sub/sub"))
	volume := openVolume(t, pav)
	must(t, volume.Attach(staged, BindOptions{}))
	must(t, volume.Close())
	must(t, Unmount(t.Context(), pav))
	return staged
}

func unmountAllOf(t *testing.T, paths ...string) {
	t.Helper()
	for _, path := range paths {
		must(t, Unmount(t.Context(), path))
	}
}

func TestBindFollowsItsSourceAndNeverActsOnIt(t *testing.T) {
	dir := workDir(t)
	staged := stagedTree(t, dir)
	one, two, fixed := makeDir(t, dir, "one"), makeDir(t, dir, "two"), makeDir(t, dir, "fixed")
	for range 2 {
		must(t, Bind(staged, one, BindOptions{}))
		must(t, Bind(staged, two, BindOptions{NoSuid: true, NoDev: true}))
		must(t, Bind(staged, fixed, BindOptions{ReadOnly: true}))
	}
	all := []string{"fixed", "fixed/sub", "fixed/sub/sub", "one", "one/sub", "one/sub/sub",
		"staged", "staged/sub", "staged/sub/sub", "two", "two/sub", "two/sub/sub"}
	wantMounts(t, here(t), dir, all...)

	client := newNamespace(t, dir, unix.MS_SLAVE) // HostToContainer
	peer := newNamespace(t, dir, 0)               // Bidirectional
	for _, private := range []string{one, two} {
		in(t, client, func() error { return mountTmpfs(private + "/own") })
	}
	wantMounts(t, here(t), dir, all...)
	in(t, peer, func() error { return mountTmpfs(one + "/sub/made") })
	wantMounts(t, here(t), staged, "sub", "sub/sub")
	wantMounts(t, here(t), two, "sub", "sub/sub")
	wantMounts(t, here(t), one, "sub", "sub/made", "sub/sub")
	in(t, peer, func() error { return unix.Unmount(one+"/sub/made", 0) })
	in(t, peer, func() error { return unix.Unmount(two+"/sub/sub", 0) })
	wantMounts(t, here(t), staged, "sub", "sub/sub")
	wantMounts(t, here(t), one, "sub", "sub/sub")
	wantMounts(t, here(t), two, "sub")

	must(t, mountTmpfs(staged+"/sub/late"))
	wantMounts(t, here(t), one, "sub", "sub/late", "sub/sub")
	wantMounts(t, client, one, "own", "sub", "sub/late", "sub/sub")
	wantMounts(t, here(t), fixed, "sub", "sub/sub")

	must(t, Unmount(t.Context(), one))
	wantMounts(t, here(t), staged, "sub", "sub/late", "sub/sub")
	wantMounts(t, here(t), two, "sub", "sub/late")
	wantMounts(t, peer, one)
	must(t, Unmount(t.Context(), staged))
	wantMounts(t, here(t), dir, "fixed", "fixed/sub", "fixed/sub/sub", "two")
	unmountAllOf(t, two, fixed)
	wantMounts(t, peer, dir)
}

// A lazy unmount of a bind removes nothing from its source and from other binds.
func TestDetachedBindTakesNothingFromTheOthers(t *testing.T) {
	dir := workDir(t)
	staged := stagedTree(t, dir)
	one, two := makeDir(t, dir, "one"), makeDir(t, dir, "two")
	must(t, Bind(staged, one, BindOptions{}))
	must(t, Bind(staged, two, BindOptions{}))
	must(t, unix.Unmount(one, unix.MNT_DETACH))
	wantMounts(t, here(t), staged, "sub", "sub/sub")
	wantMounts(t, here(t), two, "sub", "sub/sub")
	unmountAllOf(t, two, staged)
}

func TestReadOnlyBindIsEnforcedInAllMounts(t *testing.T) {
	dir := workDir(t)
	staged, target := stagedTree(t, dir), makeDir(t, dir, "target")
	writeFile(t, staged+"/sub/sub/file", "data")
	must(t, Bind(staged, target, BindOptions{ReadOnly: true}))
	client := newNamespace(t, dir, unix.MS_SLAVE)
	for _, namespace := range []*Namespace{here(t), client} {
		for _, place := range []string{"", "/sub", "/sub/sub"} {
			in(t, namespace, func() error {
				if err := os.WriteFile(target+place+"/new", nil, 0o600); !errors.Is(err, unix.EROFS) {
					t.Errorf("writing below %q: %v", place, err)
				}
				return nil
			})
			writeFile(t, staged+place+"/new", "")
		}
	}
	wantError(t, os.Chmod(target+"/sub/sub/file", 0o777), unix.EROFS)
	wantFile(t, target+"/sub/sub/file", "data")
	unmountAllOf(t, target, staged)
}

func TestReadOnlyBindHasNoWritableMoment(t *testing.T) {
	dir := workDir(t)
	staged, target := stagedTree(t, dir), makeDir(t, dir, "target")
	// A refusal shows that the bind was there, before the call ended.
	write := func() (refused bool) {
		file, err := os.OpenFile(target+"/sub/probe", os.O_CREATE|os.O_RDWR, 0o600)
		if err == nil {
			_ = file.Close()
		}
		return errors.Is(err, unix.EROFS)
	}
	strike(t, 500, func() int {
		refused := during(t, write, func() { must(t, Bind(staged, target, BindOptions{ReadOnly: true})) })
		must(t, Unmount(t.Context(), target))
		return refused
	})
	if _, err := os.Lstat(staged + "/sub/probe"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a write got through: %v", err)
	}
	must(t, Unmount(t.Context(), staged))
}

func TestBindOptionsHoldInAllMounts(t *testing.T) {
	dir := workDir(t)
	staged, target := stagedTree(t, dir), makeDir(t, dir, "target")
	for _, options := range []BindOptions{
		{}, {ReadOnly: true}, {NoSuid: true}, {NoDev: true}, {NoExec: true}, {NoAtime: true},
		{ReadOnly: true, NoSuid: true, NoDev: true, NoExec: true, NoAtime: true},
	} {
		must(t, Bind(staged, target, options))
		mounts, err := Mounts(target)
		must(t, err)
		for _, mount := range mounts {
			if diff := cmp.Diff(options, mount.Options); diff != "" {
				t.Errorf("%s (-want +got):\n%s", mount.Point, diff)
			}
		}
		if len(mounts) != 3 {
			t.Errorf("found %d mounts", len(mounts))
		}
		must(t, Unmount(t.Context(), target))
	}
	must(t, Unmount(t.Context(), staged))
}

func TestBindAgain(t *testing.T) {
	dir := workDir(t)
	staged, target := stagedTree(t, dir), makeDir(t, dir, "target")
	restricted := makeDir(t, dir, "restricted")
	must(t, Bind(staged, target, BindOptions{NoSuid: true}))
	wantError(t, Bind(staged, target, BindOptions{NoSuid: true, ReadOnly: true}), ErrOccupied)
	wantError(t, Bind(staged, target, BindOptions{}), ErrOccupied)
	wantError(t, Bind(makeDir(t, dir, "other"), target, BindOptions{NoSuid: true}), ErrOccupied)
	wantError(t, Bind(staged, filepath.Join(dir, "missing"), BindOptions{}), fs.ErrNotExist)
	wantError(t, Bind(filepath.Join(dir, "missing"), target, BindOptions{}), fs.ErrNotExist)
	must(t, os.Symlink("staged", dir+"/link"))
	wantError(t, Bind(dir+"/link", target, BindOptions{}), ErrEscapes)

	// A second Bind is not refused because of options that come from the source.
	must(t, Bind(target, restricted, BindOptions{ReadOnly: true}))
	must(t, Bind(target, restricted, BindOptions{ReadOnly: true}))
	wantMounts(t, here(t), target, "sub", "sub/sub")
	unmountAllOf(t, restricted, target, staged)
}

func TestBindOfPlainDirectoryAndFile(t *testing.T) {
	dir := workDir(t)
	writeFile(t, makeDir(t, dir, "source")+"/file", "data")
	target, file := makeDir(t, dir, "target"), dir+"/file"
	writeFile(t, file, "")
	for range 2 {
		must(t, Bind(dir+"/source", target, BindOptions{}))
		must(t, Bind(dir+"/source/file", file, BindOptions{ReadOnly: true}))
	}
	wantFile(t, target+"/file", "data")
	wantFile(t, file, "data")
	wantMounts(t, here(t), dir, "file", "target")
	wantError(t, Bind(dir+"/source", file, BindOptions{}), ErrMismatch)
	unmountAllOf(t, file, target)
}

func TestSelfBindIsAMountInItsOwnGroup(t *testing.T) {
	dir := workDir(t)
	source := makeDir(t, dir, "source")
	writeFile(t, source+"/file", "data")
	must(t, mountTmpfs(source+"/below"))
	for range 3 {
		must(t, SelfBind(source))
	}
	wantFile(t, source+"/file", "data")
	wantMounts(t, here(t), source, "below", "below") // one is hidden, one is a copy
	mounts, err := Mounts(dir)
	must(t, err)
	groups := make(map[int]bool)
	for _, mount := range mounts {
		if mount.PeerGroup == 0 || mount.Master != 0 || groups[mount.PeerGroup] {
			t.Errorf("%s is in group %d, master %d", mount.Point, mount.PeerGroup, mount.Master)
		}
		groups[mount.PeerGroup] = true
	}
	must(t, Unmount(t.Context(), source))
	wantMounts(t, here(t), dir)
}

func TestSelfBindMakesUpForAMissingGroup(t *testing.T) {
	dir := workDir(t)
	source := makeDir(t, dir, "source")
	must(t, unix.Mount(source, source, "", unix.MS_BIND, ""))
	must(t, unix.Mount("", source, "", unix.MS_PRIVATE, ""))
	must(t, SelfBind(source))
	must(t, BindShared(source, makeDir(t, dir, "target")))
	unmountAllOf(t, source, dir+"/target")
	wantError(t, SelfBind(dir+"/missing"), fs.ErrNotExist)
}

// Below a shared directory, the kernel makes all mounts shared. So this test uses a private one.
func TestAllTreesAreSharedBelowAPrivateDirectory(t *testing.T) {
	dir := workDir(t)
	private := dir + "/private"
	must(t, mountTmpfs(private))
	must(t, unix.Mount("", private, "", unix.MS_PRIVATE, ""))
	pav, staged := makeDir(t, private, "pav"), makeDir(t, private, "staged")
	one, two := makeDir(t, private, "one"), makeDir(t, private, "two")
	must(t, SelfBind(pav))
	makeDir(t, pav, "volume")
	volume := openVolume(t, pav)
	must(t, volume.Attach(staged, BindOptions{}))
	must(t, volume.Close())
	must(t, Bind(staged, one, BindOptions{}))
	must(t, Bind(staged, two, BindOptions{ReadOnly: true}))
	mounts, err := Mounts(private)
	must(t, err)
	groups := make(map[int]string)
	for _, mount := range mounts[1:] {
		if other, taken := groups[mount.PeerGroup]; taken || mount.PeerGroup == 0 {
			t.Errorf("%s is in group %d, as is %q", mount.Point, mount.PeerGroup, other)
		}
		groups[mount.PeerGroup] = mount.Point
	}
	if len(groups) != 4 {
		t.Errorf("found groups %v", groups)
	}
	must(t, Unmount(t.Context(), private))
}

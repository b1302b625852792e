package mount

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func TestOpenVolumeJudgesTheType(t *testing.T) {
	dir := workDir(t)
	makeDir(t, dir, "outside")
	pav := makeDir(t, dir, "pav")
	makeDir(t, pav, "real")
	writeFile(t, filepath.Join(pav, "file"), "")
	path := filepath.Join(pav, "volume")
	link := func(to string) func() error { return func() error { return os.Symlink(to, path) } }
	for name, test := range map[string]struct {
		create func() error
		mode   VolumeMode
		err    error
	}{
		"directory":                  {create: func() error { return os.Mkdir(path, 0o700) }, mode: Filesystem},
		"block device":               {create: mknod(path, unix.S_IFBLK, unix.Mkdev(7, 0)), mode: Block},
		"link to a directory inside": {create: link("real"), mode: Filesystem},
		"link up and down":           {create: link("real/../real/."), mode: Filesystem},
		"missing":                    {create: func() error { return nil }, err: fs.ErrNotExist},
		"dangling link":              {create: link("nothing"), err: fs.ErrNotExist},
		"link out":                   {create: link("../outside"), err: ErrEscapes},
		"link out and in again":      {create: link("../pav/real"), err: ErrEscapes},
		"absolute link inside":       {create: link(filepath.Join(pav, "real")), err: ErrEscapes},
		"link to the root":           {create: link("/"), err: ErrEscapes},
		"magic link":                 {create: link("/proc/self/cwd"), err: ErrEscapes},
		"link to itself":             {create: link("volume"), err: ErrEscapes},
		"file":                       {create: text(path, ""), err: ErrNotVolume},
		"link to a file":             {create: link("file"), err: ErrNotVolume},
		"named pipe":                 {create: mknod(path, unix.S_IFIFO, 0), err: ErrNotVolume},
		"character device":           {create: mknod(path, unix.S_IFCHR, unix.Mkdev(1, 1)), err: ErrNotVolume},
	} {
		t.Run(name, func(t *testing.T) {
			must(t, os.RemoveAll(path))
			must(t, test.create())
			volume, err := openDir(t, pav).OpenVolume("volume")
			wantError(t, err, test.err)
			if err != nil {
				return
			}
			if volume.Mode != test.mode {
				t.Errorf("got mode %s, want %s", volume.Mode, test.mode)
			}
			must(t, volume.Close())
		})
	}
}

func openVolume(t *testing.T, pav string) *Volume {
	t.Helper()
	dir := openDir(t, pav)
	volume, err := dir.OpenVolume("volume")
	must(t, err)
	must(t, dir.Close())
	return volume
}

func TestAttachMountsWhatWasOpened(t *testing.T) {
	dir := workDir(t)
	pav, target := makeDir(t, dir, "pav"), makeDir(t, dir, "target")
	path := filepath.Join(pav, "volume")
	writeFile(t, filepath.Join(makeDir(t, path), "file"), "original")
	volume := openVolume(t, pav)
	must(t, os.Rename(path, filepath.Join(pav, "moved")))
	must(t, os.Symlink("/", path))

	for range 2 {
		must(t, volume.Attach(target, BindOptions{}))
		wantFile(t, filepath.Join(target, "file"), "original")
		wantMounts(t, here(t), dir, "target")
	}
	must(t, volume.Close())
	must(t, Unmount(t.Context(), target))
}

func TestAttachOfDevice(t *testing.T) {
	dir := workDir(t)
	target := filepath.Join(dir, "target")
	writeFile(t, target, "")
	must(t, unix.Mknod(filepath.Join(dir, "volume"), unix.S_IFBLK|0o600, int(unix.Mkdev(7, 3))))
	volume := openVolume(t, dir)
	for range 2 {
		must(t, volume.Attach(target, BindOptions{}))
		var st unix.Stat_t
		must(t, unix.Stat(target, &st))
		if st.Mode&unix.S_IFMT != unix.S_IFBLK || st.Rdev != unix.Mkdev(7, 3) {
			t.Errorf("found mode %o, device %d", st.Mode, st.Rdev)
		}
		wantMounts(t, here(t), dir, "target")
	}
	wantError(t, volume.Attach(makeDir(t, dir, "directory"), BindOptions{}), ErrMismatch)
	must(t, volume.Close())
	must(t, Unmount(t.Context(), target))
}

func TestAttachRefusesBadTargets(t *testing.T) {
	dir := workDir(t)
	makeDir(t, dir, "volume")
	volume := openVolume(t, dir)
	must(t, os.Symlink("volume", filepath.Join(dir, "link")))
	occupied := filepath.Join(dir, "occupied")
	must(t, mountTmpfs(occupied))

	wantError(t, volume.Attach(filepath.Join(dir, "link"), BindOptions{}), ErrEscapes)
	wantError(t, volume.Attach(filepath.Join(dir, "missing"), BindOptions{}), fs.ErrNotExist)
	wantError(t, volume.Attach(occupied, BindOptions{}), ErrOccupied)
	wantMounts(t, here(t), dir, "occupied")
	must(t, volume.Close())
	must(t, Unmount(t.Context(), occupied))
}

// The staging pod mounts the volume in its own container, and the mount propagates to the host.
func TestAttachedTreeIsCutOffFromThePod(t *testing.T) {
	dir := workDir(t)
	pav, staged := makeDir(t, dir, "pav"), makeDir(t, dir, "staged")
	must(t, SelfBind(pav))
	pod := newNamespace(t, dir, 0)
	in(t, pod, func() error { return mountTmpfs(pav + "/volume") })
	in(t, pod, func() error { return mountTmpfs(pav + "/volume/inner") })
	wantMounts(t, here(t), dir, "pav", "pav/volume", "pav/volume/inner")

	volume := openVolume(t, pav)
	must(t, volume.Attach(staged, BindOptions{}))
	must(t, volume.Close())
	wantMounts(t, here(t), staged, "inner")
	wantMounts(t, pod, staged, "inner")

	in(t, pod, func() error { return mountTmpfs(pav + "/volume/late") })
	wantMounts(t, here(t), staged, "inner")
	in(t, pod, func() error { return mountTmpfs(staged + "/client") })
	wantMounts(t, here(t), dir, "pav", "pav/volume", "pav/volume/inner", "pav/volume/late",
		"staged", "staged/client", "staged/inner")

	must(t, Unmount(t.Context(), staged))
	for _, namespace := range []*Namespace{here(t), pod} {
		wantMounts(t, namespace, dir, "pav", "pav/volume", "pav/volume/inner", "pav/volume/late")
	}
	must(t, Unmount(t.Context(), pav))
	wantMounts(t, pod, dir)
}

// Any rename on the node makes the kernel abort lookups with ".." in the path.
func TestOpenVolumeRepeatsDisturbedLookups(t *testing.T) {
	dir := workDir(t)
	pav := makeDir(t, dir, "pav")
	makeDir(t, pav, "real")
	must(t, os.Symlink("real/../real/../real", pav+"/volume"))
	makeDir(t, dir, "a")
	makeDir(t, dir, "b")
	held := openDir(t, pav)
	stop := repeatedly(t, func(int) { exchange(dir+"/a", dir+"/b") })
	for range 5_000 {
		volume, err := held.OpenVolume("volume")
		must(t, err)
		must(t, volume.Close())
	}
	stop()
	must(t, held.Close())
}

package mount

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func TestRemoveDir_RemovesOnlyWhatIsEmpty(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "full", "file")
	must(t, os.MkdirAll(filepath.Dir(file), 0o700))
	must(t, os.WriteFile(file, []byte("data"), 0o600))
	wantError(t, RemoveDir(filepath.Dir(file)), unix.ENOTEMPTY)
	if _, err := os.Stat(file); err != nil {
		t.Errorf("what was in the directory is gone: %v", err)
	}

	must(t, os.Remove(file))
	must(t, RemoveDir(filepath.Dir(file)))
	must(t, RemoveDir(filepath.Dir(file))) // It may be repeated.
	if _, err := os.Stat(filepath.Dir(file)); !os.IsNotExist(err) {
		t.Errorf("the empty directory is still there: %v", err)
	}
}

func TestCreateDir(t *testing.T) {
	dir := workDir(t)
	unix.Umask(0o077)
	defer unix.Umask(0o022)
	for name, test := range map[string]struct {
		name   string
		mode   fs.FileMode
		parent string
	}{
		"single":         {name: "single", mode: 0o777},
		"sticky":         {name: "sticky", mode: 0o777 | fs.ModeSticky},
		"nested":         {name: "a/b/c", mode: 0o2, parent: "a/b"},
		"odd characters": {name: "…/ \n", mode: 0o755, parent: "…"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(dir, test.name)
			for range 2 {
				must(t, CreateDir(dir, test.name, test.mode))
				wantMode(t, path, fs.ModeDir|test.mode)
				if test.parent != "" {
					wantMode(t, filepath.Join(dir, test.parent), fs.ModeDir|parentMode)
				}
				must(t, os.Chmod(path, 0o700))
			}
		})
	}
}

func wantMode(t *testing.T, path string, want fs.FileMode) {
	t.Helper()
	info, err := os.Lstat(path)
	must(t, err)
	if info.Mode() != want {
		t.Errorf("%s has mode %v, want %v", path, info.Mode(), want)
	}
}

func TestCreateDirLeavesTheUsersMountAlone(t *testing.T) {
	dir := workDir(t)
	must(t, CreateDir(dir, "pod/target", 0o750))
	must(t, mountTmpfs(dir+"/pod/target"))
	must(t, os.Chmod(dir+"/pod/target", 0o711))
	must(t, CreateDir(dir, "pod/target", 0o750))
	wantMode(t, dir+"/pod/target", fs.ModeDir|0o711)
	must(t, CreateDir(dir, "pod/target/sub", 0o750))
	wantMode(t, dir+"/pod/target", fs.ModeDir|0o711)
	must(t, Unmount(t.Context(), dir+"/pod/target"))
}

func TestCreateDirRefuses(t *testing.T) {
	dir := workDir(t)
	root, outside := makeDir(t, dir, "root"), makeDir(t, dir, "outside")
	must(t, os.Symlink("../outside", root+"/link"))
	must(t, os.Symlink("missing", root+"/dangling"))
	makeDir(t, root, "real")
	must(t, os.Symlink("real", root+"/inner"))
	writeFile(t, root+"/file", "")
	for name, want := range map[string]error{
		"": ErrInvalidName, ".": ErrInvalidName, "..": ErrInvalidName, "a/../b": ErrInvalidName,
		"/abs": ErrInvalidName, "a//b": ErrInvalidName, "a/": ErrInvalidName, "../outside/new": ErrInvalidName,
		"link": ErrEscapes, "link/new": ErrEscapes, "dangling": ErrEscapes, "inner/new": ErrEscapes,
		"file": unix.ENOTDIR, "file/new": unix.ENOTDIR,
	} {
		wantError(t, CreateDir(root, name, 0o777), want)
	}
	wantError(t, CreateDir(dir+"/missing", "new", 0o777), fs.ErrNotExist)
	wantGone(t, outside+"/new")
	wantGone(t, root+"/missing")
	wantMode(t, outside, fs.ModeDir|0o755)
}

func TestCreateFile(t *testing.T) {
	dir := workDir(t)
	unix.Umask(0o077)
	defer unix.Umask(0o022)
	path := dir + "/pod/target"
	for range 2 {
		must(t, CreateFile(dir, "pod/target", 0o666))
		wantMode(t, path, 0o666)
		wantMode(t, dir+"/pod", fs.ModeDir|parentMode)
		must(t, os.Chmod(path, 0))
	}
	writeFile(t, path, "data")
	must(t, CreateFile(dir, "pod/target", 0o600))
	wantFile(t, path, "data")

	// A device that is mounted at the path belongs to a user, and is not changed.
	must(t, mknod(dir+"/device", unix.S_IFBLK, unix.Mkdev(250, 99))())
	must(t, Bind(dir+"/device", path, BindOptions{}))
	before, err := os.Lstat(path)
	must(t, err)
	must(t, CreateFile(dir, "pod/target", 0o640))
	wantMode(t, path, before.Mode())
	must(t, Unmount(t.Context(), path))
	wantMode(t, path, 0o600)
}

func TestCreateFileRefuses(t *testing.T) {
	dir := workDir(t)
	root, outside := makeDir(t, dir, "root"), makeDir(t, dir, "outside")
	writeFile(t, outside+"/file", "")
	must(t, os.Symlink("../outside/file", root+"/link"))
	must(t, os.Symlink("missing", root+"/dangling"))
	must(t, os.Symlink("../outside", root+"/way"))
	must(t, unix.Mkfifo(root+"/pipe", 0o600))
	must(t, mknod(root+"/device", unix.S_IFBLK, unix.Mkdev(250, 99))())
	makeDir(t, root, "directory")
	writeFile(t, root+"/file", "")
	for name, want := range map[string]error{
		"": ErrInvalidName, "..": ErrInvalidName, "a/../b": ErrInvalidName, "/abs": ErrInvalidName, "a/": ErrInvalidName,
		"link": ErrEscapes, "dangling": ErrEscapes, "way/new": ErrEscapes, "file/new": unix.ENOTDIR,
		"pipe": ErrNotRegular, "device": ErrNotRegular, "directory": ErrNotRegular,
	} {
		wantError(t, CreateFile(root, name, 0o777), want)
	}
	wantError(t, CreateFile(dir+"/missing", "new", 0o777), fs.ErrNotExist)
	wantGone(t, outside+"/new")
	wantGone(t, root+"/missing")
	wantMode(t, outside+"/file", 0o644)
}

func TestRemoveTarget(t *testing.T) {
	dir := workDir(t)
	outside := makeDir(t, dir, "outside")
	writeFile(t, outside+"/canary", "canary")
	path := dir + "/target"
	for name, test := range map[string]struct {
		create func() error
		err    error
	}{
		"missing":            {create: func() error { return nil }},
		"empty directory":    {create: func() error { return os.Mkdir(path, 0o700) }},
		"empty file":         {create: text(path, "")},
		"directory in use":   {create: func() error { return os.MkdirAll(path+"/sub", 0o700) }, err: unix.ENOTEMPTY},
		"file with content":  {create: text(path, "data"), err: unix.ENOTEMPTY},
		"sparse file":        {create: func() error { _ = text(path, "")(); return os.Truncate(path, 1) }, err: unix.ENOTEMPTY},
		"link to a file":     {create: func() error { return os.Symlink("outside/canary", path) }, err: ErrEscapes},
		"link to a place":    {create: func() error { return os.Symlink("outside", path) }, err: ErrEscapes},
		"named pipe":         {create: mknod(path, unix.S_IFIFO, 0), err: ErrNotRegular},
		"device":             {create: mknod(path, unix.S_IFBLK, unix.Mkdev(250, 99)), err: ErrNotRegular},
		"mounted directory":  {create: func() error { return mountTmpfs(path) }, err: ErrBusyMount},
		"mounted file":       {create: func() error { _ = text(path, "")(); return bindPlain(outside+"/canary", path) }, err: ErrBusyMount},
		"mounted empty file": {create: func() error { _ = text(path, "")(); return bindPlain(path, path) }, err: ErrBusyMount},
	} {
		t.Run(name, func(t *testing.T) {
			must(t, test.create())
			for range 2 {
				wantError(t, RemoveTarget(path), test.err)
			}
			if test.err == nil {
				wantGone(t, path)
			} else if _, err := os.Lstat(path); err != nil {
				t.Errorf("it is gone: %v", err)
			}
			must(t, Unmount(t.Context(), path))
			must(t, os.RemoveAll(path))
			wantFile(t, outside+"/canary", "canary")
		})
	}
	must(t, RemoveTarget(dir+"/missing/target"))
	wantError(t, RemoveTarget("relative"), ErrInvalidName)
}

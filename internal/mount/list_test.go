package mount

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

func TestOpenDir_OfHostileDirectories(t *testing.T) {
	dir := workDir(t)
	outside := makeDir(t, dir, "outside")
	writeFile(t, outside+"/file", "canary")
	path := makeDir(t, dir, "pav") + "/info"
	for name, test := range map[string]struct {
		create func() error
		err    error
	}{
		"a directory":       {func() error { return os.Mkdir(path, 0o700) }, nil},
		"none":              {func() error { return nil }, fs.ErrNotExist},
		"a file":            {text(path, ""), ErrNotDirectory},
		"a named pipe":      {mknod(path, unix.S_IFIFO, 0), ErrNotDirectory},
		"a device":          {mknod(path, unix.S_IFCHR, unix.Mkdev(1, 5)), ErrNotDirectory},
		"a link to outside": {func() error { return os.Symlink(outside, path) }, ErrEscapes},
		"a relative link":   {func() error { return os.Symlink("../outside", path) }, ErrEscapes},
		"a link to itself":  {func() error { return os.Symlink("info", path) }, ErrEscapes},
		"a mount of outside": {func() error {
			return errors.Join(os.Mkdir(path, 0o700), unix.Mount(outside, path, "", unix.MS_BIND, ""))
		}, ErrEscapes},
	} {
		t.Run(name, func(t *testing.T) {
			must(t, test.create())
			opened, err := openDir(t, dir+"/pav").OpenDir("info")
			if !errors.Is(err, test.err) || (err == nil) != (test.err == nil) {
				t.Errorf("got error %v, want %v", err, test.err)
			}
			if err == nil {
				must(t, opened.Close())
			}
			must(t, Unmount(t.Context(), path))
			must(t, os.RemoveAll(path))
		})
	}
}

func TestNames_AreLimited(t *testing.T) {
	dir := workDir(t)
	pav := openDir(t, dir)
	for i, want := range [][]string{{}, {"0"}, {"0", "1"}} {
		got, err := pav.Names(2)
		must(t, err)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		writeFile(t, dir+"/"+strconv.Itoa(i), "")
	}
	if names, err := pav.Names(2); !errors.Is(err, ErrTooMany) || names != nil {
		t.Errorf("of three: got %q, %v", names, err)
	}
	for _, name := range []string{"a\nb", "\xff", "..."} {
		writeFile(t, dir+"/"+name, "")
	}
	got, err := pav.Names(10)
	must(t, err)
	if diff := cmp.Diff([]string{"...", "0", "1", "2", "a\nb", "\xff"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	must(t, pav.Close())
}

func TestOpenMount_OpensOnlyWhatWasFound(t *testing.T) {
	dir := workDir(t)
	path := makeDir(t, dir, "pav", "credentials")
	must(t, mountTmpfs(path))
	writeFile(t, path+"/file", "ours")
	found, err := At(path)
	must(t, err)
	open := func() (*Dir, error) { return openDir(t, dir+"/pav").OpenMount("credentials", found[0]) }

	opened, err := open()
	must(t, err)
	if text, err := opened.ReadText("file", 10); err != nil || text != "ours" {
		t.Errorf("got %q, %v", text, err)
	}
	must(t, opened.Close())

	must(t, mountTmpfs(path))
	_, err = open()
	wantError(t, err, ErrEscapes)
	must(t, Unmount(t.Context(), path))
	_, err = open()
	wantError(t, err, ErrEscapes)
	must(t, os.Remove(path))
	_, err = open()
	wantError(t, err, fs.ErrNotExist)
	must(t, os.Symlink("..", path))
	_, err = open()
	wantError(t, err, ErrEscapes)
	must(t, os.Remove(path))
}

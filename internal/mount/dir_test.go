package mount

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

const handleLimit = 128

func mknod(path string, mode uint32, device uint64) func() error {
	return func() error { return unix.Mknod(path, mode|0o666, int(device)) }
}

func text(path, content string) func() error {
	return func() error { return os.WriteFile(path, []byte(content), 0o600) }
}

func TestReadTextOfHostileFiles(t *testing.T) {
	dir := workDir(t)
	outside := filepath.Join(dir, "outside")
	writeFile(t, outside, "canary")
	pav := makeDir(t, dir, "pav")
	path := filepath.Join(pav, "handle")
	for name, test := range map[string]struct {
		create func() error
		want   string
		err    error
	}{
		"plain":                   {create: text(path, "vol-1"), want: "vol-1"},
		"empty":                   {create: text(path, "")},
		"several lines":           {create: text(path, "a\tb\r\nc\n"), want: "a\tb\r\nc\n"},
		"replacement character":   {create: text(path, "\uFFFD"), want: "\uFFFD"},
		"exactly the limit":       {create: text(path, strings.Repeat("é", 64)), want: strings.Repeat("é", 64)},
		"a byte too many":         {create: text(path, strings.Repeat("a", 129)), err: ErrTooLarge},
		"bad UTF-8":               {create: text(path, "a\xffb"), err: ErrNotUTF8},
		"cut UTF-8":               {create: text(path, "a\xc3"), err: ErrNotUTF8},
		"surrogate":               {create: text(path, "\xed\xa0\x80"), err: ErrNotUTF8},
		"NUL":                     {create: text(path, "a\x00b"), err: ErrControlCharacter},
		"escape":                  {create: text(path, "\x1b[2J"), err: ErrControlCharacter},
		"C1 control":              {create: text(path, "\u0085"), err: ErrControlCharacter},
		"missing":                 {create: func() error { return nil }, err: fs.ErrNotExist},
		"absolute link":           {create: func() error { return os.Symlink(outside, path) }, err: ErrEscapes},
		"relative link":           {create: func() error { return os.Symlink("../outside", path) }, err: ErrEscapes},
		"link inside":             {create: func() error { return os.Symlink("other", path) }, err: ErrEscapes},
		"magic link":              {create: func() error { return os.Symlink("/proc/self/root/etc/passwd", path) }, err: ErrEscapes},
		"link to itself":          {create: func() error { return os.Symlink("handle", path) }, err: ErrEscapes},
		"named pipe":              {create: mknod(path, unix.S_IFIFO, 0), err: ErrNotRegular},
		"character device (zero)": {create: mknod(path, unix.S_IFCHR, unix.Mkdev(1, 5)), err: ErrNotRegular},
		"device without a driver": {create: mknod(path, unix.S_IFCHR, unix.Mkdev(250, 99)), err: ErrNotRegular},
		"block device":            {create: mknod(path, unix.S_IFBLK, unix.Mkdev(7, 0)), err: ErrNotRegular},
		"directory":               {create: func() error { return os.Mkdir(path, 0o755) }, err: ErrNotRegular},
	} {
		t.Run(name, func(t *testing.T) {
			must(t, os.RemoveAll(path))
			must(t, test.create())
			got, err := openDir(t, pav).ReadText("handle", handleLimit)
			if !errors.Is(err, test.err) || got != test.want {
				t.Errorf("got %q, %v; want %q, %v", got, err, test.want, test.err)
			}
		})
	}
}

func TestReadFileOfSocketAndMount(t *testing.T) {
	dir := workDir(t)
	pav := openDir(t, dir)
	listener, err := new(net.ListenConfig).Listen(t.Context(), "unix", filepath.Join(dir, "handle"))
	must(t, err)
	_, err = pav.ReadFile("handle", handleLimit)
	wantError(t, err, ErrNotRegular)
	must(t, listener.Close())

	writeFile(t, filepath.Join(dir, "secret"), "canary")
	writeFile(t, filepath.Join(dir, "capacity"), "")
	must(t, unix.Mount(filepath.Join(dir, "secret"), filepath.Join(dir, "capacity"), "", unix.MS_BIND, ""))
	_, err = pav.ReadFile("capacity", handleLimit)
	wantError(t, err, ErrEscapes)
	must(t, Unmount(t.Context(), filepath.Join(dir, "capacity")))
	must(t, pav.Close())
}

func TestReadFileOfTenGigabytesTakesNoMemory(t *testing.T) {
	dir := workDir(t)
	path := filepath.Join(dir, "handle")
	writeFile(t, path, "")
	must(t, os.Truncate(path, 10<<30))
	pav := openDir(t, dir)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := pav.ReadFile("handle", handleLimit)
	runtime.ReadMemStats(&after)
	wantError(t, err, ErrTooLarge)
	if used := after.TotalAlloc - before.TotalAlloc; used > 64<<10 {
		t.Errorf("reading took %d bytes", used)
	}
	must(t, pav.Close())
}

func TestNamesAreSingleEntries(t *testing.T) {
	dir := workDir(t)
	pav := openDir(t, makeDir(t, dir, "pav"))
	for _, name := range []string{"", ".", "..", "/", "a/b", "../outside", "/etc/passwd", "a\x00b"} {
		_, err := pav.ReadFile(name, handleLimit)
		wantError(t, err, ErrInvalidName)
		_, err = pav.Exists(name)
		wantError(t, err, ErrInvalidName)
		_, err = pav.OpenVolume(name)
		wantError(t, err, ErrInvalidName)
	}
	must(t, pav.Close())
}

func TestExistsTakesAnyType(t *testing.T) {
	dir := workDir(t)
	pav := openDir(t, dir)
	got, err := pav.Exists("ready")
	if got || err != nil {
		t.Errorf("got %v, %v before the file exists", got, err)
	}
	path := filepath.Join(dir, "ready")
	for name, create := range map[string]func() error{
		"file":          text(path, ""),
		"directory":     func() error { return os.Mkdir(path, 0) },
		"dangling link": func() error { return os.Symlink("/nonexistent", path) },
		"named pipe":    mknod(path, unix.S_IFIFO, 0),
	} {
		must(t, create())
		got, err := pav.Exists("ready")
		if !got || err != nil {
			t.Errorf("%s: got %v, %v", name, got, err)
		}
		must(t, os.Remove(path))
	}
	must(t, pav.Close())
}

func TestDirIsHeldByDescriptor(t *testing.T) {
	dir := workDir(t)
	held := openDir(t, makeDir(t, dir, "pav"))
	writeFile(t, filepath.Join(dir, "pav", "handle"), "original")
	must(t, os.Rename(filepath.Join(dir, "pav"), filepath.Join(dir, "moved")))
	writeFile(t, filepath.Join(makeDir(t, dir, "pav"), "handle"), "impostor")
	got, err := held.ReadText("handle", handleLimit)
	if got != "original" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	must(t, held.Close())

	must(t, os.Symlink("moved", filepath.Join(dir, "link")))
	_, err = OpenDir(filepath.Join(dir, "link"))
	wantError(t, err, unix.ENOTDIR)
	_, err = OpenDir("relative")
	wantError(t, err, ErrInvalidName)
}

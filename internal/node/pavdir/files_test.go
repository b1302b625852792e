package pavdir

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/albertofaria/pav/internal/mount"
)

func TestReadPodFiles_OfHostileFiles(t *testing.T) {
	many := func(directory string, count int) func(t *testing.T, at string) {
		return func(t *testing.T, at string) {
			t.Helper()
			must(t, os.MkdirAll(at+directory, 0o755))
			for i := range count {
				write(t, at+directory+"/"+strconv.Itoa(i), "")
			}
		}
	}
	host := t.TempDir() + "/file"
	write(t, host, "canary")
	for name, test := range map[string]struct {
		leave func(t *testing.T, at string)
		want  map[string]string
		err   error
	}{
		"nothing": {func(*testing.T, string) {}, map[string]string{}, nil},
		"names of any bytes": {func(t *testing.T, at string) {
			t.Helper()
			for _, name := range []string{"a\nb", "\xff", "..."} {
				write(t, at+"/"+name, "x")
			}
		}, map[string]string{"a\nb": "x", "\xff": "x", "...": "x"}, nil},
		"a link, a pipe, a device, a directory": {func(t *testing.T, at string) {
			t.Helper()
			must(t, os.Symlink(host, at+"/link"))
			must(t, unix.Mkfifo(at+"/pipe", 0o644))
			must(t, unix.Mknod(at+"/device", unix.S_IFCHR|0o644, int(unix.Mkdev(1, 5))))
			must(t, os.Mkdir(at+"/directory", 0o755))
		}, map[string]string{"link": "escapes", "pipe": "not regular", "device": "not regular", "directory": "not regular"}, nil},
		"10 GB of nothing": {func(t *testing.T, at string) {
			t.Helper()
			write(t, at+"/file", "")
			must(t, os.Truncate(at+"/file", 10<<30))
		}, map[string]string{"file": "too large"}, nil},
		"a file that is a mount": {func(t *testing.T, at string) {
			t.Helper()
			write(t, at+"/file", "")
			must(t, unix.Mount(host, at+"/file", "", unix.MS_BIND, ""))
		}, map[string]string{"file": "escapes"}, nil},
		"extra is a file": {func(t *testing.T, at string) { t.Helper(); write(t, at+"/extra", "x"); write(t, at+"/file", "y") },
			map[string]string{"extra": "not a directory", "file": "y"}, nil},
		"extra is a link": {func(t *testing.T, at string) { t.Helper(); must(t, os.Symlink("..", at+"/extra")) }, map[string]string{"extra": "escapes"}, nil},
		"extra is a mount": {func(t *testing.T, at string) {
			t.Helper()
			tmpfs(t, at+"/extra")
			write(t, at+"/extra/file", "canary")
		}, map[string]string{"extra": "escapes"}, nil},
		"extra in extra": {func(t *testing.T, at string) { t.Helper(); must(t, os.MkdirAll(at+"/extra/extra", 0o755)) },
			map[string]string{"extra/extra": "not regular"}, nil},
		"too many files":              {many("", 65), nil, mount.ErrTooMany},
		"too many files, and extra":   {func(t *testing.T, at string) { t.Helper(); many("", 65)(t, at); many("/extra", 0)(t, at) }, nil, mount.ErrTooMany},
		"too many further files":      {many("/extra", 65), nil, mount.ErrTooMany},
		"too many files of two kinds": {func(t *testing.T, at string) { t.Helper(); many("", 32)(t, at); many("/extra", 33)(t, at) }, nil, mount.ErrTooMany},
	} {
		for _, directory := range []string{"credentials", "info"} {
			t.Run(name+" in "+directory, func(t *testing.T) {
				h := newHost(t)
				target := h.publishGrant(t)
				must(t, os.MkdirAll(target+"/info", 0o755))
				test.leave(t, target+"/"+directory)
				files, err := h.ReadPodFiles(t.Context(), grantVolume, directory, 64, 16)
				if !errors.Is(err, test.err) || test.err != nil && len(files) > 0 {
					t.Errorf("got %d files, %v; want %v", len(files), err, test.err)
				}
				if test.err == nil {
					got := map[string]string{}
					for _, file := range files {
						if got[file.Name] = string(file.Content); file.Err != nil {
							got[file.Name] = kindOf(file.Err)
						}
					}
					if diff := cmp.Diff(test.want, got); diff != "" {
						t.Errorf("-want +got:\n%s", diff)
					}
				}
				must(t, h.UnpublishPod(t.Context(), grantVolume, target))
				h.wantNothing(t, target)
			})
		}
	}
}

func TestReadPodFiles_ReadsAsManyFilesAsAreAllowed(t *testing.T) {
	h := newHost(t)
	target := h.publishGrant(t)
	must(t, os.Mkdir(target+"/credentials/extra", 0o755))
	var want []string
	for i := range 64 {
		name := strings.Repeat("extra/", i%2) + strconv.Itoa(i)
		write(t, target+"/credentials/"+name, "x")
		want = append(want, name)
	}
	files, err := h.ReadPodFiles(t.Context(), grantVolume, "credentials", 64, 1)
	must(t, err)
	var got []string
	for _, file := range files {
		got = append(got, file.Name)
		must(t, file.Err)
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if _, err := h.ReadPodFiles(t.Context(), grantVolume, "other", 64, 1); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of a directory that does not exist: %v", err)
	}
	write(t, target+"/info", "")
	if _, err := h.ReadPodFiles(t.Context(), grantVolume, "info", 64, 1); !errors.Is(err, mount.ErrNotDirectory) {
		t.Errorf("of a file: %v", err)
	}
	must(t, h.UnpublishPod(t.Context(), grantVolume, target))
}

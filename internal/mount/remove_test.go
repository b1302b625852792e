package mount

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// makeTree fills a directory with all kinds of files that pods may leave.
func makeTree(t *testing.T, tree, outside string) {
	t.Helper()
	for i := range 700 {
		writeFile(t, filepath.Join(makeDir(t, tree, fmt.Sprint("dir-", i%7)), fmt.Sprint(i)), "")
	}
	must(t, os.Symlink(outside, tree+"/link"))
	must(t, os.Symlink("/", tree+"/dir-1/link"))
	must(t, os.Symlink("link", tree+"/dir-2/link"))
	must(t, unix.Mkfifo(tree+"/dir-3/pipe", 0o600))
	must(t, unix.Mknod(tree+"/zero", unix.S_IFCHR|0o600, int(unix.Mkdev(1, 5))))
	must(t, os.Mkdir(tree+"/closed", 0))
	must(t, os.Mkdir(tree+"/.deep-1", 0o700))
}

func wantGone(t *testing.T, path string) {
	t.Helper()
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Errorf("%s is still there: %v", path, err)
	}
}

func TestRemoveTreeDeletesEverythingInIt(t *testing.T) {
	dir := workDir(t)
	tree, outside := makeDir(t, dir, "tree"), makeDir(t, dir, "outside")
	writeFile(t, outside+"/canary", "canary")
	makeTree(t, tree, outside)
	for range 2 {
		must(t, RemoveTree(t.Context(), tree))
		wantGone(t, tree)
		wantFile(t, outside+"/canary", "canary")
	}
	must(t, RemoveTree(t.Context(), tree+"/parent/missing"))
}

// The tree has more levels than the process may have open files, and its paths are longer than the kernel allows.
func TestRemoveTreeOfAnyDepth(t *testing.T) {
	dir := workDir(t)
	tree := makeDir(t, dir, "tree")
	var files unix.Rlimit
	must(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &files))
	must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 128, Max: files.Max}))
	defer func() { must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &files)) }()
	in(t, here(t), func() error {
		if err := os.Mkdir(tree+"/.deep-2", 0o700); err != nil {
			return err
		}
		if err := unix.Chdir(tree); err != nil {
			return err
		}
		name := strings.Repeat("x", 200)
		for range 5_000 {
			if err := unix.Mkdir(name, 0o700); err != nil {
				return err
			}
			if err := unix.Chdir(name); err != nil {
				return err
			}
		}
		return nil
	})
	must(t, RemoveTree(t.Context(), tree))
	wantGone(t, tree)
}

func TestRemoveTreeLeavesAllIfAMountIsInIt(t *testing.T) {
	for name, test := range map[string]struct {
		point string
		mount func(from, at string) error
	}{
		"at the top":         {"", bindPlain},
		"below":              {"/dir-3/mounted", bindPlain},
		"deep":               {"/d" + strings.Repeat("/d", 50), bindPlain},
		"of a file":          {"/dir-3/3", func(from, at string) error { return bindPlain(from+"/canary", at) }},
		"layered":            {"/dir-1/mounted", func(from, at string) error { _ = bindPlain(from, at); return bindPlain(from, at) }},
		"another filesystem": {"/dir-2/mounted", func(_, at string) error { return mountTmpfs(at) }},
	} {
		t.Run(name, func(t *testing.T) {
			dir := workDir(t)
			tree, outside := makeDir(t, dir, "tree"), makeDir(t, dir, "outside")
			writeFile(t, outside+"/canary", "canary")
			makeTree(t, tree, outside)
			point := tree + test.point
			if _, err := os.Lstat(point); err != nil {
				makeDir(t, point)
			}
			must(t, test.mount(outside, point))

			err := RemoveTree(t.Context(), tree)
			wantError(t, err, ErrBusyMount)
			if err != nil && !strings.Contains(err.Error(), point) {
				t.Errorf("%v does not name %s", err, point)
			}
			wantFile(t, outside+"/canary", "canary")
			if test.point != "" {
				wantFile(t, tree+"/dir-0/0", "")
			}

			// The result is the same if the mount appears only after the mount table was read.
			if test.point != "" {
				held, err := openTrusted(tree, unix.O_RDONLY|unix.O_DIRECTORY)
				must(t, err)
				r := remover{ctx: t.Context(), top: held}
				wantError(t, r.empty(held, 0), ErrBusyMount)
				must(t, held.Close())
			}
			wantFile(t, outside+"/canary", "canary")
			must(t, Unmount(t.Context(), tree))
			must(t, RemoveTree(t.Context(), tree))
			wantGone(t, tree)
			wantFile(t, outside+"/canary", "canary")
		})
	}
}

func bindPlain(from, at string) error {
	return unix.Mount(from, at, "", unix.MS_BIND, "")
}

func TestRemoveTreeDoesNotTouchMountsOfOtherNamespaces(t *testing.T) {
	dir := workDir(t)
	tree, outside := makeDir(t, dir, "tree", "inner"), makeDir(t, dir, "outside")
	writeFile(t, outside+"/canary", "canary")
	other := newNamespace(t, dir, unix.MS_PRIVATE)
	in(t, other, func() error { return bindPlain(outside, tree) })
	must(t, RemoveTree(t.Context(), dir+"/tree"))
	wantGone(t, dir+"/tree")
	wantFile(t, outside+"/canary", "canary")
}

func TestRemoveTreeRefuses(t *testing.T) {
	dir := workDir(t)
	outside := makeDir(t, dir, "outside")
	writeFile(t, outside+"/canary", "canary")
	must(t, os.Symlink("outside", dir+"/link"))
	wantError(t, RemoveTree(t.Context(), dir+"/link"), ErrEscapes)
	wantError(t, RemoveTree(t.Context(), outside+"/canary"), unix.ENOTDIR)
	wantError(t, RemoveTree(t.Context(), "relative"), ErrInvalidName)
	wantError(t, RemoveTree(t.Context(), "/"), ErrInvalidName)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	wantError(t, RemoveTree(ctx, outside), context.Canceled)
	wantFile(t, outside+"/canary", "canary")
}

func TestRemoveTreeNeverFollowsWhatIsSwappedIn(t *testing.T) {
	dir := workDir(t)
	tree, outside := dir+"/tree", makeDir(t, dir, "outside", "sub")
	writeFile(t, outside+"/canary", "canary")
	swap := func() bool {
		return unix.Renameat2(unix.AT_FDCWD, tree+"/way", unix.AT_FDCWD, tree+"/spare", unix.RENAME_EXCHANGE) == nil
	}
	strike(t, rounds(2_000), func() int {
		makeDir(t, tree, "way", "sub", "sub")
		must(t, os.Symlink("../outside", tree+"/spare"))
		return during(t, swap, func() { must(t, RemoveTree(t.Context(), tree)) })
	})
	wantFile(t, outside+"/canary", "canary")
	wantGone(t, tree)
}

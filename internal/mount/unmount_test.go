package mount

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

func TestUnmount_RemovesStackedAndHiddenMounts(t *testing.T) {
	for name, places := range map[string][]string{
		"nothing":                {},
		"one":                    {""},
		"stacked":                {"", "", "", "", ""},
		"children":               {"", "/a", "/a/b", "/a/b/c", "/d"},
		"no mount at the top":    {"/a", "/a/b", "/d"},
		"hidden by a sibling":    {"", "/a/b", "/a", "/a/c"},
		"hidden at the top":      {"/a/b", "", "/a", ""},
		"hidden below the top":   {"/a/b/c", "/a/b", "/a", ""},
		"stacks under stacks":    {"", "/a", "/a", "", "/a", "/a/b", "/a/b", ""},
		"a hundred":              strings.Split(strings.Repeat("/a,", 100), ","),
		"names with white space": {"/a b", "/a b/\n", "/a b/\n/\\040", "/t\tb"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := workDir(t)
			target := makeDir(t, dir, "target")
			must(t, mountTmpfs(dir+"/targets"))
			for _, place := range places {
				must(t, mountTmpfs(target+place))
			}
			other := newNamespace(t, dir, unix.MS_SLAVE)
			wantCount(t, target, len(places))
			for range 2 {
				must(t, Unmount(t.Context(), target))
				wantCount(t, target, 0)
			}
			wantMounts(t, other, dir, "targets")
			must(t, Unmount(t.Context(), dir+"/targets"))
		})
	}
}

func TestUnmountOrderNeverReachesThroughAMount(t *testing.T) {
	mounts := []Mount{
		{ID: 10, Parent: 1, Point: "/t/a/b"}, // hidden by 11
		{ID: 11, Parent: 1, Point: "/t"},
		{ID: 12, Parent: 11, Point: "/t/a/b"}, // hidden by 13
		{ID: 13, Parent: 11, Point: "/t/a"},
		{ID: 14, Parent: 13, Point: "/t/a"},
		{ID: 15, Parent: 14, Point: "/t/a/c"},
		{ID: 16, Parent: 1, Point: "/tt"},
	}
	order, tops := []int{}, []string{}
	for _, mount := range unmountOrder(mounts) {
		order = append(order, mount.ID)
	}
	for _, mount := range treeTops(mounts) {
		tops = append(tops, mount.Point)
	}
	if diff := cmp.Diff([]int{15, 14, 13, 12, 11, 16, 10}, order); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"/t", "/tt"}, tops); diff != "" {
		t.Errorf("tops (-want +got):\n%s", diff)
	}
}

func wantCount(t *testing.T, path string, want int) {
	t.Helper()
	mounts, err := Mounts(path)
	must(t, err)
	if len(mounts) != want {
		t.Errorf("%d mounts at and below %s, want %d", len(mounts), path, want)
	}
}

func TestUnmountWorksInTheNamespaceOfItsCaller(t *testing.T) {
	dir := workDir(t)
	target := dir + "/target"
	must(t, mountTmpfs(target))
	other := newNamespace(t, dir, unix.MS_PRIVATE)
	in(t, other, func() error { return mountTmpfs(target + "/inner") })
	in(t, other, func() error { return Unmount(t.Context(), target) })
	wantMounts(t, other, dir)
	wantMounts(t, here(t), dir, "target")
	must(t, Unmount(t.Context(), target))
}

func TestUnmountOfPathsThatAreNotThere(t *testing.T) {
	dir := workDir(t)
	must(t, Unmount(t.Context(), dir+"/missing"))
	must(t, Unmount(t.Context(), dir+"/missing/too"))
	wantError(t, Unmount(t.Context(), "/"), ErrStillMounted)
	wantError(t, Unmount(t.Context(), "relative"), ErrInvalidName)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	wantError(t, Unmount(ctx, dir+"/missing"), context.Canceled)
}

func TestUnmountThroughALinkToTheKubeletDirectory(t *testing.T) {
	dir := workDir(t)
	makeDir(t, dir, "disk", "kubelet")
	must(t, os.Symlink("disk/kubelet", dir+"/kubelet"))
	target := dir + "/kubelet/target"
	must(t, mountTmpfs(target))
	mounted, err := IsMountPoint(target)
	if !mounted || err != nil {
		t.Errorf("mount point behind a link: %v, %v", mounted, err)
	}
	wantCount(t, target, 1)
	wantError(t, RemoveTree(t.Context(), target), ErrBusyMount)
	must(t, Unmount(t.Context(), target))
	wantCount(t, dir+"/disk", 0)
}

func TestUnmountDoesNotFollowTheLastLink(t *testing.T) {
	dir := workDir(t)
	must(t, mountTmpfs(dir+"/real"))
	must(t, os.Symlink("real", dir+"/link"))
	must(t, Unmount(t.Context(), dir+"/link"))
	wantMounts(t, here(t), dir, "real")
	must(t, Unmount(t.Context(), dir+"/real"))
}

func TestUnmountOfBusyMountsDetachesThem(t *testing.T) {
	dir := workDir(t)
	target := dir + "/target"
	must(t, mountTmpfs(target))
	must(t, mountTmpfs(target+"/inner"))
	must(t, mountTmpfs(target+"/idle"))
	writeFile(t, target+"/inner/file", "data")
	file, err := os.Open(target + "/inner/file")
	must(t, err)
	other := newNamespace(t, dir, unix.MS_SLAVE)
	must(t, Unmount(t.Context(), target))
	wantMounts(t, here(t), dir)
	wantMounts(t, other, dir)
	content := make([]byte, 4)
	if _, err := file.Read(content); err != nil || string(content) != "data" {
		t.Errorf("the user of the mount reads %q, %v", content, err)
	}
	must(t, file.Close())
}

// A pod swaps a directory in the path of one of its mounts with a link to the host, where a mount of the same name
// exists.
func TestUnmountNeverLeavesTheTree(t *testing.T) {
	dir := workDir(t)
	target, outside := makeDir(t, dir, "target"), makeDir(t, dir, "outside")
	must(t, mountTmpfs(outside+"/inner"))
	writeFile(t, outside+"/inner/canary", "canary")
	must(t, os.Symlink("../outside", target+"/spare"))
	makeDir(t, target, "way", "inner")
	swap := func() bool {
		exchange(target+"/way", target+"/spare")
		return true
	}
	refused := 0
	strike(t, rounds(500), func() int {
		must(t, mountTmpfs(target+"/way/inner"))
		swaps := during(t, swap, func() {
			for {
				err := Unmount(t.Context(), target)
				if err == nil {
					return
				}
				wantError(t, err, ErrStillMounted)
				refused++
			}
		})
		wantFile(t, outside+"/inner/canary", "canary")
		if info, err := os.Lstat(target + "/way"); err == nil && !info.IsDir() {
			exchange(target+"/way", target+"/spare")
		}
		return swaps
	})
	t.Logf("unmounting was refused %d times", refused)
	must(t, Unmount(t.Context(), outside))
}

func TestDeadFileSystemHangsNothing(t *testing.T) {
	dir := workDir(t)
	before := openDescriptors()
	pav, staged, target := makeDir(t, dir, "pav"), makeDir(t, dir, "staged"), makeDir(t, dir, "target")
	must(t, SelfBind(pav))
	server := serveFUSE(t, makeDir(t, pav, "volume"))
	must(t, mountTmpfs(pav+"/volume/inner"))
	server.silent.Store(true)

	done := make(chan error, 1)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	own := here(t)
	go func() {
		done <- own.Do(ctx, func() error {
			volume, err := openIn(pav)
			if err != nil {
				return err
			}
			return errors.Join(
				volume.Attach(staged, BindOptions{}), volume.Attach(staged, BindOptions{}),
				CreateDir(dir, "staged", 0o750), CreateFile(dir, "staged", 0o640),
				Bind(staged, target, BindOptions{ReadOnly: true}), Bind(staged, target, BindOptions{ReadOnly: true}),
				Cover(staged, target, BindOptions{ReadOnly: true}),
				volume.Close(), Separate(pav),
			)
		})
	}()
	must(t, <-done)
	wantMounts(t, own, dir, "pav", "pav/volume", "pav/volume/inner", "staged", "staged/inner", "target", "target/inner")
	for _, path := range []string{target, staged, pav} {
		must(t, unmountWithin(t.Context(), path, 2*time.Second))
	}
	wantMounts(t, own, dir)
	must(t, own.Close())
	server.close()
	wantDescriptorsAgain(t, before)
}

// wantDescriptorsAgain waits until threads that were given up have woken and closed their descriptors.
func wantDescriptorsAgain(t *testing.T, before map[string]int) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for time.Now().Before(deadline) {
		after := openDescriptors()
		maps.DeleteFunc(after, func(to string, count int) bool { return before[to] >= count })
		if len(after) == 0 {
			return
		}
		runtime.Gosched()
	}
	t.Errorf("descriptors are still open: %v, before %v", openDescriptors(), before)
}

func openIn(pav string) (*Volume, error) {
	dir, err := OpenDir(pav)
	if err != nil {
		return nil, err
	}
	volume, err := dir.OpenVolume("volume")
	return volume, errors.Join(err, dir.Close())
}

// A thread that was given up does not unmount later mounts when it wakes.
func TestGivenUpUnmountDoesNoMore(t *testing.T) {
	dir := workDir(t)
	before := openDescriptors()
	target := makeDir(t, dir, "target")
	server := serveFUSE(t, target)
	must(t, mountTmpfs(target+"/inner"))
	server.silent.Store(true)

	ctx, cancel := context.WithCancel(t.Context())
	woken := make(chan error, 1)
	own := here(t)
	go func() {
		woken <- own.Do(context.WithoutCancel(ctx), func() error { return unmountOneByOne(ctx, target) })
	}()
	// Only a call that already hangs in the kernel can return after the end of ctx. Whether it hangs yet makes no
	// difference to the checks.
	must(t, unmountWithin(t.Context(), target, 2*time.Second))
	wantMounts(t, own, dir)
	cancel()
	must(t, mountTmpfs(target))
	server.close()
	if err := <-woken; err == nil {
		t.Log("the thread had ended before it was given up")
	}
	wantMounts(t, own, dir, "target")
	must(t, own.Close())
	wantDescriptorsAgain(t, before)
	must(t, Unmount(t.Context(), target))
}

func TestMounts_DistinguishesOptions(t *testing.T) {
	dir := workDir(t)
	must(t, mountTmpfs(dir+"/a"))
	must(t, mountTmpfs(dir+"/ab"))
	all, err := Mounts(dir)
	must(t, err)
	only, err := Mounts(dir + "/a")
	must(t, err)
	if diff := cmp.Diff([]string{dir, dir + "/a", dir + "/ab"}, points(all)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{dir + "/a"}, points(only)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if only[0].Type != "tmpfs" || only[0].Root != "/" {
		t.Errorf("got %+v", only[0])
	}
	for path, want := range map[string]bool{dir: true, dir + "/a": true, dir + "/missing": false, dir + "/m/n": false, "/proc": true} {
		if got, err := IsMountPoint(path); err != nil || got != want {
			t.Errorf("IsMountPoint(%q) = %v, %v", path, got, err)
		}
	}
	unmountAllOf(t, filepath.Join(dir, "a"), dir+"/ab")
}

package mount

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// boundOnItself returns a working directory that is bound on itself. Each mount below it is in the mount table twice,
// once hidden.
func boundOnItself(t *testing.T) string {
	t.Helper()
	dir := workDir(t)
	must(t, unix.Mount(dir, dir, "", unix.MS_BIND, ""))
	t.Cleanup(func() { must(t, unix.Unmount(dir, unix.UMOUNT_NOFOLLOW)) })
	return dir
}

func TestAtLeavesOutWhatIsHidden(t *testing.T) {
	dir := boundOnItself(t)
	path := makeDir(t, dir, "path")
	must(t, SelfBind(path))
	all, err := Mounts(path)
	must(t, err)
	if len(all) != 2 {
		t.Fatalf("got %d mounts, want two", len(all))
	}
	wantStack := func(want ...string) {
		t.Helper()
		got, err := At(path)
		must(t, err)
		if len(got) != len(want) {
			t.Fatalf("got %+v, want types %q", got, want)
		}
		for i, mount := range got {
			if mount.Type != want[i] || i > 0 && mount.Parent != got[i-1].ID {
				t.Errorf("mount %d of the stack is %+v", i, mount)
			}
		}
		file, seen, err := openMountable(path)
		must(t, err)
		release(file)
		if seen.mountID != got[len(got)-1].ID {
			t.Errorf("mount %d is seen, but not the uppermost of %+v", seen.mountID, got)
		}
	}
	wantStack("tmpfs")
	must(t, Separate(path))
	must(t, unix.Mount("proc", path, "proc", 0, ""))
	wantStack("tmpfs", "proc")
	wantError(t, Separate(path), ErrStacked)
	must(t, Unmount(t.Context(), path))
	wantMounts(t, here(t), path)
}

// A mount whose directory was hidden afterwards cannot be bound, so it does not count as a mount point.
func TestWhatIsBelowAHiddenDirectoryIsNoMountPoint(t *testing.T) {
	dir := workDir(t)
	path := makeDir(t, dir, "path")
	must(t, mountTmpfs(path))
	must(t, unix.Mount(dir, dir, "", unix.MS_BIND, ""))
	mounted, err := IsMountPoint(path)
	if mounted || err != nil {
		t.Errorf("got %t, %v", mounted, err)
	}
	must(t, unix.Unmount(dir, unix.UMOUNT_NOFOLLOW))
	mounted, err = IsMountPoint(path)
	if !mounted || err != nil {
		t.Errorf("got %t, %v", mounted, err)
	}
	must(t, Unmount(t.Context(), path))
}

func TestPlaces_DistinguishCopiesFromOtherMounts(t *testing.T) {
	dir := workDir(t)
	below, path, other := makeDir(t, dir, "below"), makeDir(t, dir, "below/path"), makeDir(t, dir, "other")
	elsewhere := t.TempDir()
	must(t, unix.Mount(below, elsewhere, "", unix.MS_BIND, ""))
	must(t, SelfBind(path))
	must(t, BindShared(path, other))
	table, err := ReadTable()
	must(t, err)
	places := table.Places()
	at := func(path string) Place {
		t.Helper()
		mounts, err := At(path)
		must(t, err)
		if len(mounts) != 1 {
			t.Fatalf("got %+v at %q", mounts, path)
		}
		return places[mounts[0].ID]
	}
	if got, want := at(elsewhere+"/path"), at(path); got != want || got.Path != "/below/path" {
		t.Errorf("the copy lies on %+v, the mount on %+v", got, want)
	}
	if got := at(other); got == at(path) || got.Path != "/other" {
		t.Errorf("another bind lies on %+v", got)
	}
	unmountAllOf(t, other, path)
	must(t, Unmount(t.Context(), elsewhere))
}

// A volume that hangs blocks only one thread for each path.
func TestDoMountBeginsNothingWhileSomethingHangsAtThePath(t *testing.T) {
	namespace := here(t)
	hang, begun := make(chan struct{}), make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		ended <- namespace.DoMount(ctx, "/some/path", func() error { close(begun); <-hang; return nil })
	}()
	<-begun
	cancel()
	wantError(t, <-ended, ctx.Err())
	for range 3 {
		wantError(t, namespace.DoMount(t.Context(), "/some/path/", func() error { t.Error("it ran"); return nil }), ErrHangs)
	}
	must(t, namespace.DoMount(t.Context(), "/another/path", func() error { return nil }))
	close(hang)
	err := ErrHangs
	for limit := time.Now().Add(time.Minute); errors.Is(err, ErrHangs) && time.Now().Before(limit); runtime.Gosched() {
		err = namespace.DoMount(t.Context(), "/some/path", func() error { return nil })
	}
	must(t, err)

	// A function that never ran, failed or panicked does not block the path.
	wantError(t, namespace.DoMount(ctx, "/some/path", func() error { t.Error("it ran"); return nil }), ctx.Err())
	wantError(t, namespace.DoMount(t.Context(), "/some/path", func() error { return unix.EIO }), unix.EIO)
	wantError(t, namespace.DoMount(t.Context(), "/some/path", func() error { panic("") }), ErrPanic)
	must(t, namespace.DoMount(t.Context(), "/some/path", func() error { return nil }))
}

package mount

import (
	"context"
	"errors"
	"os"
	"runtime"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

func TestDoRunsInTheNamespaceAndNowhereElse(t *testing.T) {
	dir := workDir(t)
	target := makeDir(t, dir, "target")
	other := newNamespace(t, dir, unix.MS_PRIVATE)
	before, err := os.Readlink("/proc/self/ns/mnt")
	must(t, err)

	in(t, other, func() error { return mountTmpfs(target) })

	wantMounts(t, other, dir, "target")
	wantMounts(t, here(t), dir)
	after, err := os.Readlink("/proc/self/ns/mnt")
	must(t, err)
	if before != after {
		t.Errorf("the process moved from %s to %s", before, after)
	}
}

func TestDoIsConcurrent(t *testing.T) {
	dir := workDir(t)
	other := newNamespace(t, dir, unix.MS_PRIVATE)
	in(t, other, func() error { return mountTmpfs(dir + "/mark") })
	own := here(t)

	var group sync.WaitGroup
	for i := range 100 {
		group.Go(func() {
			namespace, want := own, false
			if i%2 == 0 {
				namespace, want = other, true
			}
			err := namespace.Do(t.Context(), func() error {
				got, err := IsMountPoint(dir + "/mark")
				if err == nil && got != want {
					err = errors.New("saw the other namespace")
				}
				return err
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	main, err := os.Readlink("/proc/self/ns/mnt")
	must(t, err)
	must(t, own.Do(t.Context(), func() error {
		thread, err := os.Readlink(ownNamespace)
		if err == nil && thread != main {
			err = errors.New("the main thread is in another namespace")
		}
		return err
	}))
}

func TestDoKeepsUmaskAndDirectoryToItself(t *testing.T) {
	unix.Umask(0o022)
	in(t, here(t), func() error {
		unix.Umask(0o777)
		return unix.Chdir("/proc")
	})
	if got := unix.Umask(0o022); got != 0o022 {
		t.Errorf("umask of the process became %o", got)
	}
	if wd, err := os.Getwd(); err != nil || wd == "/proc" {
		t.Errorf("working directory of the process became %q, %v", wd, err)
	}
}

func TestDoReturnsWhateverHappensToTheFunction(t *testing.T) {
	own := here(t)
	mine := errors.New("mine")
	for name, test := range map[string]struct {
		f    func() error
		want error
	}{
		"error":  {func() error { return mine }, mine},
		"panic":  {func() error { panic("boom") }, ErrPanic},
		"goexit": {func() error { runtime.Goexit(); return nil }, ErrPanic},
	} {
		t.Run(name, func(t *testing.T) {
			wantError(t, own.Do(t.Context(), test.f), test.want)
		})
	}
}

func TestDoGivesUpWithItsContextAndLetsTheFunctionEnd(t *testing.T) {
	own := here(t)
	ctx, cancel := context.WithCancel(t.Context())
	release, ended := make(chan struct{}), make(chan struct{})
	err := own.Do(ctx, func() error {
		cancel()
		<-release
		close(ended)
		return nil
	})
	wantError(t, err, context.Canceled)
	close(release)
	<-ended

	wantError(t, own.Do(ctx, func() error { t.Error("ran after the end"); return nil }), context.Canceled)
}

func TestOpenRefusesWhatIsNoMountNamespace(t *testing.T) {
	workDir(t)
	_, err := Open("/proc/self/ns/net")
	wantError(t, err, ErrNotNamespace)
	_, err = Open("/proc/self/status")
	wantError(t, err, ErrNotNamespace)
	_, err = Open("/nonexistent")
	wantError(t, err, os.ErrNotExist)

	closed, err := Open("/proc/self/ns/mnt")
	must(t, err)
	must(t, closed.Close())
	wantError(t, closed.Do(t.Context(), func() error { return nil }), os.ErrClosed)
}

func TestSupported(t *testing.T) {
	workDir(t)
	must(t, Supported())
	for range 2 {
		in(t, here(t), Supported)
	}
}

package mount

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/albertofaria/pav/test/mountns"
)

// inNamespace is the environment variable of a test binary that runs in a mount namespace of its own.
const inNamespace = "PAV_TEST_MOUNT_NAMESPACE"

// init keeps the first goroutine on the main thread, until TestMain has used it.
func init() { runtime.LockOSThread() }

// TestMain runs the tests in a new mount namespace that propagates nothing to the host, so that they can create real
// mounts. It fails if a mount or a descriptor is left.
func TestMain(m *testing.M) {
	if os.Getenv(inNamespace) == "" {
		os.Exit(reExecute())
	}
	if err := mountns.Restrict(); err != nil {
		fmt.Fprintln(os.Stderr, "FAIL:", err)
		os.Exit(1)
	}
	mountsBefore, fdsBefore := mustMounts(), openDescriptors()
	spared := mainThreadIsSpared()
	runtime.UnlockOSThread()
	code := m.Run()
	if !spared {
		fmt.Fprintln(os.Stderr, "FAIL: a function ran on the main thread")
		code = 1
	}
	if diff := cmp.Diff(mountsBefore, mustMounts()); diff != "" {
		fmt.Fprintln(os.Stderr, "FAIL: the suite left mounts (-before +after):\n"+diff)
		code = 1
	}
	if diff := cmp.Diff(fdsBefore, openDescriptors()); diff != "" {
		fmt.Fprintln(os.Stderr, "FAIL: the suite left descriptors (-before +after):\n"+diff)
		code = 1
	}
	os.Exit(code)
}

// reExecute runs this binary again in a new mount namespace, in which os/exec makes / private.
func reExecute() int {
	if os.Geteuid() != 0 {
		fmt.Fprintln(os.Stderr, "FAIL: these tests make real mounts and must run as root")
		return 1
	}
	again := &exec.Cmd{
		Path:   "/proc/self/exe",
		Args:   os.Args,
		Env:    append(os.Environ(), inNamespace+"=1"),
		Stdin:  os.Stdin,
		Stdout: os.Stdout,
		Stderr: os.Stderr,
		SysProcAttr: &syscall.SysProcAttr{
			Unshareflags: syscall.CLONE_NEWNS,
			Pdeathsig:    syscall.SIGKILL,
		},
	}
	err := again.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "FAIL: running the tests in a mount namespace:", err)
		return 1
	}
	return 0
}

// mainThreadIsSpared reports whether onOwnThread does not use the main thread. It must be called on the main thread.
func mainThreadIsSpared() bool {
	thread := make(chan int, 1)
	onOwnThread(func() { thread <- unix.Gettid() })
	return unix.Gettid() == unix.Getpid() && <-thread != unix.Getpid()
}

func mustMounts() []string {
	mounts, err := Mounts("/")
	if err != nil {
		panic(err)
	}
	return points(mounts)
}

func points(mounts []Mount) []string {
	list := make([]string, 0, len(mounts))
	for _, mount := range mounts {
		list = append(list, mount.Point)
	}
	return list
}

// openDescriptors counts the descriptors of this process by the files that they refer to, without those of the Go
// runtime's poller.
func openDescriptors() map[string]int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		panic(err)
	}
	found := make(map[string]int)
	for _, entry := range entries {
		to, err := os.Readlink("/proc/self/fd/" + entry.Name())
		if err == nil && !strings.HasPrefix(to, "anon_inode:[event") {
			found[to]++
		}
	}
	return found
}

// workDir creates a shared tmpfs, like a kubelet directory. The test fails if another mount is left in it, if it is
// busy, or if a descriptor leaks.
func workDir(t *testing.T) string {
	t.Helper()
	before := openDescriptors()
	dir := t.TempDir()
	must(t, unix.Mount("work", dir, "tmpfs", 0, "mode=755"))
	must(t, unix.Mount("", dir, "", unix.MS_SHARED, ""))
	t.Cleanup(func() {
		left, err := Mounts(dir)
		must(t, err)
		if diff := cmp.Diff([]string{dir}, points(left)); diff != "" {
			t.Errorf("mounts are left (-want +got):\n%s", diff)
			must(t, Unmount(context.WithoutCancel(t.Context()), dir))
		} else if err := unix.Unmount(dir, unix.UMOUNT_NOFOLLOW); err != nil {
			t.Errorf("working directory is busy: %v", err)
			must(t, unix.Unmount(dir, unix.MNT_DETACH))
		}
		after := openDescriptors()
		maps.DeleteFunc(after, func(to string, count int) bool { return before[to] >= count })
		if len(after) > 0 {
			t.Errorf("descriptors are left: %v", after)
		}
	})
	return dir
}

// newNamespace returns a copy of the current mount namespace, such as a container of another node component has. dir
// and everything below it get the propagation, if any.
func newNamespace(t *testing.T, dir string, propagation uintptr) *Namespace {
	t.Helper()
	var namespace *Namespace
	done := make(chan error, 1)
	go onOwnThread(func() {
		done <- func() error {
			if err := unix.Unshare(unix.CLONE_FS | unix.CLONE_NEWNS); err != nil {
				return err
			}
			if propagation != 0 {
				if err := unix.Mount("", dir, "", propagation|unix.MS_REC, ""); err != nil {
					return err
				}
			}
			var err error
			namespace, err = Open(ownNamespace)
			return err
		}()
	})
	must(t, <-done)
	t.Cleanup(func() { _ = namespace.Close() })
	return namespace
}

// in runs f in a namespace and fails the test on an error.
func in(t *testing.T, namespace *Namespace, f func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	must(t, namespace.Do(ctx, f))
}

// here returns the mount namespace of the tests.
func here(t *testing.T) *Namespace {
	t.Helper()
	namespace, err := Open("/proc/self/ns/mnt")
	must(t, err)
	t.Cleanup(func() { _ = namespace.Close() })
	return namespace
}

// wantMounts compares the mounts below dir, in a namespace, with names relative to dir.
func wantMounts(t *testing.T, namespace *Namespace, dir string, want ...string) {
	t.Helper()
	got := []string{}
	in(t, namespace, func() error {
		mounts, err := Mounts(dir)
		for _, point := range points(mounts) {
			if relative, inside := strings.CutPrefix(point, dir+"/"); inside {
				got = append(got, relative)
			}
		}
		return err
	})
	if want == nil {
		want = []string{}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("mounts below %s (-want +got):\n%s", dir, diff)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantError(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("got error %v, want %v", err, want)
	}
}

// makeDir makes a directory, with parents, and returns its path.
func makeDir(t *testing.T, parts ...string) string {
	t.Helper()
	path := filepath.Join(parts...)
	must(t, os.MkdirAll(path, 0o755))
	return path
}

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	must(t, os.WriteFile(path, []byte(content), 0o644))
}

func wantFile(t *testing.T, path, want string) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil || string(got) != want {
		t.Errorf("reading %s: got %q, %v; want %q", path, got, err, want)
	}
}

func mountTmpfs(path string) error {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return err
	}
	return unix.Mount("test", path, "tmpfs", 0, "mode=755")
}

func openDir(t *testing.T, path string) *Dir {
	t.Helper()
	dir, err := OpenDir(path)
	must(t, err)
	t.Cleanup(func() { _ = dir.Close() })
	return dir
}

// repeatedly runs disturb in the background until the returned function is called, which waits for the end of the last
// run.
func repeatedly(t *testing.T, disturb func(round int)) (stop func()) {
	t.Helper()
	quit, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for round := 0; ; round++ {
			select {
			case <-quit:
				return
			default:
				disturb(round)
			}
		}
	}()
	return func() {
		close(quit)
		<-ended
	}
}

// exchange swaps two names atomically.
func exchange(a, b string) {
	if err := unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE); err != nil {
		panic(err)
	}
}

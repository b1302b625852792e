package pavdir

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/albertofaria/pav/internal/mount"
)

// silentFUSE mounts a file system that never answers, like that of a stuck staging pod, until the returned function is
// called.
func silentFUSE(t *testing.T, path string) (end func()) {
	t.Helper()
	fd, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	must(t, err)
	must(t, unix.Mount("silent", path, "fuse", 0, fmt.Sprintf("fd=%d,rootmode=40755,user_id=0,group_id=0,allow_other", fd)))
	return func() { must(t, unix.Close(fd)) }
}

// If a pod mounts a file system over its /pav, the error says so, whether the file system answers, hangs, or is dead.
func TestMountOverThePavOfAStage_IsNotRead(t *testing.T) {
	for name, cover := range map[string]func(t *testing.T, target string) (end func()){
		"a file system that answers": func(t *testing.T, target string) func() {
			t.Helper()
			must(t, unix.Mount("test", target, "tmpfs", 0, "mode=755"))
			must(t, os.Mkdir(target+"/volume", 0o755))
			write(t, target+"/ready", "")
			write(t, target+"/error", "not read")
			return func() {}
		},
		"a file system that hangs": silentFUSE,
		"a file system that is dead": func(t *testing.T, target string) func() {
			t.Helper()
			silentFUSE(t, target)()
			return func() {}
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			must(t, h.Prepare(ctx, "s"))
			target := h.target(t, "pod")
			must(t, h.Publish(ctx, "s", target))
			end := cover(t, target)

			const words = "something is mounted over /pav"
			if ready, err := h.Ready(ctx, "s"); ready || !errors.Is(err, mount.ErrEscapes) || !strings.Contains(err.Error(), words) {
				t.Errorf("Ready: got %t, %v", ready, err)
			}
			if text := h.PodError(ctx, "s", time.Time{}); !strings.HasPrefix(text, "(/pav/error cannot be read: ") || !strings.Contains(text, words) {
				t.Errorf("PodError: got %q", text)
			}
			for _, a := range []Attachment{directoryVolume, deviceVolume} {
				if err := h.Attach(ctx, "s", a); !errors.Is(err, ErrNoVolume) || !strings.Contains(err.Error(), words) {
					t.Errorf("Attach: got error %v", err)
				}
			}
			mustSay(t, false)(h.Attached(ctx, "s"))
			if ctx.Err() != nil {
				t.Error("something hung")
			}

			end()
			mustSay(t, "s")(h.Unpublish(t.Context(), target))
			must(t, h.Reset(t.Context(), "s"))
			mustSay(t, false)(h.Ready(t.Context(), "s"))
			must(t, h.Remove(t.Context(), "s"))
		})
	}
}

// A volume that hangs blocks no caller beyond the deadline of the call, and does not prevent the removal of the stage.
func TestAVolumeThatHangs_BlocksNoCallForever(t *testing.T) {
	h := newHost(t)
	must(t, h.Prepare(t.Context(), "s"))
	must(t, os.Mkdir(h.pav("s")+"/volume", 0o755))
	end := silentFUSE(t, h.pav("s")+"/volume")
	write(t, h.pav("s")+"/ready", "")
	mustSay(t, true)(h.Ready(t.Context(), "s"))
	must(t, h.Attach(t.Context(), "s", directoryVolume))
	mustSay(t, true)(h.Attached(t.Context(), "s"))
	must(t, h.Detach(t.Context(), "s"))
	must(t, os.Rename(h.pav("s")+"/ready", h.pav("s")+"/was-ready"))
	end()
	must(t, h.Renew(t.Context(), "s"))
	h.wantMounts(t, h.kubelet)

	// A link into a file system that hangs must be followed.
	must(t, h.Prepare(t.Context(), "s"))
	must(t, os.Mkdir(h.pav("s")+"/mounted", 0o755))
	end = silentFUSE(t, h.pav("s")+"/mounted")
	must(t, os.Symlink("mounted/volume", h.pav("s")+"/volume"))
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if err := h.Attach(ctx, "s", directoryVolume); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got error %v", err)
	}
	// Until the kernel has answered, no other call asks it.
	patient, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for range 3 {
		if err := h.Attach(patient, "s", directoryVolume); !errors.Is(err, mount.ErrHangs) {
			t.Errorf("got error %v", err)
		}
	}
	end()
	err := mount.ErrHangs
	for limit := time.Now().Add(time.Minute); errors.Is(err, mount.ErrHangs) && time.Now().Before(limit); runtime.Gosched() {
		err = h.Attach(t.Context(), "s", directoryVolume)
	}
	if err == nil || errors.Is(err, mount.ErrHangs) {
		t.Errorf("of a volume that is dead: got error %v", err)
	}
	must(t, h.Remove(t.Context(), "s"))
	mustSay(t, false)(h.Exists(t.Context(), "s"))
}

// A pod may leave files that hang when they are opened, or that lead to files outside.
func TestReadyAndPodError_OfHostileFiles(t *testing.T) {
	h := newHost(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	canary := t.TempDir() + "/canary"
	write(t, canary, "outside")
	for name, test := range map[string]struct {
		leave func(t *testing.T, file string) (end func())
		text  string // a part of the text of /pav/error; empty if there is no text
	}{
		"a link to nothing": {func(t *testing.T, file string) func() {
			t.Helper()
			must(t, os.Symlink("nothing", file))
			return func() {}
		}, "cannot be read"},
		"a link to what is outside": {func(t *testing.T, file string) func() {
			t.Helper()
			must(t, os.Symlink(canary, file))
			return func() {}
		}, "cannot be read"},
		"what is outside, bound": {func(t *testing.T, file string) func() {
			t.Helper()
			write(t, file, "")
			must(t, unix.Mount(canary, file, "", unix.MS_BIND, ""))
			return func() { must(t, unix.Unmount(file, 0)) }
		}, "cannot be read"},
		"a link into what hangs": {func(t *testing.T, file string) func() {
			t.Helper()
			must(t, os.Mkdir(file+"-mount", 0o755))
			end := silentFUSE(t, file+"-mount")
			must(t, os.Symlink(file+"-mount/x", file))
			return end
		}, "cannot be read"},
		"what hangs": {func(t *testing.T, file string) func() {
			t.Helper()
			must(t, os.Mkdir(file, 0o755))
			return silentFUSE(t, file)
		}, ""}, // The file system is not asked, and its root seems older than the pod.
		"a pipe": {func(t *testing.T, file string) func() {
			t.Helper()
			must(t, unix.Mkfifo(file, 0o644))
			return func() {}
		}, "cannot be read"},
		"a terminal": {func(t *testing.T, file string) func() {
			t.Helper()
			must(t, unix.Mknod(file, unix.S_IFCHR|0o600, int(unix.Mkdev(5, 0))))
			return func() {}
		}, "cannot be read"},
		"a file without end": {func(t *testing.T, file string) func() {
			t.Helper()
			write(t, file, "")
			must(t, os.Truncate(file, 10<<30))
			return func() {}
		}, "cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			must(t, h.Prepare(ctx, "s"))
			ends := []func(){test.leave(t, h.pav("s")+"/ready"), test.leave(t, h.pav("s")+"/error")}
			mustSay(t, true)(h.Ready(ctx, "s"))
			text := h.PodError(ctx, "s", time.Now().Add(-time.Hour))
			if !strings.Contains(text, test.text) || test.text == "" && text != "" || strings.Contains(text, "outside") {
				t.Errorf("got %q, want %q", text, test.text)
			}
			for _, end := range ends {
				end()
			}
			must(t, h.Remove(ctx, "s"))
			wantFile(t, canary, "outside")
		})
	}
}

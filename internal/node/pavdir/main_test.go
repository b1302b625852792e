package pavdir

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/albertofaria/pav/internal/mount"
	"github.com/albertofaria/pav/test/mountns"
)

func TestMain(m *testing.M) { os.Exit(mountns.Run(m)) }

// host is a node with a kubelet directory, which is shared as on a real node, and with PaV's directories below it.
type host struct {
	*Directories
	kubelet string
	woken   chan string
}

func newHost(t *testing.T) *host {
	t.Helper()
	h := &host{kubelet: t.TempDir(), woken: make(chan string, 100)}
	must(t, unix.Mount("kubelet", h.kubelet, "tmpfs", 0, "mode=755"))
	must(t, unix.Mount("", h.kubelet, "", unix.MS_SHARED, ""))
	must(t, os.Mkdir(h.kubelet+"/plugins", 0o755))
	namespace, err := mount.Open("/proc/self/ns/mnt")
	must(t, err)
	h.Directories, err = New(namespace, h.kubelet, func(stage string) { h.woken <- stage })
	must(t, err)
	t.Cleanup(func() {
		must(t, h.Close())
		must(t, namespace.Close())
		if left := h.mounts(t, h.kubelet); len(left) > 0 {
			t.Errorf("mounts are left: %s", left)
		}
		must(t, unix.Unmount(h.kubelet, unix.MNT_DETACH))
	})
	return h
}

// mounts returns the mount points below a path, relative to it.
func (h *host) mounts(t *testing.T, path string) []string {
	t.Helper()
	all, err := mount.Mounts(path)
	must(t, err)
	below := []string{}
	for _, m := range all {
		if name, ok := strings.CutPrefix(m.Point, path+"/"); ok {
			below = append(below, name)
		}
	}
	slices.Sort(below)
	return below
}

func (h *host) wantMounts(t *testing.T, path string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(append([]string{}, want...), h.mounts(t, path)); diff != "" {
		t.Errorf("mounts below %s (-want +got):\n%s", path, diff)
	}
}

// target returns the path at which kubelet requests the /pav of a pod.
func (h *host) target(t *testing.T, pod string) string {
	t.Helper()
	volume := filepath.Join(h.kubelet, "pods", pod, "volumes/kubernetes.io~csi/pav")
	must(t, os.MkdirAll(volume, 0o750))
	return volume + "/mount"
}

// container runs a shell script as a privileged container with bidirectional mount propagation does: in a mount
// namespace of its own.
func container(t *testing.T, script string, args ...string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "unshare", append([]string{"--mount", "--propagation", "unchanged", "sh", "-euc", script, "sh"}, args...)...)
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("in a container: %v: %s", err, out)
	}
}

// wantWoken waits for a wake-up call for the stage.
func (h *host) wantWoken(t *testing.T, stage string) {
	t.Helper()
	select {
	case got := <-h.woken:
		if got != stage {
			t.Errorf("woken for stage %q, want %q", got, stage)
		}
	case <-time.After(time.Minute):
		t.Fatalf("nobody was woken for stage %q", stage)
	}
}

// twoPods publishes the /pav of the stage "s" for two pods, of which the first mounts a file system at /pav/volume.
func (h *host) twoPods(t *testing.T) (one, two string) {
	t.Helper()
	ctx := t.Context()
	must(t, h.Prepare(ctx, "s"))
	one, two = h.target(t, "one"), h.target(t, "two")
	must(t, h.Publish(ctx, "s", one))
	must(t, h.Publish(ctx, "s", two))
	container(t, `mkdir "$1/volume"; mount -t tmpfs test "$1/volume"; printf data > "$1/volume/file"`, one)
	return one, two
}

// wantUsers fails the test unless pods have the /pav of the stage "s" at these paths.
func (h *host) wantUsers(t *testing.T, want ...string) {
	t.Helper()
	if got, err := h.Users(t.Context(), "s"); err != nil || !slices.Equal(got, want) {
		t.Errorf("the users are %q, %v; want %q", got, err, want)
	}
}

func mustSay[T comparable](t *testing.T, want T) func(got T, err error) {
	t.Helper()
	return func(got T, err error) {
		t.Helper()
		if err != nil || got != want {
			t.Errorf("got %v, %v; want %v", got, err, want)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	must(t, os.WriteFile(path, []byte(text), 0o644))
}

func wantFile(t *testing.T, path, want string) {
	t.Helper()
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("%s has %q, %v; want %q", path, got, err, want)
	}
}

func tmpfs(t *testing.T, path string) {
	t.Helper()
	must(t, os.MkdirAll(path, 0o755))
	must(t, unix.Mount("test", path, "tmpfs", 0, "mode=755"))
}

// canceled returns a context that has ended.
func canceled(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

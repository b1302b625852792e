package pavdir

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/albertofaria/pav/internal/mount"
)

// layouts returns functions that arrange a node so that mounts below kubelet's directory are in the mount table more
// than once. Each returns another path of that directory, if there is one.
func layouts() map[string]func(t *testing.T, h *host) (elsewhere string) {
	return map[string]func(t *testing.T, h *host) string{
		"kubelet's directory is bound on itself": func(t *testing.T, h *host) string {
			t.Helper()
			must(t, unix.Mount(h.kubelet, h.kubelet, "", unix.MS_BIND, ""))
			t.Cleanup(func() { must(t, unix.Unmount(h.kubelet, 0)) })
			return h.kubelet
		},
		"kubelet's directory is bound elsewhere": func(t *testing.T, h *host) string {
			t.Helper()
			return h.boundFrom(t, h.kubelet)
		},
		"a directory above it is bound elsewhere": func(t *testing.T, h *host) string {
			t.Helper()
			return h.boundFrom(t, filepath.Dir(h.kubelet)) + "/" + filepath.Base(h.kubelet)
		},
	}
}

// boundFrom binds a directory, with all mounts below it, to another path until the end of the test, and returns that
// path.
func (h *host) boundFrom(t *testing.T, dir string) string {
	t.Helper()
	elsewhere := t.TempDir()
	must(t, unix.Mount(dir, elsewhere, "", unix.MS_BIND|unix.MS_REC, ""))
	t.Cleanup(func() {
		for _, left := range h.mounts(t, elsewhere) {
			if left != filepath.Base(h.kubelet) {
				t.Errorf("a mount is left: %s", left)
			}
		}
		must(t, unix.Unmount(elsewhere, unix.MNT_DETACH))
	})
	return elsewhere
}

func TestAStage_WhereKubeletsDirectoryIsMountedMoreThanOnce(t *testing.T) {
	for name, arrange := range layouts() {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			ctx := t.Context()
			elsewhere := arrange(t, h)
			must(t, h.Prepare(ctx, "s"))
			staging, unstaging, user := h.target(t, "staging"), h.target(t, "unstaging"), h.target(t, "user")
			must(t, h.Publish(ctx, "s", staging))
			container(t, `mkdir "$1/volume"; mount -t tmpfs test "$1/volume"; printf data > "$1/volume/file"; touch "$1/ready"`, staging)
			mustSay(t, true)(h.Ready(ctx, "s"))
			must(t, h.Attach(ctx, "s", directoryVolume))
			mustSay(t, true)(h.Attached(ctx, "s"))
			wantFile(t, h.Volume("s")+"/file", "data")
			mustSay(t, true)(h.InUse(ctx, "s"))

			// The mounts of the pod stay. Nothing of the target is left, neither hidden nor elsewhere.
			mustSay(t, "s")(h.Unpublish(ctx, staging))
			wantFile(t, h.pav("s")+"/volume/file", "data")
			mustSay(t, false)(h.InUse(ctx, "s"))
			h.wantMounts(t, h.kubelet+"/pods")
			h.wantMounts(t, elsewhere+"/pods")

			must(t, os.Mkdir(user, 0o755))
			for range 2 {
				must(t, mount.Bind(h.Volume("s"), user, mount.BindOptions{ReadOnly: true}))
			}
			must(t, mount.Unmount(ctx, user))
			h.wantMounts(t, elsewhere+"/pods")

			must(t, h.Publish(ctx, "s", unstaging))
			wantFile(t, unstaging+"/volume/file", "data")
			container(t, `umount "$1/volume"`, unstaging)
			if _, err := os.Lstat(h.pav("s") + "/volume/file"); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the volume is left in the stage's directory: %v", err)
			}
			mustSay(t, "s")(h.Unpublish(ctx, unstaging))
			mustSay(t, false)(h.InUse(ctx, "s"))
			must(t, h.Detach(ctx, "s"))
			mustSay(t, false)(h.Attached(ctx, "s"))
			must(t, h.Remove(ctx, "s"))
			mustSay(t, false)(h.Exists(ctx, "s"))
		})
	}
}

func TestMountOverPav_IsNoticed_IfKubeletsDirectoryIsMountedMoreThanOnce(t *testing.T) {
	for name, arrange := range layouts() {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			ctx := t.Context()
			arrange(t, h)
			must(t, h.Prepare(ctx, "s"))
			target := h.target(t, "pod")
			must(t, h.Publish(ctx, "s", target))
			container(t, `mount -t tmpfs test "$1"; touch "$1/ready"`, target)
			if ready, err := h.Ready(ctx, "s"); ready || !errors.Is(err, errCovered) {
				t.Errorf("Ready: got %t, %v", ready, err)
			}
			mustSay(t, "s")(h.Unpublish(ctx, target))
			mustSay(t, false)(h.Ready(ctx, "s"))
			must(t, h.Remove(ctx, "s"))
		})
	}
}

// A directory is in use as long as it is mounted anywhere, even if only at a path outside kubelet's directory.
func TestUsers_NamesMountPoints_WithoutCopiesOfTheStagesOwn(t *testing.T) {
	h := newHost(t)
	ctx := t.Context()
	must(t, h.Prepare(ctx, "s"))
	h.wantUsers(t)
	elsewhere := h.boundFrom(t, h.kubelet) // After Prepare, so that it has a copy of the stage's own mount, which did not propagate.
	h.wantUsers(t)
	target := h.target(t, "pod")
	must(t, h.Publish(ctx, "s", target))
	want := []string{target, elsewhere + target[len(h.kubelet):]}
	slices.Sort(want)
	h.wantUsers(t, want...)
	mustSay(t, "s")(h.Unpublish(ctx, target))
	h.wantUsers(t)
	must(t, h.Remove(ctx, "s"))
}

func TestUnpublish_OfOneOfTwoPods_WhereKubeletsDirectoryIsBoundElsewhere(t *testing.T) {
	h := newHost(t)
	ctx := t.Context()
	elsewhere := h.boundFrom(t, h.kubelet)
	one, two := h.twoPods(t)
	mustSay(t, "s")(h.Unpublish(ctx, one))
	mustSay(t, true)(h.InUse(ctx, "s"))
	wantFile(t, two+"/volume/file", "data")
	wantFile(t, h.pav("s")+"/volume/file", "data")
	h.wantMounts(t, elsewhere+one[len(h.kubelet):])
	mustSay(t, "s")(h.Unpublish(ctx, two))
	mustSay(t, false)(h.InUse(ctx, "s"))
	h.wantMounts(t, elsewhere+"/pods")
	wantFile(t, h.pav("s")+"/volume/file", "data")
	must(t, h.Remove(ctx, "s"))
}

// The agent may be killed after each step of parting one pod's /pav from the other's.
func TestUnpublish_OfOneOfTwoPods_ResumesAfterAnInterruption_WhereKubeletsDirectoryIsBoundElsewhere(t *testing.T) {
	steps := []struct {
		name string
		do   func(target, elsewhere string) error
	}{
		{"the copy left the group", func(_, elsewhere string) error { return mount.Isolate(elsewhere) }},
		{"the copy was unmounted", func(_, elsewhere string) error { return mount.Unmount(t.Context(), elsewhere) }},
		{"the target left the group", func(target, _ string) error { return mount.Isolate(target) }},
	}
	for i := range steps {
		for _, first := range []string{"one", "two"} {
			t.Run(steps[i].name+", then "+first+" is unpublished first", func(t *testing.T) {
				h := newHost(t)
				ctx := t.Context()
				elsewhere := h.boundFrom(t, h.kubelet)
				one, two := h.twoPods(t)
				for _, step := range steps[:i+1] {
					must(t, step.do(one, elsewhere+one[len(h.kubelet):]))
				}
				order := []string{one, two}
				if first == "two" {
					slices.Reverse(order)
				}
				mustSay(t, "s")(h.Unpublish(ctx, order[0]))
				mustSay(t, true)(h.InUse(ctx, "s"))
				wantFile(t, order[1]+"/volume/file", "data")
				mustSay(t, "s")(h.Unpublish(ctx, order[1]))
				mustSay(t, false)(h.InUse(ctx, "s"))
				h.wantMounts(t, elsewhere+"/pods")
				wantFile(t, h.pav("s")+"/volume/file", "data")
				must(t, h.Remove(ctx, "s"))
			})
		}
	}
}

// The copy of a mount that the bind of kubelet's directory hides cannot be unmounted by itself.
func TestPublish_ToASecondPod_WaitsForTheFirst_WhereKubeletsDirectoryIsBoundOnItself(t *testing.T) {
	h := newHost(t)
	ctx := t.Context()
	layouts()["kubelet's directory is bound on itself"](t, h)
	must(t, h.Prepare(ctx, "s"))
	one, two := h.target(t, "one"), h.target(t, "two")
	for range 2 {
		must(t, h.Publish(ctx, "s", one))
	}
	container(t, `mkdir "$1/volume"; mount -t tmpfs test "$1/volume"; printf data > "$1/volume/file"`, one)
	if err := h.Publish(ctx, "s", two); !errors.Is(err, ErrHidden) {
		t.Errorf("publishing for a second pod: %v, want ErrHidden", err)
	}
	mustSay(t, "s")(h.Unpublish(ctx, one))
	must(t, h.Publish(ctx, "s", two))
	wantFile(t, two+"/volume/file", "data")
	mustSay(t, "s")(h.Unpublish(ctx, two))
	mustSay(t, false)(h.InUse(ctx, "s"))
	h.wantMounts(t, h.kubelet+"/pods")
	must(t, h.Remove(ctx, "s"))
}

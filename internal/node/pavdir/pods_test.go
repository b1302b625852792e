package pavdir

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/albertofaria/pav/internal/mount"
)

var (
	volume = "csi-" + strings.Repeat("0123456789abcdef", 4)
	pod    = Pod{Namespace: "ns", Name: "create-1", UID: "uid"}
)

// own returns the directory of a pod.
func (h *host) own(t *testing.T, id string) directory {
	t.Helper()
	of, err := h.ofPod(id)
	must(t, err)
	return of
}

// wantPod checks which pod's directory the volume has; nil means none.
func (h *host) wantPod(t *testing.T, id string, want *Pod) {
	t.Helper()
	got, exists, err := h.Pod(t.Context(), id)
	must(t, err)
	if diff := cmp.Diff(want, got); diff != "" || exists != (want != nil) {
		t.Errorf("pod on record (-want +got, exists: %t):\n%s", exists, diff)
	}
}

func TestPublishPod_GivesAPodANewDirectoryOfItsOwn_WhichStays(t *testing.T) {
	h := newHost(t)
	ctx := t.Context()
	h.wantPod(t, volume, nil)
	target := h.target(t, "pod")
	must(t, h.PublishPod(ctx, volume, pod, target))
	h.wantPod(t, volume, &pod)
	of := h.own(t, volume)
	h.wantMounts(t, of.path, "pav")
	for path, want := range map[string]os.FileMode{of.pav(): 0o777, of.path: 0o750, h.pods(): 0o750, of.path + "/pod.json": 0o600} {
		info, err := os.Stat(path)
		must(t, err)
		if info.Mode().Perm() != want {
			t.Errorf("%s has the mode %o, want %o", path, info.Mode().Perm(), want)
		}
	}
	container(t, `[ -z "$(ls -A "$1")" ]; printf data > "$1/handle"`, target)

	// The next agent continues where this one ended, whether kubelet repeats its call or not.
	next, err := New(h.host, h.kubelet, func(string) {})
	must(t, err)
	for range 2 {
		must(t, next.PublishPod(ctx, volume, pod, target))
	}
	wantFile(t, target+"/handle", "data")
	mustSay(t, "data")(next.ReadPod(ctx, volume, "handle", 4))
	must(t, next.Close())

	other := "csi-" + strings.Repeat("f", 64)
	must(t, h.PublishPod(ctx, other, Pod{Namespace: "ns", Name: "create-2", UID: "uid2"}, h.target(t, "other")))
	if _, err := h.ReadPod(ctx, other, "handle", 4); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("another pod sees the file: %v", err)
	}
	must(t, h.UnpublishPod(ctx, other, h.target(t, "other")))
	wantFile(t, target+"/handle", "data")
	must(t, h.UnpublishPod(ctx, volume, target))
	h.wantPod(t, volume, nil)
	h.wantMounts(t, h.kubelet)
	must(t, h.RemoveRoot(ctx))
	if _, err := os.Lstat(h.root()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("PaV's directory is left: %v", err)
	}
}

func TestPublishPod_ResumesAfterAnInterruption(t *testing.T) {
	for name, interrupt := range map[string]func(t *testing.T, of directory, target string){
		"before anything was mounted": func(t *testing.T, of directory, target string) {
			t.Helper()
			must(t, unix.Unmount(target, 0))
			must(t, unix.Unmount(of.pav(), 0)) // This is also the state after a reboot.
		},
		"before there was a directory": func(t *testing.T, of directory, target string) {
			t.Helper()
			must(t, unix.Unmount(target, 0))
			must(t, unix.Unmount(of.pav(), 0))
			must(t, os.RemoveAll(of.pav()))
		},
		"before the pod was on record": func(t *testing.T, of directory, target string) {
			t.Helper()
			must(t, unix.Unmount(target, 0))
			must(t, unix.Unmount(of.pav(), 0))
			must(t, os.RemoveAll(of.pav()))
			must(t, os.Rename(of.path+"/pod.json", of.path+"/.pod.json"))
			must(t, os.Truncate(of.path+"/.pod.json", 5))
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			target := h.target(t, "pod")
			must(t, h.PublishPod(t.Context(), volume, pod, target))
			interrupt(t, h.own(t, volume), target)
			must(t, h.PublishPod(t.Context(), volume, pod, target))
			h.wantPod(t, volume, &pod)
			write(t, target+"/handle", "data")
			mustSay(t, "data")(h.ReadPod(t.Context(), volume, "handle", 4))
			must(t, h.UnpublishPod(t.Context(), volume, target))
			h.wantPod(t, volume, nil)
		})
	}
}

func TestPublishPod_MountsNothingForACallThatHasEnded(t *testing.T) {
	h := newHost(t)
	target := h.target(t, "pod")
	if err := h.PublishPod(canceled(t), volume, pod, target); err == nil {
		t.Error("/pav is published")
	}
	h.wantMounts(t, h.kubelet)
	must(t, h.UnpublishPod(t.Context(), volume, target))
}

func TestPublishPod_RefusesTheDirectoryOfAnotherPod_AndAnInvalidRecord(t *testing.T) {
	h := newHost(t)
	target := h.target(t, "pod")
	must(t, h.PublishPod(t.Context(), volume, pod, target))
	other := pod
	other.UID = "other"
	if err := h.PublishPod(t.Context(), volume, other, h.target(t, "other")); err == nil {
		t.Error("another pod gets the directory")
	}
	h.wantPod(t, volume, &pod)
	write(t, h.own(t, volume).path+"/pod.json", "{")
	if err := h.PublishPod(t.Context(), volume, pod, target); err == nil {
		t.Error("a record that cannot be read is no matter when publishing")
	}
	if _, _, err := h.Pod(t.Context(), volume); err == nil {
		t.Error("a record that cannot be read is no matter when collecting")
	}
	must(t, h.UnpublishPod(t.Context(), volume, target))
}

func TestUnpublishPod_ResumesAfterAnInterruption_AndIsIdempotent(t *testing.T) {
	for name, interrupt := range map[string]func(t *testing.T, of directory, target string){
		"that never came": func(*testing.T, directory, string) {},
		"after the target was unmounted": func(t *testing.T, _ directory, target string) {
			t.Helper()
			must(t, unix.Unmount(target, 0))
		},
		"after the target was removed": func(t *testing.T, _ directory, target string) {
			t.Helper()
			must(t, unix.Unmount(target, 0))
			must(t, os.Remove(target))
		},
		"after the source left the group": func(t *testing.T, of directory, _ string) {
			t.Helper()
			must(t, mount.Separate(of.pav()))
		},
		"after the record was removed": func(t *testing.T, of directory, target string) {
			t.Helper()
			must(t, unix.Unmount(target, 0))
			must(t, unix.Unmount(of.pav(), 0))
			must(t, os.Remove(of.path+"/pod.json"))
		},
		"by a reboot": func(t *testing.T, of directory, target string) {
			t.Helper()
			must(t, unix.Unmount(target, 0))
			must(t, unix.Unmount(of.pav(), 0))
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			target := h.target(t, "pod")
			must(t, h.PublishPod(t.Context(), volume, pod, target))
			write(t, target+"/handle", "data")
			interrupt(t, h.own(t, volume), target)
			for range 2 {
				must(t, h.UnpublishPod(t.Context(), volume, target))
			}
			h.wantPod(t, volume, nil)
			h.wantMounts(t, h.kubelet)
			if _, err := os.Lstat(target); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the target is left: %v", err)
			}
		})
	}
}

// Mounts that a privileged creation pod leaves are unmounted. Their content belongs to a user, and stays.
func TestUnpublishPod_UnmountsWhatThePodLeft_AndItsContentStaysIntact(t *testing.T) {
	h := newHost(t)
	ctx := t.Context()
	precious := t.TempDir()
	write(t, precious+"/file", "precious")
	target := h.target(t, "pod")
	must(t, h.PublishPod(ctx, volume, pod, target))
	container(t, `mkdir "$1/a" "$1/b"; mount -t tmpfs test "$1/a"; mkdir "$1/a/c"; mount --bind "$2" "$1/a/c"; mount --bind "$2" "$1/b"; ln -s "$2" "$1/link"`, target, precious)
	h.wantMounts(t, h.own(t, volume).path, "pav", "pav/a", "pav/a/c", "pav/b")
	must(t, h.UnpublishPod(ctx, volume, target))
	h.wantPod(t, volume, nil)
	h.wantMounts(t, h.kubelet)
	wantFile(t, precious+"/file", "precious")
}

func TestMountOverPav_IsNotRead_AndIsRemovedWithThePod(t *testing.T) {
	h := newHost(t)
	ctx := t.Context()
	target := h.target(t, "pod")
	must(t, h.PublishPod(ctx, volume, pod, target))
	container(t, `mount -t tmpfs test "$1"; cd "$1"; printf other > handle`, target)
	if text, err := h.ReadPod(ctx, volume, "handle", 10); !errors.Is(err, mount.ErrEscapes) {
		t.Errorf("got %q, %v", text, err)
	}
	must(t, h.UnpublishPod(ctx, volume, target))
	h.wantPod(t, volume, nil)
	h.wantMounts(t, h.kubelet)
}

func TestRemovePod_RemovesUnusedDirectories(t *testing.T) {
	h := newHost(t)
	ctx := t.Context()
	target := h.target(t, "pod")
	must(t, h.PublishPod(ctx, volume, pod, target))
	mustSay(t, true)(h.RemovePod(ctx, volume))
	h.wantPod(t, volume, &pod)
	must(t, unix.Unmount(target, 0))
	mustSay(t, false)(h.RemovePod(ctx, volume))
	mustSay(t, false)(h.RemovePod(ctx, volume)) // It may be repeated.
	h.wantPod(t, volume, nil)
	h.wantMounts(t, h.kubelet)
}

func TestPods_AreThoseWithADirectory(t *testing.T) {
	h := newHost(t)
	ctx := t.Context()
	if ids, err := h.Pods(ctx); err != nil || len(ids) > 0 {
		t.Errorf("on a new node, there are %q, %v", ids, err)
	}
	target := h.target(t, "pod")
	must(t, h.PublishPod(ctx, volume, pod, target))
	must(t, os.Mkdir(h.pods()+"/other", 0o755))
	ids, err := h.Pods(ctx)
	must(t, err)
	if diff := cmp.Diff([]string{volume}, ids); diff != "" {
		t.Errorf("volumes (-want +got):\n%s", diff)
	}
	must(t, h.UnpublishPod(ctx, volume, target))
}

func TestVolumeIDsThatAreNotKubelets_NeverBecomePaths(t *testing.T) {
	h := newHost(t)
	must(t, h.Prepare(t.Context(), "s"))
	hash := strings.Repeat("a", 64)
	for _, id := range []string{
		"", ".", "..", "../stages/s", "../x", "/", "csi-", hash, "csi-" + hash[1:], "csi-" + hash + "a", "csi-" + strings.ToUpper(hash),
		"csi-" + hash + "\n", "csi-" + hash + "/..", "../csi-" + hash, "csi-../" + hash[3:], " csi-" + hash, "csi-" + hash[1:] + "\x00", "csi-" + hash[1:] + "g",
	} {
		for name, do := range map[string]func(ctx context.Context) error{
			"PublishPod":   func(ctx context.Context) error { return h.PublishPod(ctx, id, pod, h.kubelet+"/target") },
			"Pod":          func(ctx context.Context) error { _, _, err := h.Pod(ctx, id); return err },
			"ReadPod":      func(ctx context.Context) error { _, err := h.ReadPod(ctx, id, "handle", 10); return err },
			"UnpublishPod": func(ctx context.Context) error { return h.UnpublishPod(ctx, id, h.kubelet+"/target") },
			"RemovePod":    func(ctx context.Context) error { _, err := h.RemovePod(ctx, id); return err },
		} {
			if err := do(t.Context()); !errors.Is(err, ErrVolumeID) {
				t.Errorf("%s of %q: got error %v", name, id, err)
			}
		}
	}
	if _, err := os.Lstat(h.pods()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("something was made in %s", filepath.Base(h.pods()))
	}
	mustSay(t, true)(h.Exists(t.Context(), "s"))
	must(t, h.Remove(t.Context(), "s"))
}

func TestBegun_ReportsTargetsAndDirectories_OfPodsAndStages(t *testing.T) {
	h := newHost(t)
	ctx := t.Context()
	target := h.target(t, "pod")
	mustSay(t, false)(h.Begun(ctx, volume, target))
	must(t, os.MkdirAll(h.pods()+"/"+volume, 0o755)) // as if a call was interrupted before it recorded the pod
	mustSay(t, true)(h.Begun(ctx, volume, target))
	must(t, h.UnpublishPod(ctx, volume, target))
	mustSay(t, false)(h.Begun(ctx, volume, target))

	must(t, h.Prepare(ctx, "s"))
	must(t, h.Publish(ctx, "s", target))
	mustSay(t, true)(h.Begun(ctx, volume, target))
	if _, err := h.Unpublish(ctx, target); err != nil {
		t.Fatal(err)
	}
	mustSay(t, false)(h.Begun(ctx, volume, target))
	must(t, h.Remove(ctx, "s"))

	must(t, os.MkdirAll(target, 0o755)) // as if a call was interrupted before the mount
	mustSay(t, true)(h.Begun(ctx, volume, target))
	if _, err := h.Unpublish(ctx, target); err != nil {
		t.Fatal(err)
	}
	mustSay(t, false)(h.Begun(ctx, volume, target))
}

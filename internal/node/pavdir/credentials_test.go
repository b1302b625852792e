package pavdir

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/albertofaria/pav/internal/mount"
)

// grant is a grant pod, and grantVolume the ID of its inline volume.
var (
	grantVolume = "csi-" + strings.Repeat("fedcba9876543210", 4)

	grant = Pod{Namespace: "ns", Name: "grant-1", UID: "uid", Credentials: true}
)

// publishGrant gives a grant pod its /pav.
func (h *host) publishGrant(t *testing.T) (target string) {
	t.Helper()
	target = h.target(t, "pod")
	must(t, h.PublishPod(t.Context(), grantVolume, grant, target))
	return target
}

// wantNothing checks that nothing of a pod is left on the node.
func (h *host) wantNothing(t *testing.T, target string) {
	t.Helper()
	h.wantPod(t, grantVolume, nil)
	h.wantMounts(t, h.kubelet)
	if _, err := os.Lstat(target); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the target is left: %v", err)
	}
}

// readCredentials returns the content of the files in /pav/credentials by name, with the errors of those that cannot be read.
func (h *host) readCredentials(t *testing.T) (map[string]string, error) {
	t.Helper()
	files, err := h.ReadPodFiles(t.Context(), grantVolume, "credentials", 64, 16)
	read := map[string]string{}
	for _, file := range files {
		if read[file.Name] = string(file.Content); file.Err != nil {
			read[file.Name] = kindOf(file.Err)
		}
	}
	return read, err
}

func kindOf(err error) string {
	for name, known := range map[string]error{
		"escapes": mount.ErrEscapes, "not regular": mount.ErrNotRegular, "too large": mount.ErrTooLarge, "not a directory": mount.ErrNotDirectory,
	} {
		if errors.Is(err, known) {
			return name
		}
	}
	return err.Error()
}

func TestPublishPod_OfAGrantPod_KeepsCredentialsInMemory(t *testing.T) {
	h := newHost(t)
	target := h.publishGrant(t)
	of := h.own(t, grantVolume)
	h.wantMounts(t, of.path, "pav", "pav/credentials")
	h.wantMounts(t, target, "credentials")
	// Programs of any user may write there.
	container(t, `cd "$1/credentials"; [ -z "$(ls -A)" ]; setpriv --reuid 1234 --clear-groups sh -c 'umask 077; printf canary > accessKeyId; mkdir extra; printf x > extra/KEY'`, target)
	got, err := h.readCredentials(t)
	if diff := cmp.Diff(map[string]string{"accessKeyId": "canary", "extra/KEY": "x"}, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	mounts, err := mount.At(of.credentials())
	must(t, err)
	if o := mounts[0].Options; len(mounts) != 1 || !o.NoExec || !o.NoSuid || !o.NoDev {
		t.Errorf("mounted is %+v", mounts)
	}

	if table, err := os.ReadFile("/proc/thread-self/mountinfo"); err != nil || strings.Count(string(table), ",noswap") < 4 && knowsNoSwap(t) {
		t.Errorf("/pav and /pav/credentials, each mounted twice, may be swapped, %v:\n%s", err, table)
	}

	// As many files fit as package credentials allows, with all of their bytes.
	must(t, os.RemoveAll(target+"/credentials/extra"))
	for i := range secretFiles {
		must(t, os.WriteFile(target+"/credentials/"+strconv.Itoa(i), make([]byte, 48<<10/secretFiles), 0o600))
	}
	if err := os.WriteFile(target+"/credentials/large", make([]byte, 1<<20), 0o600); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("writing without end: got %v", err)
	}
	must(t, h.UnpublishPod(t.Context(), grantVolume, target))
	h.wantNothing(t, target)
}

// knowsNoSwap reports whether a tmpfs can be kept from swap space.
func knowsNoSwap(t *testing.T) bool {
	t.Helper()
	dir := t.TempDir()
	if unix.Mount("test", dir, "tmpfs", 0, "noswap") != nil {
		return false
	}
	must(t, unix.Unmount(dir, 0))
	return true
}

func TestPublishPod_OfOtherPods_MakesNoDirectoryForCredentials(t *testing.T) {
	h := newHost(t)
	target := h.target(t, "pod")
	must(t, h.PublishPod(t.Context(), grantVolume, Pod{Namespace: "ns", Name: "revoke-1", UID: "uid"}, target))
	h.wantMounts(t, h.own(t, grantVolume).path, "pav")
	must(t, os.Mkdir(target+"/credentials", 0o777))
	write(t, target+"/credentials/accessKeyId", "canary")
	if got, err := h.readCredentials(t); !errors.Is(err, mount.ErrNotMounted) || len(got) > 0 {
		t.Errorf("got %q, %v", got, err)
	}
	must(t, h.UnpublishPod(t.Context(), grantVolume, target))
	h.wantNothing(t, target)
}

// killed runs do, and stops it right after its n-th change of the node. It reports whether there were so many.
func killed(n int, do func() error) bool {
	calls := 0
	mount.SetTrace(func(string) {
		if calls++; calls > n {
			panic("the agent is killed")
		}
	})
	defer mount.SetTrace(nil)
	err := do()
	return errors.Is(err, mount.ErrPanic)
}

func TestPublishPod_OfAGrantPod_ResumesAfterEachChange(t *testing.T) {
	for n, more := 0, true; more; n++ {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			h := newHost(t)
			target := h.target(t, "pod")
			more = killed(n, func() error { return h.PublishPod(t.Context(), grantVolume, grant, target) })
			for range 2 {
				must(t, h.PublishPod(t.Context(), grantVolume, grant, target))
			}
			h.wantPod(t, grantVolume, &grant)
			h.wantMounts(t, h.own(t, grantVolume).path, "pav", "pav/credentials")
			h.wantMounts(t, target, "credentials")
			write(t, target+"/credentials/accessKeyId", "canary")
			got, err := h.readCredentials(t)
			if diff := cmp.Diff(map[string]string{"accessKeyId": "canary"}, got); err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
			must(t, h.UnpublishPod(t.Context(), grantVolume, target))
			h.wantNothing(t, target)
		})
		if n > 50 {
			t.Fatal("it never ends")
		}
	}
}

// What was not published to the end is removed all the same.
func TestUnpublishPod_OfAGrantPod_AfterEachChange_LeavesNothing(t *testing.T) {
	for n, more := 0, true; more; n++ {
		t.Run("published "+strconv.Itoa(n), func(t *testing.T) {
			h := newHost(t)
			target := h.target(t, "pod")
			more = killed(n, func() error { return h.PublishPod(t.Context(), grantVolume, grant, target) })
			for range 2 {
				must(t, h.UnpublishPod(t.Context(), grantVolume, target))
			}
			h.wantNothing(t, target)
		})
	}
	for n, more := 0, true; more; n++ {
		t.Run("unpublished "+strconv.Itoa(n), func(t *testing.T) {
			h := newHost(t)
			target := h.publishGrant(t)
			write(t, target+"/credentials/accessKeyId", "canary")
			ctx, cancel := context.WithCancel(t.Context())
			calls := 0
			mount.SetTrace(func(string) {
				if calls++; calls > n {
					cancel()
				}
			})
			more = h.UnpublishPod(ctx, grantVolume, target) != nil
			mount.SetTrace(nil)
			cancel()
			for range 2 {
				must(t, h.UnpublishPod(t.Context(), grantVolume, target))
			}
			h.wantNothing(t, target)
		})
	}
}

func TestRemovePod_OfAGrantPod_LeavesNothing(t *testing.T) {
	h := newHost(t)
	target := h.publishGrant(t)
	write(t, target+"/credentials/accessKeyId", "canary")
	mustSay(t, true)(h.RemovePod(t.Context(), grantVolume))
	must(t, unix.Unmount(target+"/credentials", 0))
	must(t, unix.Unmount(target, 0))
	mustSay(t, false)(h.RemovePod(t.Context(), grantVolume))
	must(t, os.Remove(target))
	h.wantNothing(t, target)
}

// After a reboot there are no mounts, and what was in memory is lost.
func TestReadPodFiles_AfterAReboot_IsLost(t *testing.T) {
	h := newHost(t)
	target := h.publishGrant(t)
	write(t, target+"/credentials/accessKeyId", "canary")
	must(t, unix.Unmount(target+"/credentials", 0))
	must(t, unix.Unmount(target, 0))
	must(t, mount.Unmount(t.Context(), h.own(t, grantVolume).path))
	if got, err := h.readCredentials(t); !errors.Is(err, ErrLost) || len(got) > 0 {
		t.Errorf("got %q, %v", got, err)
	}
	if entries, err := os.ReadDir(h.own(t, grantVolume).pav()); err != nil || len(entries) > 0 {
		t.Errorf("on the disk is %v, %v", entries, err)
	}
	must(t, h.PublishPod(t.Context(), grantVolume, grant, target))
	if got, err := h.readCredentials(t); err != nil || len(got) > 0 {
		t.Errorf("of the pod that starts again: got %q, %v", got, err)
	}
	must(t, h.UnpublishPod(t.Context(), grantVolume, target))
	h.wantNothing(t, target)
}

// Containers of a pod that has rights on the node can do all this, and others in their own mount namespace.
func TestReadPodFiles_IfTheMountIsNotThatOfTheAgent_ReadsNothing(t *testing.T) {
	for name, test := range map[string]struct {
		script string
		err    error
	}{
		"something is mounted over it":  {`mount -t tmpfs test "$1/credentials"; printf other > "$1/credentials/accessKeyId"`, mount.ErrEscapes},
		"another is in its place":       {`umount "$1/credentials"; mount -t tmpfs test "$1/credentials"; printf other > "$1/credentials/accessKeyId"`, mount.ErrEscapes},
		"a bind is in its place":        {`umount "$1/credentials"; mount --bind "$2" "$1/credentials"`, mount.ErrEscapes},
		"it is unmounted":               {`umount "$1/credentials"; printf other > "$1/credentials/accessKeyId"`, mount.ErrNotMounted},
		"a link is in its place":        {`umount "$1/credentials"; rmdir "$1/credentials"; ln -s "$2" "$1/credentials"`, mount.ErrNotMounted},
		"nothing is in its place":       {`umount "$1/credentials"; rmdir "$1/credentials"`, mount.ErrNotMounted},
		"something is mounted over all": {`mount -t tmpfs test "$1"; mkdir "$1/credentials"; printf other > "$1/credentials/accessKeyId"`, mount.ErrEscapes},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			outside := t.TempDir()
			write(t, outside+"/accessKeyId", "outside")
			target := h.publishGrant(t)
			write(t, target+"/credentials/accessKeyId", "canary")
			container(t, test.script, target, outside)
			if got, err := h.readCredentials(t); !errors.Is(err, test.err) || len(got) > 0 {
				t.Errorf("got %q, %v", got, err)
			}
			must(t, h.UnpublishPod(t.Context(), grantVolume, target))
			h.wantNothing(t, target)
			wantFile(t, outside+"/accessKeyId", "outside")
		})
	}
}

// The mounts of a pod without such rights do not reach the node.
func TestReadPodFiles_IfAPodMountsSomethingForItself_ReadsWhatIsBelow(t *testing.T) {
	h := newHost(t)
	target := h.publishGrant(t)
	container(t, `mount --make-rprivate "$1"; printf below > "$1/credentials/accessKeyId"; mount -t tmpfs test "$1/credentials"; printf above > "$1/credentials/accessKeyId"`, target)
	got, err := h.readCredentials(t)
	if diff := cmp.Diff(map[string]string{"accessKeyId": "below"}, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	must(t, h.UnpublishPod(t.Context(), grantVolume, target))
	h.wantNothing(t, target)
}

func TestAGrantPod_WhereKubeletsDirectoryIsMountedMoreThanOnce(t *testing.T) {
	for name, arrange := range layouts() {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			elsewhere := arrange(t, h)
			target := h.publishGrant(t)
			write(t, target+"/credentials/accessKeyId", "canary")
			got, err := h.readCredentials(t)
			if diff := cmp.Diff(map[string]string{"accessKeyId": "canary"}, got); err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
			must(t, h.UnpublishPod(t.Context(), grantVolume, target))
			h.wantPod(t, grantVolume, nil)
			h.wantMounts(t, h.kubelet+"/plugins")
			h.wantMounts(t, h.kubelet+"/pods")
			h.wantMounts(t, elsewhere+"/pods")
		})
	}
}

package pavdir

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
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

func TestReadPodFiles_OfHostileFiles(t *testing.T) {
	many := func(directory string, count int) func(t *testing.T, at string) {
		return func(t *testing.T, at string) {
			t.Helper()
			must(t, os.MkdirAll(at+directory, 0o755))
			for i := range count {
				write(t, at+directory+"/"+strconv.Itoa(i), "")
			}
		}
	}
	host := t.TempDir() + "/file"
	write(t, host, "canary")
	for name, test := range map[string]struct {
		leave func(t *testing.T, at string)
		want  map[string]string
		err   error
	}{
		"nothing": {func(*testing.T, string) {}, map[string]string{}, nil},
		"names of any bytes": {func(t *testing.T, at string) {
			t.Helper()
			for _, name := range []string{"a\nb", "\xff", "..."} {
				write(t, at+"/"+name, "x")
			}
		}, map[string]string{"a\nb": "x", "\xff": "x", "...": "x"}, nil},
		"a link, a pipe, a device, a directory": {func(t *testing.T, at string) {
			t.Helper()
			must(t, os.Symlink(host, at+"/link"))
			must(t, unix.Mkfifo(at+"/pipe", 0o644))
			must(t, unix.Mknod(at+"/device", unix.S_IFCHR|0o644, int(unix.Mkdev(1, 5))))
			must(t, os.Mkdir(at+"/directory", 0o755))
		}, map[string]string{"link": "escapes", "pipe": "not regular", "device": "not regular", "directory": "not regular"}, nil},
		"10 GB of nothing": {func(t *testing.T, at string) {
			t.Helper()
			write(t, at+"/file", "")
			must(t, os.Truncate(at+"/file", 10<<30))
		}, map[string]string{"file": "too large"}, nil},
		"a file that is a mount": {func(t *testing.T, at string) {
			t.Helper()
			write(t, at+"/file", "")
			must(t, unix.Mount(host, at+"/file", "", unix.MS_BIND, ""))
		}, map[string]string{"file": "escapes"}, nil},
		"extra is a file": {func(t *testing.T, at string) { t.Helper(); write(t, at+"/extra", "x"); write(t, at+"/file", "y") },
			map[string]string{"extra": "not a directory", "file": "y"}, nil},
		"extra is a link": {func(t *testing.T, at string) { t.Helper(); must(t, os.Symlink("..", at+"/extra")) }, map[string]string{"extra": "escapes"}, nil},
		"extra is a mount": {func(t *testing.T, at string) {
			t.Helper()
			tmpfs(t, at+"/extra")
			write(t, at+"/extra/file", "canary")
		}, map[string]string{"extra": "escapes"}, nil},
		"extra in extra": {func(t *testing.T, at string) { t.Helper(); must(t, os.MkdirAll(at+"/extra/extra", 0o755)) },
			map[string]string{"extra/extra": "not regular"}, nil},
		"too many files":              {many("", 65), nil, mount.ErrTooMany},
		"too many files, and extra":   {func(t *testing.T, at string) { t.Helper(); many("", 65)(t, at); many("/extra", 0)(t, at) }, nil, mount.ErrTooMany},
		"too many further files":      {many("/extra", 65), nil, mount.ErrTooMany},
		"too many files of two kinds": {func(t *testing.T, at string) { t.Helper(); many("", 32)(t, at); many("/extra", 33)(t, at) }, nil, mount.ErrTooMany},
	} {
		for _, directory := range []string{"credentials", "info"} {
			t.Run(name+" in "+directory, func(t *testing.T) {
				h := newHost(t)
				target := h.publishGrant(t)
				must(t, os.MkdirAll(target+"/info", 0o755))
				test.leave(t, target+"/"+directory)
				files, err := h.ReadPodFiles(t.Context(), grantVolume, directory, 64, 16)
				if !errors.Is(err, test.err) || test.err != nil && len(files) > 0 {
					t.Errorf("got %d files, %v; want %v", len(files), err, test.err)
				}
				if test.err == nil {
					got := map[string]string{}
					for _, file := range files {
						if got[file.Name] = string(file.Content); file.Err != nil {
							got[file.Name] = kindOf(file.Err)
						}
					}
					if diff := cmp.Diff(test.want, got); diff != "" {
						t.Errorf("-want +got:\n%s", diff)
					}
				}
				must(t, h.UnpublishPod(t.Context(), grantVolume, target))
				h.wantNothing(t, target)
			})
		}
	}
}

func TestReadPodFiles_ReadsAsManyFilesAsAreAllowed(t *testing.T) {
	h := newHost(t)
	target := h.publishGrant(t)
	must(t, os.Mkdir(target+"/credentials/extra", 0o755))
	var want []string
	for i := range 64 {
		name := strings.Repeat("extra/", i%2) + strconv.Itoa(i)
		write(t, target+"/credentials/"+name, "x")
		want = append(want, name)
	}
	files, err := h.ReadPodFiles(t.Context(), grantVolume, "credentials", 64, 1)
	must(t, err)
	var got []string
	for _, file := range files {
		got = append(got, file.Name)
		must(t, file.Err)
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if _, err := h.ReadPodFiles(t.Context(), grantVolume, "other", 64, 1); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of a directory that does not exist: %v", err)
	}
	write(t, target+"/info", "")
	if _, err := h.ReadPodFiles(t.Context(), grantVolume, "info", 64, 1); !errors.Is(err, mount.ErrNotDirectory) {
		t.Errorf("of a file: %v", err)
	}
	must(t, h.UnpublishPod(t.Context(), grantVolume, target))
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

package collect

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/mount"
	"github.com/albertofaria/pav/internal/node/pavdir"
	"github.com/albertofaria/pav/internal/workflow"
)

// secret is the content of a file of the host. No result may contain it.
const secret = "canary"

func unreadableAs(file, why string) workflow.Result {
	return workflow.Result{Unreadable: map[string]string{file: why}}
}

func TestUnpublish_ReportsTheFilesOfThePod(t *testing.T) {
	const (
		link      = "it is a symbolic link, or something is mounted over it"
		irregular = "it is not a regular file"
		control   = "it has a control character"
	)
	host := filepath.Join(t.TempDir(), "file")
	write(t, host, secret)
	long := strings.Repeat("x", 128)
	texts := func(files map[string]string) func(*testing.T, string) {
		return func(t *testing.T, pav string) {
			t.Helper()
			for name, text := range files {
				write(t, pav+"/"+name, text)
			}
		}
	}
	handle := func(text string) func(*testing.T, string) { return texts(map[string]string{"handle": text}) }
	for name, test := range map[string]struct {
		leave func(t *testing.T, pav string)
		want  workflow.Result
	}{
		"nothing":                 {func(*testing.T, string) {}, workflow.Result{}},
		"all of it":               {texts(map[string]string{"handle": "h\n", "capacity": " 1Gi\n", "error": "\nwhy\nnot\n\n", "other": "x"}), workflow.Result{Handle: "h", Capacity: "1Gi", Error: "why\nnot"}},
		"those of a snapshot":     {texts(map[string]string{"snapshotHandle": " s \n", "snapshotSize": " 1Gi\n"}), workflow.Result{SnapshotHandle: " s ", SnapshotSize: "1Gi"}},
		"empty files":             {texts(map[string]string{"handle": "", "capacity": "", "error": ""}), workflow.Result{}},
		"white space around":      {handle(" h \t\n"), workflow.Result{Handle: " h \t"}},
		"one line feed of two":    {handle("h\n\n"), workflow.Result{Handle: "h\n"}},
		"a line feed of Windows'": {handle("h\r\n"), workflow.Result{Handle: "h"}},
		"a carriage return":       {handle("h\r"), workflow.Result{Handle: "h\r"}},
		"a line feed inside":      {handle("a\nb"), workflow.Result{Handle: "a\nb"}},
		"as much as fits":         {handle(long), workflow.Result{Handle: long}},
		"as much, and a line end": {handle(long + "\n"), workflow.Result{Handle: long}},
		"as much, and Windows'":   {handle(long + "\r\n"), workflow.Result{Handle: long}},
		"129 bytes":               {handle(long + "x"), unreadableAs("handle", "it has more than 128 bytes")},
		"129 bytes and a line":    {handle(long + "x\n"), unreadableAs("handle", "it has more than 128 bytes")},
		"two line ends too many":  {handle(long + "\n\n"), unreadableAs("handle", "it has more than 128 bytes")},
		"a long capacity":         {texts(map[string]string{"capacity": strings.Repeat("1", 65)}), unreadableAs("capacity", "it has more than 64 bytes")},
		"infeasible":              {texts(map[string]string{"infeasible": " too large\n", "error": "why"}), workflow.Result{Infeasible: new("too large"), Error: "why"}},
		"infeasible, and no word": {texts(map[string]string{"infeasible": ""}), workflow.Result{Infeasible: new("")}},
		"infeasible at length":    {texts(map[string]string{"infeasible": strings.Repeat("x", 4097)}), unreadableAs("infeasible", "it has more than 4096 bytes")},
		"a long error":            {texts(map[string]string{"error": strings.Repeat("x", 4097)}), unreadableAs("error", "it has more than 4096 bytes")},
		"an error that just fits": {texts(map[string]string{"error": strings.Repeat("\u20ac", 1365) + "x\n"}), workflow.Result{Error: strings.Repeat("\u20ac", 1365) + "x"}},
		"bytes that are no text":  {handle("a\xff"), unreadableAs("handle", "it is not valid UTF-8")},
		"a NUL":                   {handle("a\x00b"), unreadableAs("handle", control)},
		"an escape":               {texts(map[string]string{"error": "\x1b[2J"}), unreadableAs("error", control)},
		"a link to the host":      {func(t *testing.T, pav string) { t.Helper(); must(t, os.Symlink(host, pav+"/handle")) }, unreadableAs("handle", link)},
		"a link beside it": {func(t *testing.T, pav string) {
			t.Helper()
			write(t, pav+"/x", "x")
			must(t, os.Symlink("x", pav+"/handle"))
		}, unreadableAs("handle", link)},
		"a link to the record": {func(t *testing.T, pav string) { t.Helper(); must(t, os.Symlink("../pod.json", pav+"/error")) }, unreadableAs("error", link)},
		"a link to itself":     {func(t *testing.T, pav string) { t.Helper(); must(t, os.Symlink("handle", pav+"/handle")) }, unreadableAs("handle", link)},
		"a named pipe":         {func(t *testing.T, pav string) { t.Helper(); must(t, unix.Mkfifo(pav+"/handle", 0o644)) }, unreadableAs("handle", irregular)},
		"a device": {func(t *testing.T, pav string) {
			t.Helper()
			must(t, unix.Mknod(pav+"/handle", unix.S_IFCHR|0o644, int(unix.Mkdev(1, 5)))) // /dev/zero
		}, unreadableAs("handle", irregular)},
		"a directory": {func(t *testing.T, pav string) { t.Helper(); must(t, os.MkdirAll(pav+"/handle/below", 0o755)) }, unreadableAs("handle", irregular)},
		"a socket": {func(t *testing.T, pav string) {
			t.Helper()
			t.Chdir(pav) // Paths of sockets must be short.
			listener, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", "handle")
			must(t, err)
			listener.(*net.UnixListener).SetUnlinkOnClose(false)
			must(t, listener.Close())
			t.Chdir("/")
		}, unreadableAs("handle", irregular)},
		"10 GB of nothing": {func(t *testing.T, pav string) {
			t.Helper()
			write(t, pav+"/handle", "")
			must(t, os.Truncate(pav+"/handle", 10<<30))
		}, unreadableAs("handle", "it has more than 128 bytes")},
		"a mount of the host's": {func(t *testing.T, pav string) {
			t.Helper()
			write(t, pav+"/handle", "")
			must(t, unix.Mount(host, pav+"/handle", "", unix.MS_BIND, ""))
		}, unreadableAs("handle", link)},
		"a mount over all of it": {func(t *testing.T, pav string) {
			t.Helper()
			must(t, unix.Mount("test", pav, "tmpfs", 0, "mode=755"))
			write(t, pav+"/handle", secret)
		}, workflow.Result{Unreadable: map[string]string{"handle": link, "capacity": link, "snapshotHandle": link, "snapshotSize": link, "error": link, "infeasible": link}}},
		"one that can be read, one that cannot": {func(t *testing.T, pav string) {
			t.Helper()
			write(t, pav+"/handle", "h")
			must(t, os.Symlink(host, pav+"/capacity"))
			must(t, os.Mkdir(pav+"/error", 0o755))
		}, workflow.Result{Handle: "h", Unreadable: map[string]string{"capacity": link, "error": irregular}}},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			n.publish(t)
			test.leave(t, n.target)
			wantFound(t, n, true)
			if diff := cmp.Diff(test.want, n.result(t)); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
			for _, private := range []string{secret, n.kubelet} {
				if strings.Contains(n.results[0], private) {
					t.Errorf("%s has %q", n.results[0], private)
				}
			}
			n.wantGone(t)
			if got, err := os.ReadFile(host); err != nil || string(got) != secret {
				t.Errorf("the host's file has %q, %v", got, err)
			}
		})
	}
}

func wantFound(t *testing.T, n *node, want bool) {
	t.Helper()
	if found, err := n.Unpublish(t.Context(), volume, n.target); err != nil || found != want {
		t.Errorf("unpublishing answers %t, %v; want %t", found, err, want)
	}
}

func TestUnpublish_ReportsNothingWithoutARecord(t *testing.T) {
	for name, change := range map[string]func(*node){
		"the pod is gone":                    func(n *node) { n.pod = nil },
		"the pod is another one by now":      func(n *node) { n.pod.UID = "other" },
		"it was told before":                 func(n *node) { n.pod.Annotations = map[string]string{pavv1.ResultAnnotation: "{}"} },
		"the pod goes just then":             func(n *node) { n.fail = func(call int) (bool, error) { n.goAt(call, 2); return true, nil } },
		"nobody knows whose directory it is": func(n *node) { _ = os.Remove(n.kubelet + "/plugins/" + pavv1.Driver + "/pods/" + volume + "/pod.json") },
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			n.publish(t)
			write(t, n.target+"/handle", "h")
			change(n)
			wantFound(t, n, true)
			if len(n.results) > 0 {
				t.Errorf("it was told: %s", n.results)
			}
			n.wantGone(t)
		})
	}
}

// goAt deletes the pod at a call of the API server.
func (n *node) goAt(call, at int) {
	if call == at {
		n.pod = nil
	}
}

// Whichever call of the API server fails, no result is lost, and none is reported twice.
func TestUnpublish_IsRepeatedUntilTheResultIsReported(t *testing.T) {
	away := errors.New("connection refused")
	for name, fail := range map[string]func(call int) (bool, error){
		"the API server is away for a while": func(call int) (bool, error) {
			if call < 5 {
				return false, away
			}
			return true, nil
		},
		"it refuses the first patch": func(call int) (bool, error) {
			if call == 2 {
				return false, away
			}
			return true, nil
		},
		"its answer to the patch is lost": func(call int) (bool, error) {
			if call == 2 {
				return true, away
			}
			return true, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			n.publish(t)
			write(t, n.target+"/handle", "h")
			n.fail = fail
			failures := 0
			for {
				found, err := n.Unpublish(t.Context(), volume, n.target)
				if err == nil {
					break
				}
				if !errors.Is(err, away) || !found {
					t.Fatalf("got %t, %v", found, err)
				}
				if failures++; failures > 10 {
					t.Fatal("it never ends")
				}
				if got, err := os.ReadFile(n.target + "/handle"); err != nil || string(got) != "h" {
					t.Fatalf("the file has %q, %v, before all was told", got, err)
				}
			}
			if diff := cmp.Diff(workflow.Result{Handle: "h"}, n.result(t)); diff != "" || failures == 0 {
				t.Errorf("result after %d failures (-want +got):\n%s", failures, diff)
			}
			n.wantGone(t)
			wantFound(t, n, false) // It may be repeated.
		})
	}
}

// The next call of kubelet, or its first call of the next agent, finds the target unmounted and the directory still
// there.
func TestUnpublish_ReportsAfterTheTargetWasUnmounted(t *testing.T) {
	n := newNode(t)
	n.publish(t)
	write(t, n.target+"/handle", "h")
	must(t, unix.Unmount(n.target, 0))
	n.Collector = New(n, n.dirs, n.boot, n.log)
	wantFound(t, n, true)
	if diff := cmp.Diff(workflow.Result{Handle: "h"}, n.result(t)); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
	n.wantGone(t)
}

func TestUnpublish_DoesNotBelieveFilesOfAnotherBoot(t *testing.T) {
	n := newNode(t)
	n.publish(t)
	write(t, n.target+"/handle", "") // whose content was never written back
	n.boot = pavdir.Boot{BootID: "boot 2"}
	wantFound(t, n, true)
	const why = "the node was restarted, or /pav unmounted, before it could be read"
	want := workflow.Result{Unreadable: map[string]string{"handle": why, "capacity": why, "snapshotHandle": why, "snapshotSize": why, "error": why}}
	if diff := cmp.Diff(want, n.result(t)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	n.wantGone(t)
}

// All mounts of the node may be gone in the same boot, for example after k3s-killall.sh. Then no file exists, whatever
// the pod wrote, and a missing handle would be taken for the default one.
func TestUnpublish_DistinguishesUnmountedTargetsFromThoseNeverRecorded(t *testing.T) {
	n := newNode(t)
	n.publish(t)
	write(t, n.target+"/handle", "h")
	must(t, mount.Unmount(t.Context(), n.kubelet+"/plugins"))
	must(t, mount.Unmount(t.Context(), n.target))
	wantFound(t, n, true)
	if got := n.result(t).Unreadable["handle"]; got == "" {
		t.Errorf("got %+v", n.result(t))
	}
	n.wantGone(t)
}

func TestUnpublish_BelievesFilesOfAPodThatRanAgainAfterTheBoot(t *testing.T) {
	n := newNode(t)
	n.publish(t)
	n.boot = pavdir.Boot{BootID: "boot 2"}
	n.publish(t)
	write(t, n.target+"/handle", "h")
	wantFound(t, n, true)
	if diff := cmp.Diff(workflow.Result{Handle: "h"}, n.result(t)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestUnpublish_DoesNothingForACallThatHasEnded(t *testing.T) {
	n := newNode(t)
	n.publish(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := n.Unpublish(ctx, volume, n.target); !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v", err)
	}
	if len(n.results) > 0 {
		t.Errorf("it was told: %s", n.results)
	}
	wantFound(t, n, true)
}

func TestVolumesWithoutSuchAPod_AreForeign(t *testing.T) {
	n := newNode(t)
	for _, id := range []string{volume, "../x", "csi-x", "..", "../../../etc", "a volume"} {
		if found, err := n.Unpublish(t.Context(), id, n.target); err != nil || found {
			t.Errorf("%q: got %t, %v", id, found, err)
		}
	}
	for _, id := range []string{"../x", "csi-x"} {
		if err := n.Publish(t.Context(), id, pavdir.Pod{}, n.target); !errors.Is(err, pavdir.ErrVolumeID) {
			t.Errorf("%q: got error %v", id, err)
		}
	}
	if n.calls > 0 {
		t.Errorf("the API server was asked %d times", n.calls)
	}
}

// A container that was killed, but has not ended yet, may still write.
func TestFilesThatChangeWhileTheyAreRead_AreReadSafely(t *testing.T) {
	n := newNode(t)
	n.publish(t)
	host := filepath.Join(t.TempDir(), "file")
	write(t, host, secret)
	stop := make(chan struct{})
	var writing sync.WaitGroup
	writing.Go(func() {
		file, temporary := n.target+"/handle", n.target+"/x"
		for {
			for _, leave := range []func() error{
				func() error { return os.WriteFile(temporary, []byte("h"), 0o644) },
				func() error { return os.Symlink(host, temporary) },
				func() error { return os.WriteFile(temporary, []byte(strings.Repeat("x", 1<<16)), 0o644) },
				func() error { return unix.Mkfifo(temporary, 0o644) },
			} {
				select {
				case <-stop:
					return
				default:
				}
				_ = leave()
				_ = os.Rename(temporary, file)
			}
		}
	})
	for range 300 {
		result, err := n.read(t.Context(), volume, n.pod)
		if err != nil || result.Handle != "" && result.Handle != "h" {
			t.Errorf("got %+v, %v", result, err)
			break
		}
	}
	close(stop)
	writing.Wait()
	wantFound(t, n, true)
}

func TestTwoCallsForOneVolume_RunOneAfterTheOther(t *testing.T) {
	n := newNode(t)
	n.publish(t)
	n.fail = func(int) (bool, error) {
		for _, err := range []error{
			second(n.Unpublish(t.Context(), volume, n.target)),
			n.Publish(t.Context(), volume, pavdir.Pod{}, n.target),
		} {
			if !errors.Is(err, ErrBusy) {
				t.Errorf("got error %v", err)
			}
		}
		must(t, n.Sweep(t.Context()))
		return true, nil
	}
	wantFound(t, n, true)
	n.wantGone(t)
}

func second[T any](_ T, err error) error { return err }

package pavdir

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/albertofaria/pav/internal/mount"
)

func TestPrepare_MakesADirectoryForAnyUser_ThatOnlyRootReaches(t *testing.T) {
	h := newHost(t)
	ctx := t.Context()
	mustSay(t, false)(h.Exists(ctx, "s"))
	for range 2 {
		must(t, h.Prepare(ctx, "s"))
	}
	mustSay(t, true)(h.Exists(ctx, "s"))
	h.wantMounts(t, h.stagePath("s"), "pav")
	for path, want := range map[string]os.FileMode{h.pav("s"): 0o777, h.stagePath("s"): 0o750, h.stages(): 0o750} {
		info, err := os.Stat(path)
		must(t, err)
		if info.Mode().Perm() != want {
			t.Errorf("%s has the mode %o, want %o", path, info.Mode().Perm(), want)
		}
	}
	must(t, h.Remove(ctx, "s"))
	mustSay(t, false)(h.Exists(ctx, "s"))
	must(t, h.Remove(ctx, "s")) // It may be repeated.
}

// The mounts of a staging pod stay when the pod is gone, and the next pod sees them.
func TestUnpublish_KeepsInTheSourceWhatThePodMounted(t *testing.T) {
	h := newHost(t)
	ctx := t.Context()
	must(t, h.Prepare(ctx, "s"))
	mustSay(t, false)(h.Given(ctx, "s"))
	staging, unstaging := h.target(t, "staging"), h.target(t, "unstaging")
	for range 2 {
		must(t, h.Publish(ctx, "s", staging))
	}
	mustSay(t, true)(h.InUse(ctx, "s"))
	container(t, `mkdir "$1/volume"; mount -t tmpfs test "$1/volume"; printf data > "$1/volume/file"`, staging)
	h.wantMounts(t, h.stagePath("s"), "pav", "pav/volume")

	mustSay(t, "s")(h.Unpublish(ctx, staging))
	mustSay(t, "")(h.Unpublish(ctx, staging)) // The stage of the target is not known any more.
	h.wantMounts(t, h.stagePath("s"), "pav", "pav/volume")
	wantFile(t, h.pav("s")+"/volume/file", "data")
	if _, err := os.Lstat(staging); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the target is left: %v", err)
	}
	mustSay(t, false)(h.InUse(ctx, "s"))
	mustSay(t, true)(h.Given(ctx, "s"))

	must(t, h.Publish(ctx, "s", unstaging))
	wantFile(t, unstaging+"/volume/file", "data")
	container(t, `umount "$1/volume"`, unstaging)
	h.wantMounts(t, h.stagePath("s"), "pav")
	mustSay(t, "s")(h.Unpublish(ctx, unstaging))
	must(t, h.Reset(ctx, "s"))
	mustSay(t, false)(h.Given(ctx, "s"))
	must(t, h.Remove(ctx, "s"))
}

func TestUnpublish_OfOneOfTwoPodsTakesNothingFromTheOther(t *testing.T) {
	h := newHost(t)
	ctx := t.Context()
	one, two := h.twoPods(t)
	mustSay(t, "s")(h.Unpublish(ctx, one))
	mustSay(t, true)(h.InUse(ctx, "s"))
	wantFile(t, two+"/volume/file", "data")
	// Mounts of the other pod still propagate to the stage's directory.
	container(t, `mkdir "$1/late"; mount -t tmpfs test "$1/late"`, two)
	h.wantMounts(t, h.stagePath("s"), "pav", "pav/late", "pav/volume")
	mustSay(t, "s")(h.Unpublish(ctx, two))
	mustSay(t, false)(h.InUse(ctx, "s"))
	h.wantMounts(t, h.stagePath("s"), "pav", "pav/late", "pav/volume")
	must(t, h.Remove(ctx, "s"))
}

// A killed agent may have parted a target from the directory, and not unmounted it: what the pod mounted is still
// mounted there, and so the next pod must not run yet.
func TestUnpublish_ResumesAfterAnInterruption_BeforeWhichTheTargetStillCounts(t *testing.T) {
	for name, part := range map[string]func(h *host, target string) error{
		"after the source left the group": func(h *host, _ string) error { return mount.Separate(h.pav("s")) },
		"after the target left the group": func(_ *host, target string) error { return mount.Isolate(target) },
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			ctx := t.Context()
			must(t, h.Prepare(ctx, "s"))
			target, later := h.target(t, "pod"), h.target(t, "later")
			must(t, h.Publish(ctx, "s", target))
			container(t, `mkdir "$1/volume"; mount -t tmpfs test "$1/volume"`, target)
			must(t, part(h, target))
			h.wantUsers(t, target)
			mustSay(t, true)(h.InUse(ctx, "s"))

			must(t, h.Publish(ctx, "s", later))
			mustSay(t, "s")(h.Unpublish(ctx, target))
			h.wantUsers(t, later)
			// The other pod is still joined to the directory.
			container(t, `umount "$1/volume"`, later)
			h.wantMounts(t, h.stagePath("s"), "pav")
			mustSay(t, "s")(h.Unpublish(ctx, later))
			mustSay(t, false)(h.InUse(ctx, "s"))
			must(t, h.Remove(ctx, "s"))
		})
	}
}

func TestUnpublish_DistinguishesStages_AndKeepsOthers(t *testing.T) {
	h := newHost(t)
	ctx := t.Context()
	targets := map[string]string{"s1": h.target(t, "one"), "s2": h.target(t, "two")}
	for stage, target := range targets {
		must(t, h.Prepare(ctx, stage))
		must(t, h.Publish(ctx, stage, target))
		tmpfs(t, target+"/volume")
	}
	mustSay(t, "s1")(h.Unpublish(ctx, targets["s1"]))
	mustSay(t, true)(h.InUse(ctx, "s2"))
	h.wantMounts(t, targets["s2"], "volume")
	mustSay(t, "s2")(h.Unpublish(ctx, targets["s2"]))
	mustSay(t, "")(h.Unpublish(ctx, h.target(t, "never-published")))
	for stage := range targets {
		h.wantMounts(t, h.stagePath(stage), "pav", "pav/volume")
		must(t, h.Remove(ctx, stage))
	}
}

// After a reboot, the directories exist and are not mounted.
func TestPublish_RestoresMountsAfterAReboot(t *testing.T) {
	h := newHost(t)
	ctx := t.Context()
	must(t, h.Prepare(ctx, "s"))
	write(t, h.pav("s")+"/file", "data")
	must(t, unix.Unmount(h.pav("s"), 0))
	target := h.target(t, "pod")
	must(t, h.Publish(ctx, "s", target))
	wantFile(t, target+"/file", "data")
	tmpfs(t, target+"/volume")
	h.wantMounts(t, h.stagePath("s"), "pav", "pav/volume")
	mustSay(t, "s")(h.Unpublish(ctx, target))
	must(t, h.Remove(ctx, "s"))
}

func TestNothingIsMountedForACallThatHasEnded(t *testing.T) {
	h := newHost(t)
	must(t, h.Prepare(t.Context(), "s"))
	must(t, os.Mkdir(h.pav("s")+"/volume", 0o755))
	target := h.target(t, "pod")
	if err := h.Publish(canceled(t), "s", target); err == nil {
		t.Error("/pav is published")
	}
	if err := h.Attach(canceled(t), "s", directoryVolume); err == nil {
		t.Error("the volume is attached")
	}
	h.wantMounts(t, target)
	h.wantMounts(t, h.stagePath("s"), "pav")
	must(t, h.Remove(t.Context(), "s"))
}

func TestReady_IsSeenAtOnce_OrWakesWaiters(t *testing.T) {
	h := newHost(t)
	ctx := t.Context()
	mustSay(t, false)(h.Ready(ctx, "never-prepared"))
	for stage, create := range map[string]string{
		"created":   `: > "$1/ready"`,
		"renamed":   `: > "$1/x"; mv "$1/x" "$1/ready"`,
		"directory": `mkdir "$1/ready"`,
		"linked":    `: > "$1/x"; ln "$1/x" "$1/ready"`,
	} {
		must(t, h.Prepare(ctx, stage))
		target := h.target(t, stage)
		must(t, h.Publish(ctx, stage, target))
		mustSay(t, false)(h.Ready(ctx, stage))
		mustSay(t, false)(h.Ready(ctx, stage))
		container(t, `: > "$1/unready"; mkdir "$1/below"; : > "$1/below/ready"; `+create, target)
		h.wantWoken(t, stage)
		mustSay(t, true)(h.Ready(ctx, stage))
		mustSay(t, stage)(h.Unpublish(ctx, target))
		must(t, h.Remove(ctx, stage))
	}
	if len(h.woken) > 0 {
		t.Errorf("woken for %q once more", <-h.woken)
	}
}

// The directory of a stage may be created again, for example for the next attempt. Then it is watched again.
func TestReady_WakesAgainInADirectoryThatWasMadeAgain(t *testing.T) {
	h := newHost(t)
	for range 3 {
		must(t, h.Prepare(t.Context(), "s"))
		mustSay(t, false)(h.Ready(t.Context(), "s"))
		write(t, h.pav("s")+"/ready", "")
		h.wantWoken(t, "s")
		must(t, h.Remove(t.Context(), "s"))
	}
}

func TestPodError(t *testing.T) {
	h := newHost(t)
	must(t, h.Prepare(t.Context(), "s"))
	file := h.pav("s") + "/error"
	began := time.Now().Add(-time.Hour)
	for name, test := range map[string]struct {
		leave func(t *testing.T)
		want  string // or a prefix of it, followed by *
	}{
		"a pod that said nothing":           {func(*testing.T) {}, ""},
		"a pod that said why":               {func(t *testing.T) { t.Helper(); write(t, file, "\nthe backend\nis on fire\n") }, "the backend\nis on fire"},
		"a pod that left an empty file":     {func(t *testing.T) { t.Helper(); write(t, file, "") }, ""},
		"a pod that said as much as it may": {func(t *testing.T) { t.Helper(); write(t, file, strings.Repeat("x", maxError)) }, strings.Repeat("x", maxError)},
		"a pod that said too much":          {func(t *testing.T) { t.Helper(); write(t, file, strings.Repeat("x", maxError+1)) }, "(/pav/error cannot be read: *"},
		"a pod that wrote no text":          {func(t *testing.T) { t.Helper(); write(t, file, "\xff\xfe") }, "(/pav/error cannot be read: *"},
		"a pod that left a link":            {func(t *testing.T) { t.Helper(); must(t, os.Symlink("/etc/hostname", file)) }, "(/pav/error cannot be read: *"},
		"a pod that left a directory":       {func(t *testing.T) { t.Helper(); must(t, os.Mkdir(file, 0o755)) }, "(/pav/error cannot be read: *"},
		"a pod that left a pipe":            {func(t *testing.T) { t.Helper(); must(t, unix.Mkfifo(file, 0o644)) }, "(/pav/error cannot be read: *"},
		"an earlier pod that said why": {func(t *testing.T) {
			t.Helper()
			write(t, file, "stale")
			must(t, os.Chtimes(file, time.Time{}, began.Add(-time.Second)))
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			must(t, os.RemoveAll(file))
			test.leave(t)
			got := h.PodError(t.Context(), "s", began)
			if beginning, open := strings.CutSuffix(test.want, "*"); got != test.want && (!open || !strings.HasPrefix(got, beginning)) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
	must(t, h.Remove(t.Context(), "s"))
	if got := h.PodError(t.Context(), "s", began); got != "" {
		t.Errorf("a stage without a directory said %q", got)
	}
}

// Mounts that pods leave are unmounted. Their content belongs to a user, and stays.
func TestRemove_UnmountsWhatIsLeft_AndItsContentStaysIntact(t *testing.T) {
	h := newHost(t)
	ctx := t.Context()
	precious := t.TempDir()
	write(t, precious+"/file", "precious")
	must(t, os.Mkdir(precious+"/directory", 0o755))
	write(t, precious+"/directory/file", "precious")

	must(t, h.Prepare(ctx, "s"))
	volume := h.pav("s") + "/volume"
	tmpfs(t, volume)
	for _, place := range []string{volume + "/bound", h.pav("s") + "/beside"} {
		must(t, os.Mkdir(place, 0o755))
		must(t, unix.Mount(precious, place, "", unix.MS_BIND, ""))
	}
	must(t, unix.Mount(precious, h.pav("s")+"/beside", "", unix.MS_BIND, "")) // Twice, one over the other.
	must(t, os.Symlink(precious, h.pav("s")+"/link"))
	must(t, h.Attach(ctx, "s", directoryVolume))
	client := h.target(t, "client")
	must(t, os.Mkdir(client, 0o755))
	must(t, unix.Mount(h.Volume("s"), client, "", unix.MS_BIND|unix.MS_REC, ""))
	must(t, unix.Mount("", client, "", unix.MS_PRIVATE|unix.MS_REC, ""))

	must(t, h.Remove(ctx, "s"))
	mustSay(t, false)(h.Exists(ctx, "s"))
	h.wantMounts(t, h.stages())
	wantFile(t, precious+"/file", "precious")
	wantFile(t, precious+"/directory/file", "precious")
	wantFile(t, client+"/bound/file", "precious")
	must(t, unix.Unmount(client, unix.MNT_DETACH))
}

func TestRemoveRoot_RemovesPavsDirectory_UnlessSomethingIsLeftInIt(t *testing.T) {
	h := newHost(t)
	ctx := t.Context()
	must(t, h.RemoveRoot(ctx)) // There is nothing to remove yet.
	must(t, h.Prepare(ctx, "s"))
	must(t, os.Mkdir(h.root()+"/csi", 0o755))
	must(t, h.RemoveRoot(ctx))
	mustSay(t, true)(h.Exists(ctx, "s"))
	must(t, h.Remove(ctx, "s"))
	must(t, h.RemoveRoot(ctx))
	if _, err := os.Lstat(h.root()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory is left: %v", err)
	}
}

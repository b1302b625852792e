package pavdir

import (
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"github.com/albertofaria/pav/internal/mount"
)

var recorded = Stage{
	Driver: "nfs.example.com", Handle: "a/../b", VolumeName: "pv", Mode: corev1.PersistentVolumeFilesystem, Scope: "Pod", ReadOnly: true, Exclusive: true,
	Capacity: 1 << 30, ClaimNamespace: "ns", ClaimName: "claim", ClaimUID: "uid",
	Client: &Client{Namespace: "ns", Name: "pod", UID: "uid2", Target: "/target"}, Boot: Boot{BootID: "boot 1"},
}

func (h *host) wantRecord(t *testing.T, stage string, want *Stage) {
	t.Helper()
	got, err := h.Recorded(t.Context(), stage)
	must(t, err)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("on record of stage %q (-want +got):\n%s", stage, diff)
	}
}

func (h *host) wantStages(t *testing.T, want ...string) {
	t.Helper()
	got, err := h.Stages(t.Context())
	must(t, err)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("stages (-want +got):\n%s", diff)
	}
}

func inode(t *testing.T, path string) uint64 {
	t.Helper()
	var st unix.Stat_t
	must(t, unix.Stat(path, &st))
	return st.Ino
}

func TestRecord_IsKeptUntilTheStageIsRemoved(t *testing.T) {
	h := newHost(t)
	ctx := t.Context()
	h.wantStages(t)
	h.wantRecord(t, "s", nil)
	must(t, h.Record(ctx, "s", recorded))
	h.wantStages(t, "s")
	mustSay(t, true)(h.Exists(ctx, "s"))
	file := h.stagePath("s") + "/stage.json"
	first := inode(t, file)
	must(t, h.Record(ctx, "s", recorded))
	if inode(t, file) != first {
		t.Error("what is on record already was written again")
	}
	h.wantRecord(t, "s", &recorded)

	must(t, h.Record(ctx, "s2", Stage{Driver: "other"}))
	h.wantStages(t, "s", "s2")
	h.wantRecord(t, "s2", &Stage{Driver: "other"})
	must(t, h.Remove(ctx, "s2"))

	must(t, h.RecordPublication(ctx, "s", Publication{Target: "/target"}))
	for name, renew := range map[string]func() error{
		"Renew": func() error { return h.Renew(ctx, "s") },
		"Reset": func() error { return h.Reset(ctx, "s") },
	} {
		must(t, h.Prepare(ctx, "s"))
		tmpfs(t, h.pav("s")+"/volume")
		write(t, h.pav("s")+"/ready", "")
		must(t, h.Attach(ctx, "s", directoryVolume))
		for range 2 {
			must(t, renew())
		}
		want := []string{"stage.json", "targets"}
		if name == "Reset" {
			want = append([]string{"pav"}, want...)
			mustSay(t, false)(h.Ready(ctx, "s"))
			h.wantMounts(t, h.stagePath("s"), "pav")
			h.wantEntries(t, h.pav("s"))
		} else {
			h.wantMounts(t, h.kubelet)
		}
		h.wantEntries(t, h.stagePath("s"), want...)
		h.wantRecord(t, "s", &recorded)
		h.wantTargets(t, "s", "/target")
	}

	next := recorded
	next.BootID, next.Client = "boot 2", nil
	must(t, h.Record(ctx, "s", next))
	h.wantRecord(t, "s", &next)
	must(t, h.Remove(ctx, "s"))
	h.wantRecord(t, "s", nil)
	h.wantTargets(t, "s")
	h.wantStages(t)
	must(t, h.RemoveRoot(ctx))
}

func (h *host) wantEntries(t *testing.T, directory string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(directory)
	must(t, err)
	var got []string
	for _, entry := range entries {
		got = append(got, entry.Name())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("entries of %s (-want +got):\n%s", directory, diff)
	}
}

// Running clients keep the old volume while the stage is staged again, until the new volume covers it.
func TestRenew_LeavesClientsTheirs_AndTheNextAttachmentCanCoverIt(t *testing.T) {
	h := newHost(t)
	ctx := t.Context()
	client := h.target(t, "client")
	must(t, os.Mkdir(client, 0o750))
	for _, text := range []string{"old", "new"} {
		must(t, h.Prepare(ctx, "s"))
		tmpfs(t, h.pav("s")+"/volume")
		write(t, h.pav("s")+"/volume/file", text)
		must(t, h.Attach(ctx, "s", directoryVolume))
		must(t, mount.Cover(h.Volume("s"), client, mount.BindOptions{}))
		must(t, h.Renew(ctx, "s"))
		h.wantMounts(t, h.root())
		wantFile(t, client+"/file", text)
	}
	must(t, mount.Unmount(ctx, client))
	must(t, h.Remove(ctx, "s"))
}

func TestRenewAndRemove_OfAStageThatIsNotThere(t *testing.T) {
	h := newHost(t)
	must(t, h.Renew(t.Context(), "s"))
	must(t, h.Remove(t.Context(), "s"))
	mustSay(t, false)(h.Exists(t.Context(), "s"))
	must(t, h.Reset(t.Context(), "s"))
	h.wantMounts(t, h.stagePath("s"), "pav")
	must(t, h.Remove(t.Context(), "s"))
}

func TestRecord_OfACallThatHasEndedIsNotWritten(t *testing.T) {
	h := newHost(t)
	if err := h.Record(canceled(t), "s", recorded); err == nil {
		t.Error("it is written")
	}
	if err := h.RecordPublication(canceled(t), "s", Publication{Target: "/target"}); err == nil {
		t.Error("it is written")
	}
	mustSay(t, false)(h.Exists(t.Context(), "s"))
}

func TestRecorded_NamesTheFileThatItCannotRead(t *testing.T) {
	h := newHost(t)
	must(t, h.Record(t.Context(), "s", recorded))
	file := h.stagePath("s") + "/stage.json"
	for name, content := range map[string]string{"empty": "", "torn": `{"driver":"nfs`, "zeros": "\x00\x00", "another thing": "[]"} {
		write(t, file, content)
		if got, err := h.Recorded(t.Context(), "s"); err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: got %v, %v", name, got, err)
		}
		h.wantStages(t, "s")
		must(t, h.Record(t.Context(), "s", recorded))
		h.wantRecord(t, "s", &recorded)
	}
	must(t, h.Remove(t.Context(), "s"))
}

func TestRecord_OfAnAbandonedCall_DoesNotDisturbAnother(t *testing.T) {
	h := newHost(t)
	ctx := t.Context()
	var calls sync.WaitGroup
	for i := range 20 {
		calls.Go(func() {
			if err := h.Record(ctx, "s", Stage{Driver: "d", Handle: strings.Repeat("x", 1000*i)}); err != nil {
				t.Error(err)
			}
			if got, err := h.Recorded(ctx, "s"); err != nil || got == nil {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
	calls.Wait()
	h.wantEntries(t, h.stagePath("s"), "stage.json")
	must(t, h.Remove(ctx, "s"))
}

func TestATemporaryFileIsNotARecord_AndIsRemoved(t *testing.T) {
	h := newHost(t)
	ctx := t.Context()
	must(t, h.Prepare(ctx, "s"))
	write(t, h.stagePath("s")+"/.stage.json-1", `{"driver":"d`)
	h.wantRecord(t, "s", nil)
	must(t, h.Record(ctx, "s", recorded))
	h.wantRecord(t, "s", &recorded)
	must(t, h.Renew(ctx, "s"))
	h.wantEntries(t, h.stagePath("s"), "stage.json")
	must(t, h.Remove(ctx, "s"))
}

// The agent is stopped after each of its effects on the disk, in turn. The next agent reads the old record or the new
// one, and continues.
func TestRecord_InterruptedAtAnyPoint(t *testing.T) {
	old := recorded
	old.BootID = "boot 0"
	for name, before := range map[string]*Stage{"the first": nil, "a later one": &old} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			for point := 1; ; point++ {
				if before != nil {
					must(t, h.Record(t.Context(), "s", *before))
				}
				stopped := h.stopAt(t, point, func() error { return h.Record(t.Context(), "s", recorded) })
				got, err := h.Recorded(t.Context(), "s")
				must(t, err)
				if diff := cmp.Diff(before, got); diff != "" {
					h.wantRecord(t, "s", &recorded)
				}
				must(t, h.Record(t.Context(), "s", recorded))
				h.wantRecord(t, "s", &recorded)
				must(t, h.Remove(t.Context(), "s"))
				mustSay(t, false)(h.Exists(t.Context(), "s"))
				if !stopped {
					return
				}
			}
		})
	}
}

// An interrupted removal is detected and continued. The records are removed last: those of the targets, then that of
// the stage.
func TestRemove_InterruptedAtAnyPoint(t *testing.T) {
	h := newHost(t)
	ctx := t.Context()
	for point := 1; ; point++ {
		must(t, h.Record(ctx, "s", recorded))
		must(t, h.Prepare(ctx, "s"))
		tmpfs(t, h.pav("s")+"/volume")
		must(t, h.RecordPublication(ctx, "s", Publication{Target: "/target"}))
		must(t, h.Attach(ctx, "s", directoryVolume))
		stopped := h.stopAt(t, point, func() error { return h.Remove(ctx, "s") })
		there, err := h.Exists(ctx, "s")
		must(t, err)
		got, err := h.Recorded(ctx, "s")
		must(t, err)
		if got == nil {
			h.wantMounts(t, h.kubelet)
			h.wantTargets(t, "s")
			if there {
				h.wantEntries(t, h.stagePath("s"))
			}
		} else if !there {
			t.Error("the record is there, and the stage is not")
		}
		must(t, h.Remove(ctx, "s"))
		mustSay(t, false)(h.Exists(ctx, "s"))
		h.wantMounts(t, h.kubelet)
		if !stopped {
			return
		}
	}
}

// stopAt calls a function, and stops it at an effect on the disk, whose number is point. It reports whether the
// function got that far.
func (h *host) stopAt(t *testing.T, point int, do func() error) (stopped bool) {
	t.Helper()
	var calls atomic.Int64
	mount.SetTrace(func(call string) {
		if calls.Add(1) >= int64(point) {
			panic("stopped after " + call)
		}
	})
	defer mount.SetTrace(nil)
	err := do()
	if calls.Load() < int64(point) {
		must(t, err)
		return false
	}
	if err == nil {
		t.Errorf("stopped after effect %d: no error", point)
	}
	return true
}

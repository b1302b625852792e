package pavdir

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/albertofaria/pav/internal/mount"
)

// wantTargets checks which targets are recorded.
func (h *host) wantTargets(t *testing.T, stage string, want ...string) {
	t.Helper()
	all, err := h.Publications(t.Context(), stage)
	must(t, err)
	var got []string
	for _, p := range all {
		got = append(got, p.Target)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("targets on record (-want +got):\n%s", diff)
	}
}

func TestPublications_AreRecordedUntilForgotten(t *testing.T) {
	h := newHost(t)
	ctx := t.Context()
	must(t, h.Record(ctx, "s", recorded))
	must(t, h.ForgetPublication(ctx, "s", "/never"))
	h.wantTargets(t, "s")
	a := Publication{
		Target: "/a", Options: mount.BindOptions{ReadOnly: true, NoSuid: true, NoDev: true, NoExec: true, NoAtime: true}, Single: true,
		Client: Client{Namespace: "ns", Name: "pod", UID: "uid", Target: "/a"}, Boot: Boot{BootID: "boot 1"},
	}
	b := Publication{Target: strings.Repeat("/long\n", 1000), Boot: Boot{BootID: "boot 0"}}
	for _, p := range []Publication{b, {Target: "/a"}, a, a} {
		must(t, h.RecordPublication(ctx, "s", p))
	}
	got, err := h.Publications(ctx, "s")
	must(t, err)
	if diff := cmp.Diff([]Publication{a, b}, got); diff != "" {
		t.Errorf("on record (-want +got):\n%s", diff)
	}
	for range 2 {
		must(t, h.ForgetPublication(ctx, "s", b.Target))
	}
	h.wantTargets(t, "s", "/a")
	h.wantTargets(t, "other")
	must(t, h.Remove(ctx, "s"))
	h.wantTargets(t, "s")
	must(t, h.ForgetPublication(ctx, "s", "/a"))
}

// A target of a stage without a record would be forgotten together with the stage, so it is not recorded.
func TestRecordPublication_MakesNoStage(t *testing.T) {
	h := newHost(t)
	must(t, h.Record(t.Context(), "other", recorded))
	if err := h.RecordPublication(t.Context(), "s", Publication{Target: "/a"}); err == nil {
		t.Error("it is on record")
	}
	mustSay(t, false)(h.Exists(t.Context(), "s"))
	must(t, h.Remove(t.Context(), "other"))
}

// Files are torn only if the machine crashes, and then nothing is mounted any more.
func TestPublications_ThatAreTornAreIgnored(t *testing.T) {
	h := newHost(t)
	ctx := t.Context()
	must(t, h.Record(ctx, "s", recorded))
	for _, target := range []string{"/a", "/b", "/c"} {
		must(t, h.RecordPublication(ctx, "s", Publication{Target: target}))
	}
	must(t, os.Truncate(h.targets("s")+"/"+publication("/a"), 0))
	must(t, os.Truncate(h.targets("s")+"/"+publication("/b"), 9))
	write(t, h.targets("s")+"/."+publication("/d")+"-1", `{"target":"/d"}`)
	h.wantTargets(t, "s", "/c")
	must(t, h.RecordPublication(ctx, "s", Publication{Target: "/a"}))
	h.wantTargets(t, "s", "/a", "/c")
	must(t, h.Remove(ctx, "s"))
}

func TestRecordPublication_OfManyTargetsAtOnce(t *testing.T) {
	h := newHost(t)
	ctx := t.Context()
	must(t, h.Record(ctx, "s", recorded))
	var want []string
	var calls sync.WaitGroup
	for i := range 50 {
		target := fmt.Sprintf("/target-%02d", i)
		if i%2 == 0 {
			want = append(want, target)
		}
		calls.Go(func() {
			if err := h.RecordPublication(ctx, "s", Publication{Target: target}); err != nil {
				t.Error(err)
			}
			// A concurrent read gets no error.
			if _, err := h.Publications(ctx, "s"); err != nil {
				t.Error(err)
			}
			if i%2 != 0 {
				if err := h.ForgetPublication(ctx, "s", target); err != nil {
					t.Error(err)
				}
			}
		})
	}
	// Many calls for one target leave one complete record.
	for i := range 10 {
		calls.Go(func() {
			p := Publication{Target: "/same", Client: Client{Name: strings.Repeat("x", 100*i)}}
			if err := h.RecordPublication(ctx, "s", p); err != nil {
				t.Error(err)
			}
		})
	}
	calls.Wait()
	h.wantTargets(t, "s", append([]string{"/same"}, want...)...)
	must(t, h.Remove(ctx, "s"))
}

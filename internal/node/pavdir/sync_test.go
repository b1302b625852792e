package pavdir

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/albertofaria/pav/internal/mount"
)

func TestDetach_DoesNotWaitForEver(t *testing.T) {
	h := newHost(t)
	tmpfs(t, h.Volume("s"))
	end, err := h.syncs.begin("s")
	must(t, err)
	defer end()
	h.syncs.running["s"] = runningSync{began: time.Now().Add(-longestSync), done: make(chan struct{})}
	must(t, h.Detach(t.Context(), "s"))
}

func TestSyncs_Begin(t *testing.T) {
	s := newSyncs()
	var ends []func()
	for i := range maxSyncs {
		end, err := s.begin(fmt.Sprint(i))
		must(t, err)
		ends = append(ends, end)
	}
	allow, allowAgain := s.prevent("new"), s.prevent("new")
	want := func(stage string, want error) {
		t.Helper()
		end, err := s.begin(stage)
		if !errors.Is(err, want) {
			t.Errorf("stage %s: got %v, want %v", stage, err, want)
		}
		if err == nil {
			end()
		}
	}
	want("0", mount.ErrHangs)
	want("one more", errTooManySyncs)
	ends[0]()
	want("one more", nil)
	want("new", mount.ErrNotMounted)
	allow()
	want("new", mount.ErrNotMounted)
	allowAgain()
	want("new", nil)
}

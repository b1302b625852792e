package pavdir_test

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/albertofaria/pav/internal/mount"
	"github.com/albertofaria/pav/internal/node/nodetest"
)

// canceled returns a context that has ended.
func canceled(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

// A volume that hangs costs one thread, and does not keep others from their storage.
func TestSync_HangingVolume_HoldsUpNoOther(t *testing.T) {
	m := nodetest.New(t)
	healthy := m.Dirs.Volume("healthy")
	nodetest.Must(t, os.MkdirAll(healthy, 0o755))
	nodetest.Must(t, unix.Mount("test", healthy, "tmpfs", 0, ""))
	goOn := m.Attach(t).Hang()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := m.Dirs.Sync(ctx, "stage-a"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the end of the context", err)
	}
	if err := m.Dirs.Sync(t.Context(), "stage-a"); !errors.Is(err, mount.ErrHangs) {
		t.Errorf("got %v, want %v", err, mount.ErrHangs)
	}
	nodetest.Must(t, m.Dirs.Sync(t.Context(), "healthy"))
	goOn()
	for _, stage := range []string{"stage-a", "healthy"} {
		nodetest.Must(t, m.Dirs.Detach(t.Context(), stage))
		if err := m.Dirs.Sync(t.Context(), stage); !errors.Is(err, mount.ErrNotMounted) {
			t.Errorf("the detached volume of %s: got %v, want %v", stage, err, mount.ErrNotMounted)
		}
	}
}

// The file system of a volume must not outlive the unstaging: another node may have it then.
func TestDetach_WaitsForASync(t *testing.T) {
	m := nodetest.New(t)
	goOn := m.Attach(t).Hang()
	if err := m.Dirs.Sync(canceled(t), "stage-a"); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	if err := m.Dirs.Detach(canceled(t), "stage-a"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the end of the context", err)
	}
	if attached, err := m.Dirs.Attached(t.Context(), "stage-a"); err != nil || !attached {
		t.Errorf("it was detached, and may still be written to: %v", err)
	}
	goOn()
	nodetest.Must(t, m.Dirs.Detach(t.Context(), "stage-a"))
	if attached, err := m.Dirs.Attached(t.Context(), "stage-a"); err != nil || attached {
		t.Errorf("it is still attached: %v", err)
	}
}

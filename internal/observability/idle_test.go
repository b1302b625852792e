package observability

import (
	"runtime"
	"runtime/debug"
	"testing"
)

func TestIdleness(t *testing.T) {
	idle := idleness{}
	const mebibyte = 1 << 20
	for i, step := range []struct {
		allocated uint64 // since the step before
		want      bool
	}{
		{100 * mebibyte, false}, // the start
		{10 * mebibyte, false},
		{mebibyte, true},
		{mebibyte, false}, // it was idle before
		{0, false},
		{busyBytes, false},
		{busyBytes - 1, true},
	} {
		if got := idle.begins(idle.allocated + step.allocated); got != step.want {
			t.Errorf("step %d: it becomes idle: %t, want %t", i, got, step.want)
		}
	}
}

// What idleness reads must grow with each allocation, or a busy agent would collect garbage all the time.
func TestAllocated_CountsWhatIsFreedToo(t *testing.T) {
	before := allocated()
	for range 8 {
		garbage := make([]byte, busyBytes)
		runtime.KeepAlive(garbage)
	}
	debug.FreeOSMemory()
	if got := allocated() - before; got < 8*busyBytes {
		t.Errorf("%d bytes are counted, want at least %d", got, 8*busyBytes)
	}
}

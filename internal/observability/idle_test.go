package observability

import (
	"runtime"
	"runtime/debug"
	"testing"
)

func TestIdleness(t *testing.T) {
	idle, now := idleness{}, memory{}
	const mebibyte = 1 << 20
	for i, step := range []struct {
		allocated uint64 // since the step before
		live      uint64
		want      bool
	}{
		{100 * mebibyte, 8 * mebibyte, false}, // the start
		{10 * mebibyte, 8 * mebibyte, false},
		{mebibyte, 8 * mebibyte, true},
		{mebibyte, 8 * mebibyte, false}, // it was idle before
		{0, 8 * mebibyte, false},
		{3 * mebibyte, 8 * mebibyte, true}, // 4 MiB since memory was given back
		{0, 8 * mebibyte, false},
		{busyBytes, 8 * mebibyte, false},
		{busyBytes - 1, 8 * mebibyte, true},
		{3 * mebibyte, 24 * mebibyte, false}, // a larger agent gives memory back less often
		{2 * mebibyte, 24 * mebibyte, false},
		{mebibyte, 24 * mebibyte, true},
	} {
		now = memory{allocated: now.allocated + step.allocated, live: step.live}
		if got := idle.isDue(now); got != step.want {
			t.Errorf("step %d: memory is given back: %t, want %t", i, got, step.want)
		}
	}
}

// What idleness reads must grow with each allocation, or a busy agent would collect garbage all the time.
func TestReadMemory_CountsWhatIsFreedToo(t *testing.T) {
	before := readMemory().allocated
	for range 8 {
		garbage := make([]byte, busyBytes)
		runtime.KeepAlive(garbage)
	}
	debug.FreeOSMemory()
	if got := readMemory().allocated - before; got < 8*busyBytes {
		t.Errorf("%d bytes are counted, want at least %d", got, 8*busyBytes)
	}
}

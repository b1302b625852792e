package sandbox

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"testing"
	"time"
)

// uses returns the number of bytes that a call uses: the sum of all its allocations. If that sum exceeds maxMemory,
// uses makes the call again and returns the maximum that is in use at the same time. The process must not do anything
// else meanwhile.
func uses(tb testing.TB, call func()) uint64 {
	tb.Helper()
	before := allocated()
	call()
	if all := allocated() - before; all <= maxMemory {
		return all
	}
	return mostInUse(call)
}

// allocated returns the number of bytes that have been allocated since the process's start.
func allocated() uint64 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.TotalAlloc
}

// mostInUse makes the call and returns the maximum number of bytes in use during the call, minus the bytes in use
// before it.
func mostInUse(call func()) uint64 {
	// Unused memory counts until it is collected, so it is collected often.
	defer debug.SetGCPercent(debug.SetGCPercent(5))
	runtime.GC()
	before := inUse()
	most := before
	stop := make(chan struct{})
	var watcher sync.WaitGroup
	watcher.Go(func() {
		ticker := time.NewTicker(time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				most = max(most, inUse())
			case <-stop:
				return
			}
		}
	})
	call()
	close(stop)
	watcher.Wait()
	return most - before
}

func inUse() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

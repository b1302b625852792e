package sandbox

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"testing"
	"time"
)

// uses returns how many bytes a call uses: all that it allocates, or, if that is more than it may use at
// once, the most that is in use at any time. Nothing else may go on meanwhile.
func uses(tb testing.TB, call func()) uint64 {
	tb.Helper()
	before := allocated()
	call()
	if all := allocated() - before; all <= maxMemory {
		return all
	}
	return mostInUse(call)
}

// allocated returns how many bytes have ever been allocated.
func allocated() uint64 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.TotalAlloc
}

// mostInUse calls, and returns the most bytes that were in use meanwhile, besides those in use before.
func mostInUse(call func()) uint64 {
	// What is not in use any more counts until it is collected.
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

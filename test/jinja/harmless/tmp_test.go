package harmless

import (
	"fmt"
	"maps"
	"runtime"
	"runtime/debug"
	"slices"
	"testing"
	"time"
)

func TestTmp(t *testing.T) {
	context := variables(t)
	debug.SetGCPercent(20)
	for _, name := range slices.Sorted(maps.Keys(hostiles)) {
		if name == "a list by multiplication" { continue }
		runtime.GC()
		var s runtime.MemStats
		runtime.ReadMemStats(&s)
		base, total := s.HeapAlloc, s.TotalAlloc
		stop := make(chan struct{})
		peak := make(chan uint64)
		go func() {
			var p uint64
			for {
				var s runtime.MemStats
				runtime.ReadMemStats(&s)
				p = max(p, s.HeapAlloc)
				select {
				case <-stop:
					peak <- p
					return
				case <-time.After(time.Millisecond):
				}
			}
		}()
		began := time.Now()
		got, _ := evaluate(t, hostiles[name].template, context)
		took := time.Since(began)
		close(stop)
		p := <-peak
		runtime.ReadMemStats(&s)
		if tot := (s.TotalAlloc - total) >> 20; tot > 40 || took > 300*time.Millisecond {
			fmt.Printf("%-40s peak %4d MiB total %4d MiB %8s %.80s\n", name, (int64(p)-int64(base))>>20, tot, took.Round(time.Millisecond), got)
		}
	}
}

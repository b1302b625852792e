package csi

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/go-logr/logr"
)

// benchDrivers is how many drivers the benchmarks have.
const benchDrivers = 1000

// memory returns the bytes that Go has in use, without garbage.
func memory() float64 {
	var stats runtime.MemStats
	for range 3 { // Stacks shrink by half at each collection.
		runtime.GC()
	}
	runtime.ReadMemStats(&stats)
	return float64(stats.HeapAlloc + stats.StackInuse)
}

// BenchmarkRegistry_Memory measures what a driver costs that nobody uses, without its PavProvisioner.
func BenchmarkRegistry_Memory(b *testing.B) {
	b.Chdir(b.TempDir())
	var used float64
	for b.Loop() {
		r, err := NewRegistry(".", logr.Discard())
		if err != nil {
			b.Fatal(err)
		}
		before := memory()
		for i := range benchDrivers {
			name := fmt.Sprintf("driver-%04d", i)
			if err := r.Serve(name, services(name, "1")); err != nil {
				b.Fatal(err)
			}
		}
		used += memory() - before
		r.Close()
	}
	b.ReportMetric(used/float64(b.N)/benchDrivers, "B/driver")
}

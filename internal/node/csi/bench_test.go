package csi

import (
	"context"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/go-logr/logr"
	"google.golang.org/grpc"
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
	kubelet(b)
	drivers, _ := many(benchDrivers)
	var used float64
	for b.Loop() {
		r, err := NewRegistry(".", KubeletRecord{}, logr.Discard())
		must(b, err)
		before := memory()
		for name := range drivers {
			must(b, r.Serve(name, services(name, "1")))
		}
		used += memory() - before
		r.Close()
	}
	b.ReportMetric(used/float64(b.N)/benchDrivers, "B/driver")
}

// BenchmarkRegistry_Restart measures how long after the start of an agent its drivers answer, while kubelet has them
// registered for the agent before. Kubelet's calls are made one after the other, each with a connection of its own.
func BenchmarkRegistry_Restart(b *testing.B) {
	k := newKubelet(b)
	k.run(b)
	drivers, _ := many(benchDrivers)
	var calls []string
	for name := range drivers {
		calls = append(calls, name)
	}
	slices.Sort(calls)
	start := func() (end func()) {
		r, err := NewRegistry(".", KubeletRecord{Node: "node1", Reader: k}, logr.Discard())
		must(b, err)
		for name := range drivers {
			must(b, r.Register(name, services(name, "1")))
		}
		ctx, cancel := context.WithCancel(b.Context())
		ended := make(chan error, 1)
		go func() { ended <- r.Run(ctx) }()
		return func() {
			cancel()
			must(b, happens(b, "the agent ends", ended))
			r.Close()
		}
	}
	end := start()
	eventually(b, "kubelet has registered all drivers", func() bool { return len(k.drivers()) == benchDrivers })

	var answered []time.Duration
	for b.Loop() {
		end()
		began := time.Now()
		end = start()
		for _, name := range calls {
			must(b, dial(b, "plugins/pav.albertofaria.github.io/csi/"+socketName(name), func(ctx context.Context, conn *grpc.ClientConn) error {
				_, err := csi.NewIdentityClient(conn).Probe(ctx, &csi.ProbeRequest{})
				return err
			}))
			answered = append(answered, time.Since(began))
		}
	}
	end()
	slices.Sort(answered)
	b.ReportMetric(answered[0].Seconds(), "s/first")
	b.ReportMetric(answered[len(answered)/2].Seconds(), "s/median")
	b.ReportMetric(answered[len(answered)-1].Seconds(), "s/last")
	if left := see(k, func() []string { return k.removals }); len(left) > 0 {
		b.Errorf("%q have left the CSINode", left)
	}
}

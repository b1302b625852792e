package observability

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// An agent that allocates less than busyBytes in idlePeriod is idle. It writes leases and answers probes, and does nothing else.
const (
	idlePeriod = 10 * time.Second
	busyBytes  = 4 << 20
)

// ReturnMemory returns a Runnable that gives memory back to the operating system each time that an agent has become idle. Otherwise Go
// keeps as much as it needs for garbage while the agent works. After its start, an agent looks at each object that it has.
func ReturnMemory() manager.Runnable {
	return everywhere(func(ctx context.Context) error {
		ticker := time.NewTicker(idlePeriod)
		defer ticker.Stop()
		idle := idleness{}
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-ticker.C:
				if idle.begins(allocated()) {
					debug.FreeOSMemory()
				}
			}
		}
	})
}

// idleness tells when an agent becomes idle. The zero value is that of a busy agent.
type idleness struct {
	allocated uint64 // when it was last asked
	idle      bool
}

// begins reports whether the agent has become idle since it was last asked, by the bytes that the process has allocated in all.
func (i *idleness) begins(allocated uint64) bool {
	before := i.idle
	i.idle = allocated-i.allocated < busyBytes
	i.allocated = allocated
	return i.idle && !before
}

// allocated returns how many bytes the process has allocated in all.
func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

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

// ReturnMemory returns a Runnable that gives memory back to the operating system each time that an agent has become idle. As long as it
// stays idle, it does that again each time that the agent has allocated a quarter of what it uses, and at least busyBytes. Otherwise Go
// keeps as much as it needs for garbage while the agent works, and an idle agent fills that with garbage in the end. After its start,
// an agent looks at each object that it has.
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
				if idle.isDue(readMemory()) {
					debug.FreeOSMemory()
				}
			}
		}
	})
}

// memory is how much memory Go has allocated for the process, in bytes.
type memory struct {
	allocated uint64 // since it began
	live      uint64 // what was in use at the last garbage collection
}

// idleness tells when an idle agent is to give memory back. The zero value is that of a busy agent.
type idleness struct {
	allocated uint64 // when it was last asked
	returned  uint64 // what was allocated when memory was last given back
	idle      bool
}

// isDue reports whether the agent has become idle since it was last asked, or has allocated much since memory was given back.
func (i *idleness) isDue(now memory) bool {
	before := i.idle
	i.idle = now.allocated-i.allocated < busyBytes
	i.allocated = now.allocated
	due := i.idle && (!before || now.allocated-i.returned >= max(busyBytes, now.live/4))
	if due {
		i.returned = now.allocated
	}
	return due
}

func readMemory() memory {
	samples := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}, {Name: "/gc/heap/live:bytes"}}
	metrics.Read(samples)
	return memory{allocated: samples[0].Value.Uint64(), live: samples[1].Value.Uint64()}
}

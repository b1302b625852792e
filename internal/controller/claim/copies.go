package claim

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// copyInterval is how long PaV waits between two copies of one claim: a tenant can change a claim at any rate, and
// must not make PaV write at that rate.
const copyInterval = time.Second

// fewCopies is how many times of copies are kept before those that do not matter any more are removed.
const fewCopies = 1024

// copies has the time of the last copy of each claim, or of the last attempt, if that was a short time ago.
type copies struct {
	mu   sync.Mutex
	last map[types.NamespacedName]time.Time
	most int // how many times are kept before those that do not matter any more are removed; fewCopies if it is less
}

// wait returns how long to wait before a claim is copied. If it is 0, the claim counts as copied now.
func (c *copies) wait(claim types.NamespacedName, now time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if since := now.Sub(c.last[claim]); since >= 0 && since < copyInterval {
		return copyInterval - since
	}
	if c.last == nil {
		c.last = map[types.NamespacedName]time.Time{}
	}
	c.last[claim] = now
	if len(c.last) > max(c.most, fewCopies) {
		maps.DeleteFunc(c.last, func(_ types.NamespacedName, at time.Time) bool { return now.Sub(at).Abs() >= copyInterval })
		c.most = 2 * len(c.last)
	}
	return 0
}

// forget removes a claim that is gone.
func (c *copies) forget(claim types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.last, claim)
}

package claim

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// copyInterval is how long PaV waits between two copies of one claim: a tenant can change a claim at any rate, and
// must not make PaV write at that rate.
const copyInterval = time.Second

// copies has the time of the last copy of each claim, or of the last attempt.
type copies struct {
	mu   sync.Mutex
	last map[types.NamespacedName]time.Time
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
	return 0
}

// forget removes a claim that is gone.
func (c *copies) forget(claim types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.last, claim)
}

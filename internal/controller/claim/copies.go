package claim

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// copyInterval is how long PaV waits between two copies of one claim: whoever may change a claim, as often
// as they like, decides how often PaV writes.
const copyInterval = time.Second

// copies are when claims were last copied, or it was last tried.
type copies struct {
	mu   sync.Mutex
	last map[types.NamespacedName]time.Time
}

// wait returns how long a claim is not to be copied yet. Where it is 0, the claim counts as copied now.
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

// forget forgets a claim that is gone.
func (c *copies) forget(claim types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.last, claim)
}

package invariants

import (
	"encoding/json"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/albertofaria/pav/test/simulation/world"
)

const (
	// most is the maximum number of an agent's requests in a minute for one object, while the world is calm.
	most = 200

	// largest is the maximum size in bytes of an object that an agent writes, as JSON.
	largest = 32 << 10
)

// asker is an agent with the object or the list that it requests.
type asker struct{ by, object string }

// minute counts requests from its beginning on.
type minute struct {
	began    time.Time
	requests int
}

// count counts a request of an agent.
func (i *Invariants) count(c *world.Call) {
	if i.Idle {
		i.failf(5, "an agent has nothing to do, and makes a request: %s", c.What)
	}
	if !i.Calm {
		return
	}
	words := strings.Fields(c.What)
	key := asker{by: c.By, object: words[len(words)-1]} // its name, or the kind of a list
	m := i.minutes[key]
	if time.Since(m.began) >= time.Minute {
		m = minute{began: time.Now()}
	}
	m.requests++
	if i.minutes[key] = m; m.requests > most {
		i.failf(5, "%s makes more than %d requests in a minute for %s: %s", c.By, most, key.object, c.What)
	}
}

// measure checks the size of an object that an agent writes.
func (i *Invariants) measure(by string, object client.Object) {
	raw, err := json.Marshal(object)
	if err != nil {
		panic(err) // all kinds can be marshaled
	}
	if len(raw) > largest {
		i.failf(5, "%s writes %s with %d bytes", by, i.store.KeyOf(object), len(raw))
	}
}

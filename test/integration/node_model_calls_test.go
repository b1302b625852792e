package integration

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// modelClients is how many clients a volume has at most.
const modelClients = 3

// nextRound returns calls that are made at once, each of which is legal whichever comes first, and changes the model.
func nextRound(random *rand.Rand, models []*modelVolume) []*call {
	var round []*call
	for _, m := range models {
		if random.IntN(3) == 0 {
			continue
		}
		for _, c := range nextCalls(random, m) {
			for range 1 + random.IntN(3)/2 {
				repeated := *c
				if random.IntN(4) == 0 && c.want == codes.OK {
					repeated.hurry = time.Duration(random.IntN(60)) * time.Millisecond
				}
				round = append(round, &repeated)
			}
		}
	}
	return round
}

// nextCalls returns calls for one volume.
func nextCalls(random *rand.Rand, m *modelVolume) []*call {
	switch choice := random.IntN(10); {
	case choice < 3:
		m.stage()
		return []*call{{name: "stage", volume: m}}
	case choice < 4 && len(m.published) == 0:
		m.staged = false
		return []*call{{name: "unstage", volume: m}}
	case choice < 7:
		return publishSome(random, m)
	default:
		number := random.IntN(modelClients)
		c := modelClient(m, number)
		delete(m.published, number)
		return []*call{{name: "unpublish", volume: m, client: c}}
	}
}

func (m *modelVolume) stage() {
	if !m.staged && !m.scopePod {
		m.stagings++
	}
	m.staged = true
}

// publishSome returns calls for some clients of a volume, each for another one.
func publishSome(random *rand.Rand, m *modelVolume) []*call {
	var calls []*call
	for _, number := range random.Perm(modelClients)[:1+random.IntN(modelClients)] {
		writes := random.IntN(2) == 0
		c := &call{name: "publish", volume: m, client: clientOf(m.Volume, number)}
		c.client.ReadOnly = !writes
		had, published := m.published[number]
		switch {
		case !m.staged:
			c.want = codes.FailedPrecondition
		case published && had != writes:
			c.want = codes.AlreadyExists
		case !published:
			m.published[number] = writes
			if m.scopePod {
				m.stagings++
			}
		}
		calls = append(calls, c)
	}
	return calls
}

// makeRound makes calls at once, and those again that another one was in the way of, and says whether all
// ended as they must.
func (n *node) makeRound(ctx context.Context, round []*call, fail func(format string, args ...any)) bool {
	errs := make([]error, len(round))
	var calls sync.WaitGroup
	for i, c := range round {
		calls.Go(func() { errs[i] = n.makeCall(ctx, c, len(round) > 1) })
	}
	calls.Wait()
	good := true
	for i, c := range round {
		if code := status.Code(errs[i]); code != c.want {
			fail("%s: code %s, want %s: %v", c, code, c.want, errs[i])
			good = false
		}
	}
	return good
}

// makeCall makes a call, and makes it again where that is not its end: if its caller gave up,
// where another call is in the way, if there can be one, and where the agent's cache does not know of the
// volume yet.
func (n *node) makeCall(ctx context.Context, c *call, others bool) error {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	hurry := c.hurry
	var err error
	n.Until(ctx, func(ctx context.Context) error {
		limited := ctx
		if hurry > 0 {
			var end context.CancelFunc
			limited, end = context.WithTimeout(ctx, hurry)
			defer end()
		}
		err = n.oneCall(limited, c)
		again := false
		switch status.Code(err) {
		case codes.DeadlineExceeded, codes.Canceled:
			again = hurry > 0
			hurry = 0
		case codes.Aborted:
			again = others || c.hurry > 0 // The call that nobody waits for any more may go on for a moment.
		case codes.Unavailable, codes.NotFound:
			again = true
		default:
		}
		if again {
			return err
		}
		return nil
	})
	return err
}

func (n *node) oneCall(ctx context.Context, c *call) error {
	switch c.name {
	case "stage":
		return n.Stage(ctx, c.volume.Volume)
	case "publish":
		return n.Publish(ctx, c.volume.Volume, c.client)
	case "unpublish":
		return n.Unpublish(ctx, c.volume.Volume, c.client)
	case "unstage":
		return n.Unstage(ctx, c.volume.Volume)
	default:
		return fmt.Errorf("there is no call %q", c.name)
	}
}

// checkModel reports whether what is mounted for clients is what the model says, and can be read.
func (n *node) checkModel(models []*modelVolume, fail func(format string, args ...any)) bool {
	mounts, err := n.Mounts()
	if err != nil {
		fail("%v", err)
		return false
	}
	good := true
	bad := func(format string, args ...any) { good = false; fail(format, args...) }
	for _, m := range models {
		for number := range modelClients {
			n.checkClient(m, number, mounts, bad)
		}
		if !m.staged && slices.ContainsFunc(mounts, func(mount string) bool { return strings.Contains(mount, "/"+m.Name+"/") }) {
			bad("%s is not staged, but among the mounts: %q", m.Handle, mounts)
		}
	}
	return good
}

func (n *node) checkClient(m *modelVolume, number int, mounts []string, bad func(format string, args ...any)) {
	client := clientOf(m.Volume, number)
	target, err := filepath.Rel(n.Dir, n.Target(m.Volume, client))
	if err != nil {
		bad("%v", err)
		return
	}
	var found []string
	for _, mount := range mounts {
		if point, rest, _ := strings.Cut(mount, " "); point == target {
			found = append(found, rest)
		}
	}
	writes, published := m.published[number]
	switch {
	case !published && len(found) > 0:
		bad("%s has %s, and must not: %q", client.Name, m.Handle, found)
	case published && (len(found) != 1 || strings.HasPrefix(found[0], "rw") != writes):
		bad("%s has %s as %q, want one mount, writable %t", client.Name, m.Handle, found, writes)
	case published:
		want := m.Handle
		if m.Block {
			want = deviceContent
		}
		if got, err := n.reads(m.Volume, client); err != nil || got != want {
			bad("%s reads %q, %v; want %q", client.Name, got, err, want)
		}
	}
}

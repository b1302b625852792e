package agent

import (
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/albertofaria/pav/internal/controller"
)

// restartAfter is the time between the end of an agent and the start of the next one.
const restartAfter = 100 * time.Millisecond

// Supervisor runs an agent. Whenever the agent ends in a way that its line allows, the Supervisor replaces it, as a
// Deployment does.
type Supervisor struct {
	first   *Agent
	stopped chan struct{}

	mu       sync.Mutex
	current  *Agent
	stopping bool
}

// Supervise starts an agent that is cut off after a number of its writes; 0 means never.
func Supervise(t *testing.T, config *rest.Config, o controller.Options, cutAfter int) *Supervisor {
	t.Helper()
	first := Launch(t, config, o, &Line{CutAfter: cutAfter, MayEnd: o.LeaderElect})
	s := &Supervisor{first: first, current: first, stopped: make(chan struct{})}
	go s.replace(func() *Agent { return Launch(t, config, o, &Line{MayEnd: o.LeaderElect}) })
	return s
}

// replace replaces agents that end, until Stop is called, or an agent ends that should not.
func (s *Supervisor) replace(launch func() *Agent) {
	defer close(s.stopped)
	for a := s.first; ; {
		<-a.Ended()
		<-time.After(restartAfter)
		s.mu.Lock()
		if s.stopping || !a.Line.endsAgent() {
			s.mu.Unlock()
			return
		}
		a = launch()
		s.current = a
		s.mu.Unlock()
	}
}

// First returns the first agent.
func (s *Supervisor) First() *Agent { return s.first }

// Stop ends the current agent and returns it.
func (s *Supervisor) Stop(t *testing.T) *Agent {
	t.Helper()
	s.mu.Lock()
	s.stopping = true
	a := s.current
	s.mu.Unlock()
	a.Stop(t)
	<-s.stopped
	return a
}

// Cuts counts the lives of volumes: those in which an agent was to be cut off, and those in which it was.
type Cuts struct{ lives, cuts int }

// Add counts the life of a volume. The first agent was to be cut off after cutAfter writes. It may have made fewer: how
// many changes of a claim are copied one by one depends on timing.
func (c *Cuts) Add(t *testing.T, s *Supervisor, cutAfter int) {
	t.Helper()
	c.lives++
	if s.first.Line.IsCut() {
		c.cuts++
	} else if writes := s.first.Line.Writes(); len(writes) >= cutAfter {
		t.Errorf("the agent was to be cut off after write %d, and was not: %q", cutAfter, writes)
	}
}

// Check fails the test unless agents were cut off in at least three of four lives, or in all but one: where there are few lives, that may
// be the last, which makes fewer writes than an undisturbed one.
func (c *Cuts) Check(t *testing.T) {
	t.Helper()
	t.Logf("the agent was cut off in %d of %d lives", c.cuts, c.lives)
	if missed := c.lives - c.cuts; c.cuts == 0 || missed > 1 && 4*c.cuts < 3*c.lives {
		t.Error("these are too few")
	}
}

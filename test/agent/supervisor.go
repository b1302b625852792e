package agent

import (
	"testing"

	"k8s.io/client-go/rest"

	"github.com/albertofaria/pav/internal/controller"
)

// Supervisor runs an agent and, when its line is cut, another one in its place, as a Deployment does.
type Supervisor struct {
	current chan *Agent
	stopped chan struct{}
	first   *Agent
}

// Supervise starts an agent that is cut off after a number of its writes; 0 for never.
func Supervise(t *testing.T, config *rest.Config, o controller.Options, cutAfter int) *Supervisor {
	t.Helper()
	s := &Supervisor{current: make(chan *Agent, 1), stopped: make(chan struct{})}
	first := Launch(t, config, o, &Line{CutAfter: cutAfter})
	s.current <- first
	s.first = first
	go func() {
		defer close(s.stopped)
		err := <-first.done
		first.done <- err // for its Stop
		if first.Line.IsCut() {
			<-s.current
			s.current <- Launch(t, config, o, &Line{})
		}
	}()
	return s
}

// WantCut fails the test unless the first agent was cut off, as it is to be after so many writes of all
// that an undisturbed life takes.
func (s *Supervisor) WantCut(t *testing.T, cutAfter, writes int) {
	t.Helper()
	// How many changes of a claim are copied one by one depends on time; half of the writes always come.
	if cutAfter > 0 && cutAfter <= writes/2 && !s.first.Line.IsCut() {
		t.Errorf("the agent was to be cut off after write %d of %d, and was not", cutAfter, writes)
	}
}

// Stop ends the present agent and returns it.
func (s *Supervisor) Stop(t *testing.T) *Agent {
	t.Helper()
	a := <-s.current
	a.cancel()
	s.current <- a
	<-s.stopped
	a = <-s.current
	a.Stop(t)
	return a
}

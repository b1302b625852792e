package machine

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/albertofaria/pav/test/cluster/internal/control"
)

const (
	// pause is the delay before a component that ended is started again.
	pause = time.Second
	// grace is the time that a component has to end after SIGTERM.
	grace = 10 * time.Second
)

// component is a supervised program.
type component struct {
	spec   control.Component
	wanted bool
	// process is the ID of the running process, or 0.
	process int
	// ended is closed when the running process has ended.
	ended    chan struct{}
	starts   int
	lastExit string
}

// supervisor starts components and reaps all processes of the node.
type supervisor struct {
	lock       sync.Mutex
	components map[string]*component
}

func newSupervisor() *supervisor { return &supervisor{components: map[string]*component{}} }

// reap reaps all children, including processes whose parents on the node have ended.
func (s *supervisor) reap() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGCHLD)
	for {
		for s.reapOne() {
		}
		<-signals
	}
}

// reapOne reaps one child, and reports whether it should be called again. It holds the lock, so that no child is reaped
// before its component is known.
func (s *supervisor) reapOne() bool {
	s.lock.Lock()
	defer s.lock.Unlock()
	var status syscall.WaitStatus
	process, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
	if errors.Is(err, syscall.EINTR) {
		return true
	}
	if err != nil || process <= 0 {
		return false
	}
	for _, component := range s.components {
		if component.process == process {
			s.exited(component, status)
		}
	}
	return true
}

func (s *supervisor) exited(component *component, status syscall.WaitStatus) {
	component.process = 0
	component.lastExit = fmt.Sprintf("exit code %d", status.ExitStatus())
	if status.Signaled() {
		component.lastExit = fmt.Sprintf("signal %d (%s)", status.Signal(), status.Signal())
	}
	close(component.ended)
	if component.wanted {
		time.AfterFunc(pause, func() {
			s.lock.Lock()
			defer s.lock.Unlock()
			s.start(component)
		})
	}
}

// start starts a component that is wanted and does not run. The caller holds the lock.
func (s *supervisor) start(component *component) {
	if !component.wanted || component.process != 0 {
		return
	}
	process, err := spawn(component.spec)
	if err != nil {
		component.lastExit = err.Error()
		time.AfterFunc(pause, func() {
			s.lock.Lock()
			defer s.lock.Unlock()
			s.start(component)
		})
		return
	}
	component.starts++
	component.process, component.ended = process, make(chan struct{})
}

// spawn starts the process of a component. It does not use os/exec, which would wait for the child itself.
func spawn(spec control.Component) (int, error) {
	log, err := os.OpenFile(spec.Log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return 0, fmt.Errorf("opening the log: %w", err)
	}
	defer func() { _ = log.Close() }()
	null, err := os.Open(os.DevNull)
	if err != nil {
		return 0, fmt.Errorf("opening the input: %w", err)
	}
	defer func() { _ = null.Close() }()
	process, err := syscall.ForkExec(spec.Command[0], spec.Command, &syscall.ProcAttr{
		Dir: "/", Env: spec.Environment,
		Files: []uintptr{null.Fd(), log.Fd(), log.Fd()},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return 0, fmt.Errorf("starting %s: %w", spec.Command[0], err)
	}
	return process, nil
}

// handle performs the operation of a request.
func (s *supervisor) handle(request control.Request) control.Answer {
	err := s.perform(request)
	answer := control.Answer{Components: s.states()}
	if err != nil {
		answer.Error = err.Error()
	}
	return answer
}

func (s *supervisor) perform(request control.Request) error {
	if request.Operation == control.Status {
		return nil
	}
	component, err := s.find(request)
	if err != nil {
		return err
	}
	switch request.Operation {
	case control.Start:
		s.want(component)
	case control.Stop:
		s.stop(component)
	case control.Restart:
		s.stop(component)
		s.want(component)
	case control.Kill:
		return s.signal(component, syscall.SIGKILL)
	default:
		return fmt.Errorf("unknown operation %q", request.Operation)
	}
	return nil
}

func (s *supervisor) find(request control.Request) (*component, error) {
	s.lock.Lock()
	defer s.lock.Unlock()
	found, known := s.components[request.Name]
	if request.Component != nil {
		if !known {
			found = &component{}
			s.components[request.Name] = found
		}
		found.spec = *request.Component
		return found, nil
	}
	if !known {
		return nil, fmt.Errorf("there is no component %q here", request.Name)
	}
	return found, nil
}

func (s *supervisor) want(component *component) {
	s.lock.Lock()
	defer s.lock.Unlock()
	component.wanted = true
	s.start(component)
}

// stop ends a component and returns after its process has ended.
func (s *supervisor) stop(component *component) {
	s.lock.Lock()
	component.wanted = false
	process, ended := component.process, component.ended
	s.lock.Unlock()
	if process == 0 {
		return
	}
	// An error means that the process has just ended.
	_ = s.signal(component, syscall.SIGTERM)
	select {
	case <-ended:
	case <-time.After(grace):
		_ = s.signal(component, syscall.SIGKILL)
		<-ended
	}
}

// signal sends a signal to a component. It holds the lock, because the process could otherwise be reaped and its ID be
// given to another process.
func (s *supervisor) signal(component *component, number syscall.Signal) error {
	s.lock.Lock()
	defer s.lock.Unlock()
	if component.process == 0 {
		return nil
	}
	if err := syscall.Kill(component.process, number); err != nil {
		return fmt.Errorf("sending %s to %s: %w", number, component.spec.Name, err)
	}
	return nil
}

func (s *supervisor) states() []control.State {
	s.lock.Lock()
	defer s.lock.Unlock()
	states := make([]control.State, 0, len(s.components))
	for name, component := range s.components {
		states = append(states, control.State{
			Name: name, Running: component.process != 0, PID: component.process,
			Starts: component.starts, LastExit: component.lastExit, Log: component.spec.Log,
		})
	}
	slices.SortFunc(states, func(a, b control.State) int { return strings.Compare(a.Name, b.Name) })
	return states
}

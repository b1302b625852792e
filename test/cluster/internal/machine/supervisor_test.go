package machine

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/albertofaria/pav/test/cluster/internal/control"
	"github.com/albertofaria/pav/test/cluster/internal/process"
)

// await waits until the component "sleeper" has the wanted state, and returns that state.
func await(t *testing.T, s *supervisor, wanted func(control.State) bool) control.State {
	t.Helper()
	var state control.State
	err := process.Until(t.Context(), 5*time.Millisecond, func() (bool, error) {
		index := slices.IndexFunc(s.states(), func(state control.State) bool { return state.Name == "sleeper" })
		if index >= 0 {
			state = s.states()[index]
		}
		return index >= 0 && wanted(state), nil
	})
	if err != nil {
		t.Fatalf("waiting for the component: %v; it is %+v", err, state)
	}
	return state
}

func request(t *testing.T, s *supervisor, operation control.Operation, component *control.Component) {
	t.Helper()
	if answer := s.handle(control.Request{Operation: operation, Name: "sleeper", Component: component}); answer.Error != "" {
		t.Fatalf("%s: %s", operation, answer.Error)
	}
}

// TestSupervisor is a single test, because one supervisor reaps all children of the test's process.
func TestSupervisor(t *testing.T) {
	s := newSupervisor()
	go s.reap()
	if answer := s.handle(control.Request{Operation: control.Stop, Name: "sleeper"}); answer.Error == "" {
		t.Error("an unknown component is stopped without an error")
	}
	sleeper := &control.Component{
		Name: "sleeper", Command: []string{"/bin/sleep", "1000"}, Log: filepath.Join(t.TempDir(), "log"),
	}
	request(t, s, control.Start, sleeper)
	first := await(t, s, func(state control.State) bool { return state.Running })

	request(t, s, control.Start, nil)
	if again := await(t, s, func(state control.State) bool { return state.Running }); again.PID != first.PID {
		t.Errorf("a running component was started again: %+v", again)
	}

	request(t, s, control.Kill, nil)
	second := await(t, s, func(state control.State) bool { return state.Running && state.PID != first.PID })
	if second.Starts != 2 || second.LastExit != "signal 9 (killed)" {
		t.Errorf("after a crash, it is %+v", second)
	}

	request(t, s, control.Stop, nil)
	if stopped := await(t, s, func(control.State) bool { return true }); stopped.Running {
		t.Errorf("after a stop, it is %+v", stopped)
	}
	request(t, s, control.Kill, nil)
	request(t, s, control.Restart, nil)
	if third := await(t, s, func(state control.State) bool { return state.Running }); third.Starts != 3 {
		t.Errorf("after a restart, it is %+v", third)
	}
	request(t, s, control.Stop, nil)
}

func TestHidden(t *testing.T) {
	for path, want := range map[string]bool{
		"/tmp/state": true, "/var/lib/state": true, "/run/state": true, "/home/user/.cache/state": false,
		"/tmpfiles/state": false, "/var/cache/state": false,
	} {
		if got := hidden(path); got != want {
			t.Errorf("%q: got %v, want %v", path, got, want)
		}
	}
}

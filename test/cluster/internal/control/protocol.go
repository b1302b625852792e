package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"time"
)

// Socket is the socket's path within a node. The directory is new at each start of a node, so no
// socket of an earlier start can be taken for the current one.
const Socket = "/run/pav-cluster.sock"

// answerTime bounds how long an operation may take, which includes that a component ends.
const answerTime = 30 * time.Second

// Operation is what is asked of the node's first process.
type Operation string

// The operations. Each is idempotent.
const (
	// Start starts a component. The first time, the request says how.
	Start Operation = "start"
	// Stop ends a component with SIGTERM, after a while with SIGKILL, and leaves it stopped.
	Stop Operation = "stop"
	// Kill ends a component with SIGKILL. Like after any other crash, it is started again.
	Kill Operation = "kill"
	// Restart is Stop and Start.
	Restart Operation = "restart"
	// Status changes nothing.
	Status Operation = "status"
)

// Component says how a component is started.
type Component struct {
	Name        string   `json:"name"`
	Command     []string `json:"command"`
	Environment []string `json:"environment"`
	Log         string   `json:"log"`
}

// Request is what is sent.
type Request struct {
	Operation Operation `json:"operation"`
	// Name is the component's.
	Name string `json:"name,omitempty"`
	// Component comes with the first start of a component, and may come with later ones.
	Component *Component `json:"component,omitempty"`
}

// State is a component's state.
type State struct {
	Name    string `json:"name"`
	Running bool   `json:"running"`
	// PID is the process as the node sees it.
	PID int `json:"pid,omitempty"`
	// Starts counts how often the component was started since the node's start.
	Starts int `json:"starts"`
	// LastExit says how it ended the last time.
	LastExit string `json:"lastExit,omitempty"`
	Log      string `json:"log"`
}

// Answer is what comes back, with the state of all components.
type Answer struct {
	Error      string  `json:"error,omitempty"`
	Components []State `json:"components"`
}

// Call asks the first process of a node, by its number as the caller sees it.
func Call(ctx context.Context, pid int, request Request) ([]State, error) {
	// The way through /proc is short enough for a socket's address, however long the path of the
	// state directory is, and it leads to exactly this process's node.
	return CallSocket(ctx, fmt.Sprintf("/proc/%d/root%s", pid, Socket), request)
}

// CallSocket asks anyone who listens on a socket: on a node, Socket is that of the node itself.
func CallSocket(ctx context.Context, socket string, request Request) ([]State, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	connection, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, fmt.Errorf("connecting to the node: %w", err)
	}
	defer func() { _ = connection.Close() }()
	if deadline, ok := ctx.Deadline(); ok {
		_ = connection.SetDeadline(deadline)
	}
	if err := json.NewEncoder(connection).Encode(request); err != nil {
		return nil, fmt.Errorf("asking the node: %w", err)
	}
	var answer Answer
	if err := json.NewDecoder(connection).Decode(&answer); err != nil {
		return nil, fmt.Errorf("reading the node's answer: %w", err)
	}
	if answer.Error != "" {
		return answer.Components, errors.New(answer.Error)
	}
	return answer.Components, nil
}

// Serve answers requests until the listener is closed.
func Serve(listener net.Listener, handle func(Request) Answer) error {
	for {
		connection, err := listener.Accept()
		if err != nil {
			return fmt.Errorf("accepting a connection: %w", err)
		}
		go func() {
			defer func() { _ = connection.Close() }()
			_ = connection.SetDeadline(time.Now().Add(answerTime))
			var request Request
			if err := json.NewDecoder(connection).Decode(&request); err != nil {
				return // the caller is gone or no caller of ours
			}
			_ = json.NewEncoder(connection).Encode(handle(request))
		}()
	}
}

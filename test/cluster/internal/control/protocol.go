package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"time"
)

// Socket is the socket's path on a node. Its directory is new at each start of a node, so the socket of an earlier
// start cannot be confused with the current one.
const Socket = "/run/pav-cluster.sock"

// answerTime is the timeout of an operation, including the time for a component to end.
const answerTime = 30 * time.Second

// Operation is an operation of the node's first process.
type Operation string

// The operations. Each is idempotent.
const (
	// Start starts a component. The first request for a component must say how it is started.
	Start Operation = "start"
	// Stop ends a component with SIGTERM and, if that takes too long, with SIGKILL. The component stays stopped.
	Stop Operation = "stop"
	// Kill ends a component with SIGKILL. The component is started again, as after any other crash.
	Kill Operation = "kill"
	// Restart stops a component and then starts it.
	Restart Operation = "restart"
	// Status changes nothing. Every answer has the state of all components.
	Status Operation = "status"
)

// Component describes how a component is started.
type Component struct {
	Name        string   `json:"name"`
	Command     []string `json:"command"`
	Environment []string `json:"environment"`
	Log         string   `json:"log"`
}

// Request is the message to the node's first process.
type Request struct {
	Operation Operation `json:"operation"`
	// Name is the component's name.
	Name string `json:"name,omitempty"`
	// Component must be set in the first request for a component. In later requests it is optional.
	Component *Component `json:"component,omitempty"`
}

// State is a component's state.
type State struct {
	Name    string `json:"name"`
	Running bool   `json:"running"`
	// PID is the process ID on the node.
	PID int `json:"pid,omitempty"`
	// Starts is the number of starts of the component since the node's start.
	Starts int `json:"starts"`
	// LastExit describes how the component ended the last time.
	LastExit string `json:"lastExit,omitempty"`
	Log      string `json:"log"`
}

// Answer is the reply of the node's first process. It has the state of all components.
type Answer struct {
	Error      string  `json:"error,omitempty"`
	Components []State `json:"components"`
}

// Call sends a request to the first process of a node. pid is the ID of that process in the caller's PID namespace.
func Call(ctx context.Context, pid int, request Request) ([]State, error) {
	// A path through /proc is short enough for a socket's address, even if the path of the state directory is long. It
	// also leads to exactly the node of this process.
	return CallSocket(ctx, fmt.Sprintf("/proc/%d/root%s", pid, Socket), request)
}

// CallSocket sends a request to the given socket. On a node, Socket belongs to the node's own first process.
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
				return // the caller is gone, or is not this program
			}
			_ = json.NewEncoder(connection).Encode(handle(request))
		}()
	}
}

package node

import (
	"context"
	"fmt"
	"slices"

	"github.com/albertofaria/pav/internal/mount"
)

// Gate holds the functions that each call of an agent runs around its effects. They run without the node's lock, so
// they may block for any time. The operation names the method and its subject, for example "Attach stage-a". If a field
// is nil, all calls continue at that point.
type Gate struct {
	// Before runs before the effect. If it returns an error, the call returns that error and has no effect.
	Before func(ctx context.Context, operation string) error

	// Between runs between two effects of a call, at each point at which the end of the agent could leave the work half
	// done. If it returns an error, the call returns that error and has no further effect.
	Between func(ctx context.Context, operation string) error

	// After runs after the effect, even if the effect failed. If it returns an error, the call returns that error
	// instead of its result.
	After func(ctx context.Context, operation string) error
}

// Agent is a node agent's access to its node. It also holds the state that is lost when the agent ends: the /pav
// directories that it watches, and the paths at which it is mounting something.
type Agent struct {
	node     *Node
	gate     Gate
	wake     func(stage string)
	ended    bool
	watched  map[string]*directory // by stage
	awaited  map[string]await      // by ID of a pod's inline volume
	mounting map[string]bool       // by path
}

// await is what an agent does when a pod creates /pav/ready.
type await struct {
	pav   *directory
	woken func()
}

// Open returns the access of a new agent to the node. The access ends with Close or with a reboot. When a pod creates
// /pav/ready of a stage that the agent watches, the method of Node that creates the file calls wake with the stage's
// name.
func (n *Node) Open(gate Gate, wake func(stage string)) *Agent {
	n.mu.Lock()
	defer n.mu.Unlock()
	a := &Agent{node: n, gate: gate, wake: wake, watched: map[string]*directory{}, awaited: map[string]await{}, mounting: map[string]bool{}}
	n.agents = append(n.agents, a)
	return a
}

// Close ends the agent. After that, none of its calls has an effect, not even a call that is still running.
func (a *Agent) Close() {
	a.node.mu.Lock()
	defer a.node.mu.Unlock()
	a.ended = true
	a.node.agents = slices.DeleteFunc(a.node.agents, func(other *Agent) bool { return other == a })
	a.node.wakeProbes()
}

// Directories returns the agent's access to the /pav directories of the node, their mounts in pods, and the records.
func (a *Agent) Directories() *Directories { return &Directories{a} }

// Mounts returns the agent's access to the mounts of clients.
func (a *Agent) Mounts() *Mounts { return &Mounts{a} }

// do runs the steps of a call. It holds the node's lock during each step, so that each step is atomic.
func (a *Agent) do(ctx context.Context, operation string, steps ...func() error) error {
	if err := pass(ctx, a.gate.Before, operation); err != nil {
		return err
	}
	err := a.take(ctx, steps[0])
	for _, step := range steps[1:] {
		if err != nil {
			break
		}
		if err := pass(ctx, a.gate.Between, operation); err != nil {
			return err
		}
		err = a.take(ctx, step)
	}
	if lost := pass(ctx, a.gate.After, operation); lost != nil {
		return lost
	}
	return err
}

func pass(ctx context.Context, gate func(context.Context, string) error, operation string) error {
	if gate == nil {
		return nil
	}
	return gate(ctx, operation)
}

func (a *Agent) take(ctx context.Context, step func() error) error {
	a.node.mu.Lock()
	defer a.node.mu.Unlock()
	if a.ended {
		return errEnded
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("entering mount namespace: %w", err)
	}
	return step()
}

// doMount is do for a call that mounts something at a path. It returns mount.ErrHangs if another such call of the agent
// for that path is still running.
func (a *Agent) doMount(ctx context.Context, path, operation string, steps ...func() error) error {
	a.node.mu.Lock()
	hangs := a.mounting[path]
	a.mounting[path] = true
	a.node.mu.Unlock()
	if hangs {
		return fmt.Errorf("mounting at %q: %w", path, mount.ErrHangs)
	}
	defer func() {
		a.node.mu.Lock()
		defer a.node.mu.Unlock()
		delete(a.mounting, path)
	}()
	return a.do(ctx, operation, steps...)
}

// ask is do for a call that returns an answer and has no effect on the node.
func ask[T any](ctx context.Context, a *Agent, operation string, f func() (T, error)) (T, error) {
	var answer, none T
	err := a.do(ctx, operation, func() (err error) {
		answer, err = f()
		return err
	})
	if err != nil {
		return none, err
	}
	return answer, nil
}

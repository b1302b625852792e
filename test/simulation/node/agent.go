package node

import (
	"context"
	"fmt"
	"slices"

	"github.com/albertofaria/pav/internal/mount"
)

// Gate is asked by each call of an agent, with no lock held: it may wait as long as it likes. The operation is the
// name of the method and what it is about, as "Attach stage-a". A field that is nil lets all calls pass.
type Gate struct {
	// Before is asked before the effect. Its error is the call's, which then has none.
	Before func(ctx context.Context, operation string) error

	// Between is asked between two effects of a call, as many times as an agent that ends could leave the work half
	// done. Its error is the call's, which then has no further effect.
	Between func(ctx context.Context, operation string) error

	// After is asked after the effect, and after an answer that there is none. Its error is the call's, in place of
	// that answer.
	After func(ctx context.Context, operation string) error
}

// Agent is what a node agent has of its node. What it has of its own goes with it: what it watches, and which
// mounts it is at work for.
type Agent struct {
	node     *Node
	gate     Gate
	wake     func(stage string)
	ended    bool
	watched  map[string]*directory // by stage
	mounting map[string]bool       // by path
}

// Open returns what an agent has of the node, until Close or a reboot. Wake is called with a stage's name when its
// /pav/ready appears, by anyone who has the pod write it.
func (n *Node) Open(gate Gate, wake func(stage string)) *Agent {
	n.mu.Lock()
	defer n.mu.Unlock()
	a := &Agent{node: n, gate: gate, wake: wake, watched: map[string]*directory{}, mounting: map[string]bool{}}
	n.agents = append(n.agents, a)
	return a
}

// Close ends the agent: none of its calls, also of those that are going on, has an effect any more.
func (a *Agent) Close() {
	a.node.mu.Lock()
	defer a.node.mu.Unlock()
	a.ended = true
	a.node.agents = slices.DeleteFunc(a.node.agents, func(other *Agent) bool { return other == a })
	a.node.wakeProbes()
}

// Directories returns the directories, mounts of pods and records of the node.
func (a *Agent) Directories() *Directories { return &Directories{a} }

// Mounts returns the mounts of clients.
func (a *Agent) Mounts() *Mounts { return &Mounts{a} }

// do takes the steps of a call, each at one moment, with the node's lock held.
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

// doMount is do for what mounts something at a path: one at a time does.
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

// ask is do for a call that has an answer, and no effect.
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

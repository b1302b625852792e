package agents

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/node"
	"github.com/albertofaria/pav/internal/node/collect"
	pavcsi "github.com/albertofaria/pav/internal/node/csi"
	"github.com/albertofaria/pav/internal/node/flush"
	"github.com/albertofaria/pav/internal/node/monitor"
	"github.com/albertofaria/pav/internal/node/stage"
	"github.com/albertofaria/pav/internal/reconcile"
	simnode "github.com/albertofaria/pav/test/simulation/node"
	"github.com/albertofaria/pav/test/simulation/world"
)

// Node is one process of the node agent.
type Node struct {
	// Name is the name of the process, and On the name of its node.
	Name, On string

	World  *world.World
	Faults *Faults
	Events *Events

	// Machine is the simulated node, with its directories and mounts.
	Machine *simnode.Node

	// Dies stops the agent and starts another one.
	Dies func()

	// Clock returns the time of the agent's machine; nil for the correct time.
	Clock func() time.Time

	// Linked reports whether the node can reach the API server.
	Linked func() bool

	// Flushes says that the agent answers requests to write volumes back, which only worlds with copies have.
	Flushes bool

	view    *world.View
	pods    *world.View // the pods of the controller agent
	volumes *world.View // the volumes that were provisioned for pods of the node
	clients *world.View // the pods of the node that have not started
	agent   *simnode.Agent
	drivers map[string]csi.NodeServer
	serve   func(driver string) csi.NodeServer
	life    context.Context //nolint:containedctx // the context of the process, not of a call
	end     context.CancelFunc
}

// Start starts the agent.
func (n *Node) Start(ctx context.Context, shared *Shared) error {
	ctx, n.end = context.WithCancel(ctx)
	log := newLog(n.World)
	n.life = logr.NewContext(ctx, log)
	caching, err := node.CacheOptions(n.On)
	if err != nil {
		return err
	}
	n.view = world.NewView(n.World, n.Name, caching)
	cluster := newClock(n.Clock)
	client := &world.Client{World: n.World, By: n.Name, Life: ctx, Hears: cluster.Heard}
	mgr := world.NewManager(n.view, client, log)
	notifier := stage.NewNotifier()
	n.agent = n.Machine.Open(simnode.Gate{Before: n.pause, Between: n.pause}, notifier.Wake)
	reader := reconcile.RetryingWatcher{WithWatch: client}
	stager := stage.New(stage.Config{
		Client: reader, Catalogue: stage.NewIndex(mgr.Client, reader), Dirs: n.agent.Directories(), Mounts: n.agent.Mounts(), Notifier: notifier,
		Events: n.Events.Recorder(), Templates: shared.Templates, Node: n.On, Boot: n.Machine.Boot(), Version: "simulation",
		ClusterTime: cluster.Now, Together: stage.InTurn,
	})
	watcher := monitor.New(stager, monitor.Config{
		Prober: n.agent.Mounts(), OrphanGrace: node.DefaultOptions().OrphanGrace, Metrics: prometheus.NewRegistry(), Log: log,
	})
	collector := collect.New(reader, n.agent.Directories(), n.Machine.Boot(), log)
	results, err := collect.CacheOptions(n.On)
	if err != nil {
		return err
	}
	n.pods = world.NewView(n.World, n.Name, results)
	if err := collect.WatchPods(mgr, n.pods, collector); err != nil {
		return err
	}
	n.drivers = map[string]csi.NodeServer{pavv1.Driver: pavcsi.ForPav(n.On, n.Machine.Boot(), "simulation", reader, n.agent.Directories(), collector, notifier).Node}
	n.serve = func(driver string) csi.NodeServer {
		return pavcsi.ForProvisioner(driver, n.On, "simulation", stager, pavcsi.Topology{Nodes: reader}).Node
	}
	if err := mgr.Add(watcher); err != nil {
		return err
	}
	if err := monitor.WatchPods(ctx, mgr, notifier, watcher); err != nil {
		return err
	}
	if err := monitor.WatchStages(ctx, mgr, notifier, watcher); err != nil {
		return err
	}
	if err := n.watchFlushes(mgr, stager); err != nil {
		return err
	}
	if err := n.stageAhead(ctx, watcher); err != nil {
		return err
	}
	if err := mgr.Start(ctx); err != nil {
		return err
	}
	n.World.Settle()
	return nil
}

// stageAhead adds the watches of what is to be staged before kubelet calls.
func (n *Node) stageAhead(ctx context.Context, watcher *monitor.Monitor) error {
	volumes, err := monitor.CacheOptions(n.On)
	if err != nil {
		return err
	}
	n.volumes = world.NewView(n.World, n.Name, volumes)
	if err := monitor.WatchVolumes(ctx, n.volumes, watcher); err != nil {
		return err
	}
	n.clients = world.NewView(n.World, n.Name, monitor.ArrivalOptions(n.On))
	return monitor.WatchArrivals(ctx, n.clients, watcher)
}

func (n *Node) watchFlushes(mgr *world.Manager, stager *stage.Stager) error {
	if !n.Flushes {
		return nil
	}
	return flush.Watch(mgr, flush.New(stager, n.agent.Directories()))
}

// Driver returns the Node service of a driver, and a context that ends with the agent. Calls of the service use that
// context.
func (n *Node) Driver(name string) (csi.NodeServer, context.Context) {
	if n.drivers[name] == nil {
		n.drivers[name] = n.serve(name)
	}
	return n.drivers[name], n.life
}

// effects are the prefixes of operations that change the node. The agent may be killed before each of them. All other
// operations only read.
var effects = []string{
	"Prepare", "Remove", "Renew", "Reset", "Attach ", "Detach", "Record ", "RecordPublication", "ForgetPublication", "Bind", "Unmount",
	"Publish", "Unpublish", "RemovePod", "Fence",
}

// pause blocks an operation that changes the node until the world lets it proceed.
func (n *Node) pause(ctx context.Context, operation string) error {
	if !slices.ContainsFunc(effects, func(effect string) bool { return strings.HasPrefix(operation, effect) }) {
		return nil
	}
	return n.World.Ask(ctx, world.NewCall(n.Name, fmt.Sprintf("%s does %s", n.Name, operation), func() error { return n.life.Err() }))
}

// Choices implements world.Actor.
func (n *Node) Choices(add func(world.Choice)) {
	if n.Linked() {
		n.view.Choices(add)
		n.pods.Choices(add)
		n.volumes.Choices(add)
		n.clients.Choices(add)
	}
	for _, call := range n.World.Calls() {
		if call.By == n.Name {
			add(world.Choice{What: call.What, Weight: 6, Do: func() { n.goOn(call) }})
		}
	}
}

func (n *Node) goOn(call *world.Call) {
	local := strings.HasPrefix(call.What, n.Name+" does ")
	switch {
	case local && n.Faults.kill(n.World, call, operationOf):
		n.World.Counts["agents killed before: "+operationOf(call)]++
		n.Dies()
	case local:
		_ = n.World.Go(call) // an error only says that the agent has ended
	case !n.Linked():
		n.World.Counts["requests without a link"]++
		n.World.Answer(call, errAway)
	default:
		goOn(n.World, n.Faults, call, n.Dies)
	}
}

// operationOf returns the name of an operation on a node, without its object.
func operationOf(call *world.Call) string {
	operation, _, _ := strings.Cut(strings.TrimPrefix(call.What, call.By+" does "), " ")
	return operation
}

// Kill stops the agent at once.
func (n *Node) Kill() {
	n.World.Notef("%s ends", n.Name)
	n.agent.Close()
	n.end()
	n.World.Remove(n)
	n.World.Settle()
}

// Relist makes the agent lose a watch and list the objects again.
func (n *Node) Relist() {
	switch n.World.Rand.IntN(6) {
	case 0:
		n.pods.Relist(0)
	case 1:
		n.volumes.Relist(0)
	case 2:
		n.clients.Relist(0)
	default:
		n.view.Relist(n.World.Rand.IntN(100))
	}
}

// Package agents runs PaV's agents in the simulated world. The agents' code is the real one; everything around it is
// simulated, such as caches, clients and nodes.
package agents

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	crcontroller "sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/albertofaria/pav/internal/admission"
	"github.com/albertofaria/pav/internal/clock"
	"github.com/albertofaria/pav/internal/controller"
	"github.com/albertofaria/pav/internal/controller/queue"
	"github.com/albertofaria/pav/internal/definition"
	"github.com/albertofaria/pav/internal/reconcile"
	"github.com/albertofaria/pav/internal/template"
	"github.com/albertofaria/pav/test/simulation/world"
)

// Controller is one process of the controller agent. It acts as the leader.
type Controller struct {
	Name   string
	World  *world.World
	Faults *Faults
	Events *Events

	// Clock returns the time of the agent's machine; nil for the correct time.
	Clock func() time.Time

	// Stalled suspends the agent: it receives no events, and none of its requests proceeds.
	Stalled bool

	// Dies stops the agent and starts another one.
	Dies func()

	view        *world.View
	mu          sync.Mutex
	queues      []*world.Queue // sorted by name
	reconcilers *controller.Reconcilers
	end         context.CancelFunc
}

// Shared has the parts that the processes of agents share. Sharing only makes runs faster.
type Shared struct {
	Templates   *template.Evaluator
	Definitions *definition.Checker
}

// NewShared returns the parts that processes share.
func NewShared() *Shared {
	limits := template.DefaultLimits()
	return &Shared{Templates: template.NewEvaluator(limits), Definitions: definition.NewChecker(limits)}
}

// Start starts the agent. It leads at once.
func (c *Controller) Start(ctx context.Context, shared *Shared, pods queue.Limits, workers int) error {
	ctx, end := context.WithCancel(ctx)
	c.end = end
	o := controller.DefaultOptions()
	o.WebhookAddress, o.Namespace = "0", "pav"
	caching, err := controller.CacheOptions(o)
	if err != nil {
		return err
	}
	c.view = world.NewView(c.World, c.Name, caching)
	cluster := newClock(c.Clock)
	live := &world.Client{World: c.World, By: c.Name, Life: ctx, Hears: cluster.Heard}
	mgr := world.NewManager(c.view, live, newLog(c.World))
	if err := reconcile.RegisterIndexes(ctx, c.view); err != nil {
		return err
	}
	c.reconcilers = controller.NewReconcilers(controller.Parts{
		Client: mgr.Client, Live: live, Direct: live, Events: c.Events.Recorder(), Templates: shared.Templates, Definitions: shared.Definitions,
		Pods: pods, Version: "simulation", Now: cluster.Now,
	})
	options := func() crcontroller.Options {
		return crcontroller.Options{MaxConcurrentReconciles: workers, RateLimiter: reconcile.Backoff(), NewQueue: c.newQueue}
	}
	recorder := &admission.Recorder{Cache: mgr.Client, Pods: &admission.PodHandler{Client: live, Templates: shared.Templates}}
	if err := errors.Join(c.reconcilers.Register(mgr, options), recorder.Register(mgr, options())); err != nil {
		return err
	}
	if err := mgr.Start(ctx); err != nil {
		return err
	}
	c.World.Settle()
	return nil
}

// newClock returns the clock of an agent. The answers of the API server that filled the agent's caches have already
// corrected it.
func newClock(local func() time.Time) *clock.Clock {
	if local == nil {
		local = time.Now
	}
	c := clock.New(local)
	c.Heard(time.Now().Truncate(time.Second), 0)
	return c
}

func (c *Controller) newQueue(name string, limiter workqueue.TypedRateLimiter[ctrl.Request]) workqueue.TypedRateLimitingInterface[ctrl.Request] {
	q := world.NewQueue(c.World, c.Name+" "+name, limiter)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queues = append(c.queues, q)
	slices.SortFunc(c.queues, func(a, b *world.Queue) int { return strings.Compare(a.Name, b.Name) })
	return q
}

// Choices implements world.Actor.
func (c *Controller) Choices(add func(world.Choice)) {
	if c.Stalled {
		return
	}
	c.view.Choices(add)
	for _, q := range c.queues {
		q.Choices(add)
	}
	for _, call := range c.World.Calls() {
		if call.By == c.Name {
			add(world.Choice{What: call.What, Weight: 6, Do: func() { goOn(c.World, c.Faults, call, c.Dies) }})
		}
	}
}

// goOn lets a request of an agent proceed, or injects a fault: it kills the agent, refuses the request, or loses the
// answer.
func goOn(w *world.World, faults *Faults, call *world.Call, dies func()) {
	switch {
	case call.Writes && faults.kill(w, call, kindOf):
		if err := w.Apply(call); err == nil {
			w.Counts["agents killed after: "+kindOf(call)]++
		}
		w.Drop(call)
		dies()
	case w.Chance(faults.Refused):
		w.Notef("refused")
		w.Counts["requests refused"]++
		w.Answer(call, refusal(w))
	case w.Chance(faults.Cut):
		w.Notef("cut")
		w.Counts["answers cut"]++
		if err := w.Apply(call); err == nil && !call.Writes {
			w.Answer(call, nil)
			return
		}
		w.Answer(call, errCut)
	default:
		err := w.Apply(call)
		if err != nil {
			w.Notef("%s", reasonOf(err))
		}
		w.Answer(call, err) // last, as the agent writes to the history, too, as soon as it has its answer
	}
}

// kindOf returns the verb and the kind of a request, without the name of the object.
func kindOf(call *world.Call) string {
	words := strings.Fields(strings.TrimPrefix(call.What, call.By+" "))
	return strings.Join(words[:max(len(words)-1, 1)], " ")
}

var errAway = &url.Error{Op: "Get", URL: "https://api", Err: errors.New("dial tcp: connect: no route to host")}

var errCut = errors.New("http2: client connection lost")

func refusal(w *world.World) error {
	switch w.Rand.IntN(4) {
	case 0:
		return apierrors.NewInternalError(errors.New("etcdserver: leader changed"))
	case 1:
		return apierrors.NewTooManyRequests("the server is busy", 1)
	case 2:
		return apierrors.NewServerTimeout(schema.GroupResource{Resource: "things"}, "get", 1)
	}
	return errAway
}

func reasonOf(err error) string {
	if reason := apierrors.ReasonForError(err); reason != "" {
		return string(reason)
	}
	return "error"
}

// Kill stops the agent at once. Each of its pending writes may still take effect.
func (c *Controller) Kill() {
	for _, call := range c.World.Calls() {
		if call.By == c.Name && call.Writes && call.Waits() && c.World.Rand.IntN(2) == 0 {
			c.World.Notef("in its last moment: %s", call.What)
			c.World.Counts["last writes of agents"]++
			_ = c.World.Apply(call)
		}
	}
	c.end()
	c.World.Remove(c)
	c.World.Settle()
}

// Relist makes the agent lose a watch and list the objects again.
func (c *Controller) Relist() {
	c.World.Notef("%s lists %s again", c.Name, c.view.Relist(c.World.Rand.IntN(100)))
}

// Hold delays all events of one kind, chosen at random, for a time. The agent's cache is stale meanwhile.
func (c *Controller) Hold(wait time.Duration) {
	c.World.Notef("%s hears nothing of %s for %s", c.Name, c.view.Hold(c.World.Rand.IntN(100), wait), wait)
}

// Passes returns the number of requests that the agent's workers have received.
func (c *Controller) Passes() int {
	passes := 0
	for _, q := range c.queues {
		passes += q.Handed
	}
	return passes
}

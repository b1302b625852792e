package world

import (
	"cmp"
	"context"
	"fmt"
	"hash"
	"hash/fnv"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Choice is a possible next step.
type Choice struct {
	// What describes the step in the history.
	What string

	// Weight is the probability of the choice relative to other choices. Weights below 1 count as 1.
	Weight int

	// Do performs the step.
	Do func()
}

// Actor is a part of the simulation that offers choices, such as an agent or a component of Kubernetes.
type Actor interface {
	// Choices adds all current choices of the actor. The order must be deterministic, because the world selects a choice
	// by a random number.
	Choices(add func(Choice))
}

// OfStore wraps an actor whose choices depend only on the store. It caches the choices and calls the actor again only
// after the store has changed.
type OfStore struct {
	Store *Store
	Actor Actor

	asked bool
	at    int // Store.Writes at the time of the last call
	found []Choice
}

// Choices implements Actor.
func (o *OfStore) Choices(add func(Choice)) {
	if !o.asked || o.at != o.Store.Writes {
		o.asked, o.at, o.found = true, o.Store.Writes, o.found[:0]
		o.Actor.Choices(func(c Choice) { o.found = append(o.found, c) })
	}
	for _, c := range o.found {
		add(c)
	}
}

// World is one run of a simulation. Only the goroutine that calls Run may use it. The exceptions are the methods After
// and Ask, which the goroutines of agents call.
type World struct {
	Store *Store
	Rand  *rand.Rand

	// Steps counts the steps.
	Steps int

	// Trace, if not nil, is called with each line of the history.
	Trace func(line string)

	// Check, if not nil, is called after each step. An error ends the run.
	Check func() error

	// Counts has the number of occurrences of each kind of incident, such as disturbances. The keys describe the kinds.
	Counts map[string]int

	// Heard, if not nil, is called after each performed call whose result is no error or a NotFound error.
	Heard func(*Call)

	actors []Actor
	acting *Call
	found  []Choice // choices of the last step; the next step reuses the memory
	timers []timer
	hash   hash.Hash64

	mu     sync.Mutex
	calls  []*Call
	latest []*Call // calls since the last Settle, unordered
}

type timer struct {
	due time.Time
	do  func()
}

// moment is the longest time that passes in one step if other choices exist.
const moment = 300 * time.Millisecond

// New returns a world. The seed determines its random numbers.
func New(seed uint64, store *Store) *World {
	return &World{Counts: map[string]int{}, Store: store, Rand: rand.New(rand.NewPCG(seed, seed)), hash: fnv.New64a()}
}

// Add adds an actor.
func (w *World) Add(a Actor) { w.actors = append(w.actors, a) }

// Remove removes an actor.
func (w *World) Remove(a Actor) {
	w.actors = slices.DeleteFunc(w.actors, func(other Actor) bool { return other == a })
}

// After makes the world call a function after a time, at the start of a step. The goroutines of agents may call After.
func (w *World) After(wait time.Duration, do func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timers = append(w.timers, timer{due: time.Now().Add(wait), do: do})
}

// Chance returns true with a probability of perMille in a thousand.
func (w *World) Chance(perMille int) bool { return perMille > 0 && w.Rand.IntN(1000) < perMille }

// Notef adds a line to the history.
func (w *World) Notef(format string, arguments ...any) {
	line := fmt.Sprintf(format, arguments...)
	_, _ = w.hash.Write([]byte(line))
	if w.Trace != nil {
		w.Trace(fmt.Sprintf("%6d %s %s", w.Steps, time.Now().UTC().Format("15:04:05.000"), line))
	}
}

// Hash returns the hash of the history so far. Runs with the same seed have the same hash.
func (w *World) Hash() uint64 { return w.hash.Sum64() }

// Run takes the given number of steps. It ends earlier if done is not nil and returns true, or with an error if a check
// fails.
func (w *World) Run(steps int, done func() bool) error {
	for range steps {
		w.Settle()
		if done != nil && done() {
			return nil
		}
		if err := w.step(); err != nil {
			return err
		}
	}
	return nil
}

// Settle lets all goroutines run until each of them blocks. It then sorts their new calls, appends them to the parked
// calls, and removes the calls that no longer wait for an answer.
func (w *World) Settle() {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	slices.SortStableFunc(w.latest, func(a, b *Call) int {
		return cmp.Or(strings.Compare(a.What, b.What), cmp.Compare(a.begun, b.begun), strings.Compare(a.Pass, b.Pass), slices.Compare(a.from, b.from))
	})
	w.calls = append(w.calls, w.latest...)
	w.latest = nil
	w.calls = slices.DeleteFunc(w.calls, func(c *Call) bool { return c.done })
}

func (w *World) step() error {
	w.Steps++
	w.elapse()
	choices, total := w.found[:0], 0
	add := func(c Choice) {
		c.Weight = max(c.Weight, 1)
		total += c.Weight
		choices = append(choices, c)
	}
	for _, actor := range slices.Clone(w.actors) {
		actor.Choices(add)
	}
	if next, ok := w.next(); ok {
		// If other choices exist, at most a moment passes, so that they do not wait for a distant timer. Only disturbances
		// delay choices for minutes.
		if len(choices) > 0 {
			next = min(next, time.Duration(1+w.Rand.IntN(int(moment))))
		}
		add(Choice{What: "time passes", Do: func() { w.Sleep(next) }})
	}
	w.found = choices
	if len(choices) == 0 {
		w.Sleep(time.Second)
		return w.check()
	}
	at := w.Rand.IntN(total)
	for _, c := range choices {
		if at -= c.Weight; at < 0 {
			w.Notef("%s", c.What)
			c.Do()
			break
		}
	}
	return w.check()
}

func (w *World) check() error {
	if w.Check == nil {
		return nil
	}
	return w.Check()
}

// Sleep lets virtual time pass. Run settles the goroutines that it wakes before the next step.
func (w *World) Sleep(wait time.Duration) {
	<-time.After(wait)
}

// next returns the time until the next timer, and whether there is a timer.
func (w *World) next() (time.Duration, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.timers) == 0 {
		return 0, false
	}
	first := slices.MinFunc(w.timers, func(a, b timer) int { return a.due.Compare(b.due) })
	return max(time.Until(first.due), time.Millisecond), true
}

// elapse removes all timers that are due and calls their functions.
func (w *World) elapse() {
	w.mu.Lock()
	now := time.Now()
	var due []timer
	w.timers = slices.DeleteFunc(w.timers, func(t timer) bool {
		if t.due.After(now) {
			return false
		}
		due = append(due, t)
		return true
	})
	w.mu.Unlock()
	slices.SortStableFunc(due, func(a, b timer) int { return a.due.Compare(b.due) })
	for _, t := range due {
		t.do()
	}
}

// Call is a parked operation of an agent, such as a request to the API server. A goroutine of the agent waits for the
// answer.
type Call struct {
	// By is the name of the agent. What describes the operation.
	By, What string

	// Writes is true for write requests to the API server.
	Writes bool

	// Pass is the controller-runtime reconcile ID of the call. It is empty outside reconcilers.
	Pass string

	do    func() error
	begun int       // the step from the context of Begun; 0 for other contexts
	from  []uintptr // who called, if neither Pass nor begun tells equal calls apart
	reply chan error
	done  bool
}

// stepKey is the context key for the value of Begun.
type stepKey struct{}

// Begun returns a context that marks calls as results of the current step. Settle sorts the equal calls of several
// goroutines by this mark. Without it, their order would be random, because one timer can wake the goroutines in any
// order.
func (w *World) Begun(ctx context.Context) context.Context {
	return context.WithValue(ctx, stepKey{}, w.Steps)
}

// NewCall returns a call for an operation other than a request to the API server.
func NewCall(by, what string, do func() error) *Call { return &Call{By: by, What: what, do: do} }

// Ask parks the goroutine of an agent until the world answers its call. If the context ends first, Ask returns the
// context's error; the call may have taken effect nevertheless.
func (w *World) Ask(ctx context.Context, c *Call) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c.reply = make(chan error, 1)
	c.begun, _ = ctx.Value(stepKey{}).(int)
	if c.begun == 0 && c.Pass == "" {
		c.from = make([]uintptr, 16)
		c.from = c.from[:runtime.Callers(2, c.from)]
	}
	w.mu.Lock()
	w.latest = append(w.latest, c)
	w.mu.Unlock()
	select {
	case err := <-c.reply:
		return err
	case <-ctx.Done():
		w.mu.Lock()
		defer w.mu.Unlock()
		c.done = true // no goroutine waits for the answer any more
		return ctx.Err()
	}
}

// Calls returns the calls that were parked at the last Settle.
func (w *World) Calls() []*Call { return w.calls }

// Pass returns the reconcile ID of the call that takes effect now, or an empty string if there is no such call.
func (w *World) Pass() string {
	if w.acting == nil {
		return ""
	}
	return w.acting.Pass
}

// Go makes a call take effect and answers it with the result.
func (w *World) Go(c *Call) error {
	err := w.Apply(c)
	w.Answer(c, err)
	return err
}

// Apply makes a call take effect and returns the result. It does not answer the call.
func (w *World) Apply(c *Call) error {
	w.acting = c
	err := c.do()
	w.acting = nil
	if w.Heard != nil && (err == nil || apierrors.IsNotFound(err)) {
		w.Heard(c)
	}
	return err
}

// Waits reports whether a call still waits for an answer.
func (c *Call) Waits() bool { return !c.done }

// Drop leaves a call without an answer. It is for the calls of an agent that is about to end.
func (w *World) Drop(c *Call) { c.done = true }

// Answer answers a call with an error or nil. The call need not have taken effect.
func (w *World) Answer(c *Call, err error) {
	c.done = true
	c.reply <- err
}

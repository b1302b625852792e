package world

import (
	"cmp"
	"context"
	"fmt"
	"hash"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Choice is something that may happen next.
type Choice struct {
	// What says what happens, for the history.
	What string

	// Weight is how likely it is, compared with others; at least 1.
	Weight int

	// Do has it happen.
	Do func()
}

// Actor is someone who does something now and then.
type Actor interface {
	// Choices adds what the actor could do now, always in the same order.
	Choices(add func(Choice))
}

// OfStore is an actor whose choices follow from the store alone: it is asked again when that has changed.
type OfStore struct {
	Store *Store
	Actor Actor

	asked bool
	at    int // the store's writes
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

// World is one run. But for the methods that say so, it is used by the goroutine that runs it only.
type World struct {
	Store *Store
	Rand  *rand.Rand

	// Steps counts what has happened.
	Steps int

	// Trace hears each line of the history, if it is not nil.
	Trace func(line string)

	// Check is called after every step; an error ends the run.
	Check func() error

	// Counts says how often each kind of disturbance came.
	Counts map[string]int

	// Heard hears of each call that took effect well.
	Heard func(*Call)

	actors []Actor
	acting *Call
	found  []Choice // of the last step: kept for its room
	timers []timer
	hash   hash.Hash64

	mu     sync.Mutex
	calls  []*Call
	latest []*Call // since the last step, in no order
}

type timer struct {
	due time.Time
	do  func()
}

// moment is how long time may pass at once while someone could do something.
const moment = 300 * time.Millisecond

// New returns a world whose chance follows from a seed.
func New(seed uint64, store *Store) *World {
	return &World{Counts: map[string]int{}, Store: store, Rand: rand.New(rand.NewPCG(seed, seed)), hash: fnv.New64a()}
}

// Add adds an actor.
func (w *World) Add(a Actor) { w.actors = append(w.actors, a) }

// Remove removes an actor.
func (w *World) Remove(a Actor) {
	w.actors = slices.DeleteFunc(w.actors, func(other Actor) bool { return other == a })
}

// After has a function called after a time. It may be called by an agent's goroutine.
func (w *World) After(wait time.Duration, do func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timers = append(w.timers, timer{due: time.Now().Add(wait), do: do})
}

// Chance reports true in so many of a thousand cases.
func (w *World) Chance(perMille int) bool { return perMille > 0 && w.Rand.IntN(1000) < perMille }

// Notef adds a line to the history.
func (w *World) Notef(format string, arguments ...any) {
	line := fmt.Sprintf(format, arguments...)
	_, _ = w.hash.Write([]byte(line))
	if w.Trace != nil {
		w.Trace(fmt.Sprintf("%6d %s %s", w.Steps, time.Now().UTC().Format("15:04:05.000"), line))
	}
}

// Hash is that of the history so far: the same for the same seed.
func (w *World) Hash() uint64 { return w.hash.Sum64() }

// Run takes steps until so many have been taken, until done reports true, or until a check fails.
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

// Settle lets all goroutines go on until each of them waits, and puts the calls that they made in an order.
func (w *World) Settle() {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	slices.SortStableFunc(w.latest, func(a, b *Call) int {
		return cmp.Or(strings.Compare(a.What, b.What), cmp.Compare(a.begun, b.begun), strings.Compare(a.Pass, b.Pass))
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
		// What could happen now happens within moments: only a disturbance has anything wait for minutes.
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

// Sleep lets time pass. What it wakes is settled at the beginning of the next step.
func (w *World) Sleep(wait time.Duration) {
	<-time.After(wait)
}

// next returns how long it is until the next timer.
func (w *World) next() (time.Duration, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.timers) == 0 {
		return 0, false
	}
	first := slices.MinFunc(w.timers, func(a, b timer) int { return a.due.Compare(b.due) })
	return max(time.Until(first.due), time.Millisecond), true
}

// elapse calls the functions whose time has come.
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

// Call is something that an agent's goroutine asked for, and waits for.
type Call struct {
	// By is who asked, and What says for what.
	By, What string

	// Writes says that it is to change something.
	Writes bool

	// Pass is the reconciler's pass that it belongs to; empty where it belongs to none.
	Pass string

	do    func() error
	begun int // the step that is told by the context; 0 where that tells none
	reply chan error
	done  bool
}

// stepKey is the key of Begun in a context.
type stepKey struct{}

// Begun returns a context in whose name calls are made that came of the present step. It tells goroutines apart that
// ask for the same: which of them a timer wakes first is left to chance.
func (w *World) Begun(ctx context.Context) context.Context {
	return context.WithValue(ctx, stepKey{}, w.Steps)
}

// NewCall returns a call that is no request to the API server.
func NewCall(by, what string, do func() error) *Call { return &Call{By: by, What: what, do: do} }

// Ask parks the goroutine of an agent until the world lets its call go on. It returns the context's error where
// that ends first; whether the call has an effect nobody knows then.
func (w *World) Ask(ctx context.Context, c *Call) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c.reply = make(chan error, 1)
	c.begun, _ = ctx.Value(stepKey{}).(int)
	w.mu.Lock()
	w.latest = append(w.latest, c)
	w.mu.Unlock()
	select {
	case err := <-c.reply:
		return err
	case <-ctx.Done():
		w.mu.Lock()
		defer w.mu.Unlock()
		c.done = true // nobody waits for it any more
		return ctx.Err()
	}
}

// Calls returns what is parked.
func (w *World) Calls() []*Call { return w.calls }

// Pass returns the pass of the call that takes effect now.
func (w *World) Pass() string {
	if w.acting == nil {
		return ""
	}
	return w.acting.Pass
}

// Go has a call take effect, and answers it.
func (w *World) Go(c *Call) error {
	err := w.Apply(c)
	w.Answer(c, err)
	return err
}

// Apply has a call take effect without an answer.
func (w *World) Apply(c *Call) error {
	w.acting = c
	err := c.do()
	w.acting = nil
	if w.Heard != nil && (err == nil || apierrors.IsNotFound(err)) {
		w.Heard(c)
	}
	return err
}

// Waits reports whether a call has not been answered.
func (c *Call) Waits() bool { return !c.done }

// Drop has a call go unanswered: anyone who asked is about to end.
func (w *World) Drop(c *Call) { c.done = true }

// Answer answers a call, whether it took effect or not.
func (w *World) Answer(c *Call, err error) {
	c.done = true
	c.reply <- err
}

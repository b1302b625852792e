package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/albertofaria/pav/test/bench/sample"
)

// role says what a subject is to the others.
type role int

const (
	// floor is the same work without any provisioner.
	floor role = iota
	// reference is shown for orientation only: nothing is divided by its figures.
	reference
	// peer is another provisioner.
	peer
	// product is PaV.
	product
)

// subject is one of those that do the work of a case.
type subject struct {
	name string
	role role
	// measure does the work once, and returns as many figures as the case has. A figure that the subject does not have is
	// not a number. What it creates in the world is removed after it.
	measure func(ctx context.Context, w *world) ([]float64, error)
}

// figure is something that a case measures.
type figure struct{ name, unit string }

// count is the unit of whole numbers.
const count = "number"

// benchCase is one work.
type benchCase struct {
	name, title string
	figures     []figure
	subjects    []subject
	// prepare, if there is one, creates what all measurements of the case use. It is removed after the last of them.
	prepare func(ctx context.Context, w *world) error
	// notes, if there is one, returns what is to be said below the tables.
	notes func(ctx context.Context, w *world) (string, error)
	// warm says that a further round before the others fills caches, and does not count.
	warm bool
}

// result has the figures of a case: those of each subject, by figure.
type result struct {
	of    benchCase
	taken [][]sample.Sample
	notes string
}

// runner measures cases.
type runner struct {
	world    *world
	rounds   int
	deadline time.Time // when no further round begins
	timeout  time.Duration
	pause    func(ctx context.Context) error // before each measurement
	progress func(format string, args ...any)
	record   func(c benchCase, s subject, f figure, round int, value float64) error
}

// measure measures all rounds of a case. If it returns an error, the result has the rounds before that.
func (r *runner) measure(ctx context.Context, c benchCase) (_ result, err error) {
	found := result{of: c, taken: make([][]sample.Sample, len(c.figures))}
	for i := range found.taken {
		found.taken[i] = make([]sample.Sample, len(c.subjects))
	}
	mark := len(r.world.undo)
	defer func() {
		after, cancel := context.WithTimeout(context.WithoutCancel(ctx), stepTimeout)
		defer cancel()
		err = errors.Join(err, r.world.removeTo(after, mark))
	}()
	if c.prepare != nil {
		r.progress("%s: preparing", c.name)
		within, cancel := context.WithTimeout(ctx, stepTimeout)
		defer cancel()
		if err := c.prepare(within, r.world); err != nil {
			return found, fmt.Errorf("preparing: %w", err)
		}
	}
	first := 1
	if c.warm {
		first = 0
	}
	for round := first; round <= r.rounds && time.Now().Before(r.deadline); round++ {
		if err := r.round(ctx, &found, round); err != nil {
			return found, err
		}
	}
	if c.notes != nil {
		found.notes, err = c.notes(ctx, r.world)
	}
	return found, err
}

// round measures each subject once. Round 0 does not count.
func (r *runner) round(ctx context.Context, found *result, round int) error {
	c := found.of
	for i := range c.subjects {
		at := (round + i) % len(c.subjects)
		s := c.subjects[at]
		values, err := r.once(ctx, s)
		if err != nil {
			return fmt.Errorf("round %d, %s: %w", round, s.name, err)
		}
		r.progress("%s: round %d of %d, %s: %.3f", c.name, round, r.rounds, s.name, values)
		if round == 0 {
			continue
		}
		for number, value := range values {
			if math.IsNaN(value) {
				continue
			}
			found.taken[number][at] = append(found.taken[number][at], value)
			if err := r.record(c, s, c.figures[number], round, value); err != nil {
				return err
			}
		}
	}
	return nil
}

// once measures a subject, and removes what that has created.
func (r *runner) once(ctx context.Context, s subject) ([]float64, error) {
	before, err := r.world.count(ctx)
	if err != nil {
		return nil, err
	}
	if err := r.pause(ctx); err != nil {
		return nil, err
	}
	mark := len(r.world.undo)
	within, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	values, err := s.measure(within, r.world)
	err = errors.Join(err, r.world.removeTo(ctx, mark))
	if err == nil {
		err = r.world.quiet(ctx, before)
	}
	return values, err
}

// pause waits for a random part of a second. Kubelet looks at its pods once a second, and what is created right after
// something has gone would always meet it at the same moment of that second.
func pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(rand.N(time.Second)): //nolint:gosec // It is no secret.
		return nil
	}
}

// seconds returns times in seconds.
func seconds(took []time.Duration) []float64 {
	values := make([]float64, len(took))
	for i := range took {
		values[i] = took[i].Seconds()
	}
	return values
}

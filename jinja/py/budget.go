package py

import (
	"context"
	"fmt"
	"time"
)

// Limits are the limits of one evaluation.
type Limits struct {
	// Steps is how many elementary operations there may be.
	Steps int64
	// Memory is how many bytes may be allocated in all, for everything that grows with the data.
	Memory int64
	// Text is how many bytes one string, and the output, may have.
	Text int
	// Depth is how deep calls and values may nest.
	Depth int
	// Digits is how many decimal digits an integer may have.
	Digits int
	// Time is how long it may take.
	Time time.Duration
}

// Budget is what one evaluation may still use. It is not for concurrent use.
type Budget struct {
	Limits Limits

	ctx      context.Context //nolint:containedctx // a budget lives as long as the one evaluation that it bounds
	deadline time.Time
	steps    int64
	memory   int64
	depth    int
	// nans is how many NaN floats there have been. Each is another object for Python, and the same only as itself.
	nans uint64
}

// Untimed returns a budget of limits without the limit of time.
func Untimed(limits Limits) *Budget { return &Budget{Limits: limits} }

// NewBudget returns a budget of limits, which ends early when ctx does.
func NewBudget(ctx context.Context, limits Limits) *Budget {
	return &Budget{Limits: limits, ctx: ctx, deadline: time.Now().Add(limits.Time)}
}

// stepsPerCheck is after how many steps the clock is read.
const stepsPerCheck = 1024

// Step takes n elementary operations.
func (b *Budget) Step(n int) error {
	before := b.steps
	b.steps += int64(n)
	if b.steps > b.Limits.Steps {
		return limitError("it takes more than %d steps", b.Limits.Steps)
	}
	if before/stepsPerCheck == b.steps/stepsPerCheck {
		return nil
	}
	if b.ctx == nil {
		return nil
	}
	if err := b.ctx.Err(); err != nil {
		return fmt.Errorf("evaluating a template: %w", err)
	}
	if time.Now().After(b.deadline) {
		return limitError("it takes longer than %s", b.Limits.Time)
	}
	return nil
}

// Used returns how many bytes of memory have been taken.
func (b *Budget) Used() int64 { return b.memory }

// Alloc takes n bytes of memory, and the steps to fill them.
func (b *Budget) Alloc(n int) error {
	b.memory += int64(n)
	if n < 0 || b.memory > b.Limits.Memory {
		return limitError("it uses more than %d bytes of memory", b.Limits.Memory)
	}
	return b.Step(n/64 + 1)
}

// Text takes the memory of one string of n bytes.
func (b *Budget) Text(n int) error {
	if n < 0 || n > b.Limits.Text {
		return limitError("it makes a text longer than %d bytes", b.Limits.Text)
	}
	return b.Alloc(n)
}

// Enter goes one level deeper into calls or values; Leave must follow if it returns nil.
func (b *Budget) Enter() error {
	if b.depth >= b.Limits.Depth {
		return limitError("it nests deeper than %d levels", b.Limits.Depth)
	}
	b.depth++
	return b.Step(1)
}

// Leave undoes Enter.
func (b *Budget) Leave() { b.depth-- }

func limitError(format string, args ...any) error {
	return &Error{Kind: Limit, Exception: "RuntimeError", Message: fmt.Sprintf(format, args...)}
}

// Append takes the memory of n more bytes of a text that has size bytes.
func (b *Budget) Append(size, n int) error {
	if size+n > b.Limits.Text {
		return limitError("it makes a text longer than %d bytes", b.Limits.Text)
	}
	return b.Alloc(n)
}

// Wait runs f, which waits for something outside, and returns how long it took: that time does not count.
func (b *Budget) Wait(f func()) time.Duration {
	start := time.Now()
	f()
	waited := time.Since(start)
	b.deadline = b.deadline.Add(waited)
	return waited
}

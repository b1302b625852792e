package stage

import (
	"context"
	"sync"
)

// Together makes calls that do not depend on each other, and returns the error of the first one that has failed, in their order.
type Together func(ctx context.Context, calls ...func(context.Context) error) error

// sideBySide makes the calls at the same time.
func sideBySide(ctx context.Context, calls ...func(context.Context) error) error {
	errs := make([]error, len(calls))
	var running sync.WaitGroup
	for i, call := range calls {
		running.Go(func() { errs[i] = call(ctx) })
	}
	running.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// InTurn makes one call after the other, until one fails. It is a Together for worlds in which nothing happens at the same time.
func InTurn(ctx context.Context, calls ...func(context.Context) error) error {
	for _, call := range calls {
		if err := call(ctx); err != nil {
			return err
		}
	}
	return nil
}

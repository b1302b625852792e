package stage

import (
	"context"

	"golang.org/x/sync/errgroup"
)

// Together makes calls that do not depend on each other, and returns an error of one of them.
type Together func(ctx context.Context, calls ...func(context.Context) error) error

// sideBySide makes the calls at the same time. The first error ends the others.
func sideBySide(ctx context.Context, calls ...func(context.Context) error) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, call := range calls {
		group.Go(func() error { return call(ctx) })
	}
	return group.Wait()
}

// InTurn makes one call after the other. It is a Together for worlds in which nothing happens at the same time.
func InTurn(ctx context.Context, calls ...func(context.Context) error) error {
	for _, call := range calls {
		if err := call(ctx); err != nil {
			return err
		}
	}
	return nil
}

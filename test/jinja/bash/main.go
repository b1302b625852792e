// Command bash checks the filter tobash with the real bash. For any string, the filter's result must be one word
// without a newline, bash must return the original string, and bash must not execute any part of it.
package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"runtime"
	"sync"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt) //nolint:forbidigo // The root context is created here.
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bash:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, arguments []string) error {
	flags := flag.NewFlagSet("bash", flag.ContinueOnError)
	seed := flags.Uint64("seed", 0, "what the strings are made from; 0 takes one at random")
	count := flags.Uint64("strings", 1_000_000, "how many strings there are")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	if *seed == 0 {
		*seed = rand.Uint64()
	}
	if err := check(ctx, *seed, *count); err != nil {
		return fmt.Errorf("seed %d: %w", *seed, err)
	}
	_, err := fmt.Fprintf(os.Stdout, "seed %d: bash gives all of %d strings back\n", *seed, *count)
	return err
}

// batchSize is the number of strings for one process of bash.
const batchSize = 5000

// check checks count strings that are generated from a seed, and returns the first failure.
func check(ctx context.Context, seed, count uint64) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	batches := make(chan uint64)
	var workers sync.WaitGroup
	for range runtime.NumCPU() {
		workers.Go(func() {
			for start := range batches {
				if err := batch(ctx, stringsOf(seed, start, min(start+batchSize, count))); err != nil {
					fail(err)
				}
			}
		})
	}
	for start := uint64(0); start < count && ctx.Err() == nil; start += batchSize {
		batches <- start
	}
	close(batches)
	workers.Wait()
	return context.Cause(ctx)
}

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

// settings are the options of the command.
type settings struct {
	node  string
	parts string

	// Options of the data path.
	rounds  int
	runtime time.Duration
	size    string

	// Options of the latency.
	runs int

	// Options of the cost.
	provisioners, volumes int
}

// parts are all measurements, in this order: an agent that has worked has a larger heap.
var parts = []struct {
	name    string
	measure func(context.Context, *world, settings, io.Writer) error
}{
	{"cost", measureCost},
	{"latency", measureLatency},
	{"data", measureData},
}

func main() {
	s := settings{}
	flag.StringVar(&s.node, "node", "node1", "the node to measure on")
	flag.StringVar(&s.parts, "parts", "cost,latency,data", "what to measure")
	flag.IntVar(&s.rounds, "rounds", 15, "data: how often each case is measured with and without PaV, in turn")
	flag.DurationVar(&s.runtime, "runtime", 500*time.Millisecond, "data: how long each measurement takes")
	flag.StringVar(&s.size, "size", "256M", "data: size of the file and of the device, for fio")
	flag.IntVar(&s.runs, "runs", 15, "latency: how many pods of each kind")
	flag.IntVar(&s.provisioners, "provisioners", 1000, "cost: how many idle provisioners at most; a tenth of them is measured first")
	flag.IntVar(&s.volumes, "volumes", 100, "cost: how many staged volumes")
	flag.Parse()

	//nolint:forbidigo // This is where the program's context comes from.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, s, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		stop()
		os.Exit(1) //nolint:gocritic // Nothing is left to be deferred.
	}
}

// run makes the measurements one after the other, each in a world of its own, which is closed at the end.
func run(ctx context.Context, s settings, out io.Writer) error {
	chosen := strings.Split(s.parts, ",")
	for _, part := range parts {
		if !slices.Contains(chosen, part.name) {
			continue
		}
		if err := measure(ctx, s, out, part.measure); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
	}
	return nil
}

func measure(ctx context.Context, s settings, out io.Writer, part func(context.Context, *world, settings, io.Writer) error) (err error) {
	w, err := newWorld(ctx, s.node)
	if err != nil {
		return err
	}
	defer func() {
		after, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Minute)
		defer cancel()
		err = errors.Join(err, w.close(after))
	}()
	return part(ctx, w, s, out)
}

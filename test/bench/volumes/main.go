package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path"
	"strings"
	"syscall"
	"time"

	"github.com/albertofaria/pav/test/bench/machine"
)

// settings are the options of the command.
type settings struct {
	cases, samples, commit, cluster, node string
	rounds                                int
	atMost                                time.Duration
}

func main() {
	s := settings{}
	flag.StringVar(&s.cases, "cases", "*", "the cases to measure: names or patterns, with spaces or commas between them")
	flag.IntVar(&s.rounds, "n", 30, "how often each subject of a case is measured")
	flag.DurationVar(&s.atMost, "for", 24*time.Hour, "begin no further round after this time")
	flag.StringVar(&s.samples, "samples", "", "a file to write each figure to")
	flag.StringVar(&s.commit, "commit", "unknown", "the commit of PaV, for the report")
	flag.StringVar(&s.cluster, "cluster", "bin/cluster", "the program that runs the cluster")
	flag.StringVar(&s.node, "node", "node2", "the node to measure on; some cases reboot it")
	flag.Usage = showUsage
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

func showUsage() {
	fmt.Fprint(os.Stderr, "Measures PaV beside floors and peers. Flags:\n")
	flag.PrintDefaults()
	fmt.Fprint(os.Stderr, "Cases:\n")
	for _, c := range cases() {
		fmt.Fprintf(os.Stderr, "  %-20s %s\n", c.name, c.title)
	}
}

// run measures the chosen cases. A case that fails is reported with the rounds that it had, and the others are measured
// nevertheless.
func run(ctx context.Context, s settings, out io.Writer) (err error) {
	chosen, err := choose(cases(), s.cases)
	if err != nil {
		return err
	}
	samples, err := openSamples(s.samples)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, samples.Close()) }()
	watching, stop := context.WithCancel(ctx)
	defer stop()
	w, err := newWorld(watching, s.node, s.cluster)
	if err != nil {
		return err
	}
	if err := begin(out, s, w); err != nil {
		return err
	}
	if err := w.install(ctx); err != nil {
		return err
	}
	r := &runner{
		world: w, rounds: s.rounds, deadline: time.Now().Add(s.atMost), timeout: 10 * time.Minute, pause: pause,
		progress: func(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) },
		record: func(c benchCase, s subject, f figure, round int, value float64) error {
			return say(samples, "%s\t%s\t%s\t%s\t%d\t%.6f\n", c.name, s.name, f.name, f.unit, round, value)
		},
	}
	var errs []error
	for _, c := range chosen {
		found, err := r.measure(ctx, c)
		if err != nil {
			errs = append(errs, fmt.Errorf("case %s: %w", c.name, err))
		}
		errs = append(errs, say(out, "%s", found.tables()))
		if ctx.Err() != nil {
			break
		}
	}
	return errors.Join(append(errs, end(out))...)
}

// openSamples opens the file of all figures.
func openSamples(name string) (io.WriteCloser, error) {
	if name == "" {
		return discard{io.Discard}, nil
	}
	file, err := os.Create(name)
	if err != nil {
		return nil, fmt.Errorf("opening the file of figures: %w", err)
	}
	return file, nil
}

type discard struct{ io.Writer }

func (discard) Close() error { return nil }

// choose returns the cases whose names match one of the patterns.
func choose(all []benchCase, patterns string) ([]benchCase, error) {
	var chosen []benchCase
	wanted := strings.FieldsFunc(patterns, func(r rune) bool { return r == ',' || r == ' ' })
	used := make([]bool, len(wanted))
	for _, c := range all {
		found := false
		for i, pattern := range wanted {
			matches, err := path.Match(pattern, c.name)
			if err != nil {
				return nil, fmt.Errorf("the pattern %q: %w", pattern, err)
			}
			found, used[i] = found || matches, used[i] || matches
		}
		if found {
			chosen = append(chosen, c)
		}
	}
	for i, pattern := range wanted {
		if !used[i] {
			return nil, fmt.Errorf("no case is named %q: -h shows all", pattern)
		}
	}
	return chosen, nil
}

// begin writes what the figures depend on.
func begin(out io.Writer, s settings, w *world) error {
	on, err := machine.Describe()
	if err != nil {
		return err
	}
	averages, err := machine.Load()
	if err != nil {
		return err
	}
	return say(out, "# PaV, floors and peers\n\n"+
		"- PaV at commit %s, local-path-provisioner v0.0.30, external-provisioner v6.4.0 with the driver of test/bench/driver\n"+
		"- Kubernetes %s, two nodes on one machine, clients on the second\n- %s\n"+
		"- load averages at the beginning: %s\n", s.commit, w.server, on, averages)
}

// end writes how busy the machine was in the last minutes. A load that is much higher than that of a run of its own says
// that something else ran.
func end(out io.Writer) error {
	averages, err := machine.Load()
	if err != nil {
		return err
	}
	return say(out, "\nLoad averages at the end: %s.\n", averages)
}

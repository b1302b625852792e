// Command fuzz compares PaV's template engine with the real Jinja2 on templates made at random. It prints
// every difference, made small, and its exit status is 1 if there is one that is not explained.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"os/signal"
	"runtime"

	"github.com/albertofaria/pav/test/jinja/oracle"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt) //nolint:forbidigo // Here contexts begin.
	failed, err := run(ctx, os.Args[1:])
	stop()
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "fuzz:", err)
		os.Exit(2)
	case failed:
		os.Exit(1)
	}
}

func run(ctx context.Context, arguments []string) (failed bool, err error) {
	o := options{logf: log.New(os.Stderr, "", 0).Printf}
	flags := flag.NewFlagSet("fuzz", flag.ContinueOnError)
	flags.Uint64Var(&o.seed, "seed", 0, "what the cases are made from; 0 takes one at random")
	flags.Uint64Var(&o.from, "from", 0, "the number of the first case")
	flags.Uint64Var(&o.cases, "cases", 500_000, "how many cases there are")
	// One more than there are processors, as the engine takes its turns between the oracles' answers.
	flags.IntVar(&o.oracles, "oracles", runtime.NumCPU()+1, "how many processes of Python answer at once")
	flags.IntVar(&o.reductions, "reductions", 200, "how many differences are made small; others are only counted")
	flags.BoolVar(&o.verbose, "verbose", false, "print each case and its outcomes")
	if err := flags.Parse(arguments); err != nil {
		return false, err
	}
	if o.seed == 0 {
		o.seed = rand.Uint64()
	}
	if err := oracle.Install(ctx); err != nil {
		return false, err
	}
	r, err := fuzz(ctx, o)
	if err != nil {
		return false, err
	}
	_, err = fmt.Print(r) //nolint:forbidigo // This is what the command is for.
	return r.differences > 0, err
}

// Command fuzz compares PaV's template engine with the real Jinja2 on random templates. It prints every difference in a
// reduced form. Its exit status is 1 if a difference has no explanation.
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
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt) //nolint:forbidigo // The root context is created here.
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
	// This is one more than the number of processors, because the engine also needs time between the answers of the
	// oracles.
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
	_, err = fmt.Print(r) //nolint:forbidigo // Printing is the purpose of the command.
	return r.differences > 0, err
}

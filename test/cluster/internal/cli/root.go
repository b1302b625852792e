package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/albertofaria/pav/test/cluster/internal/cluster"
	"github.com/albertofaria/pav/test/cluster/internal/compile"
	"github.com/albertofaria/pav/test/cluster/internal/control"
	"github.com/albertofaria/pav/test/cluster/internal/machine"
	"github.com/albertofaria/pav/test/cluster/internal/paths"
)

// exitError makes this program exit with the exit code of a command that it ran. Main prints no message for it, because
// the command has already printed one.
type exitError struct{ code int }

func (e exitError) Error() string { return fmt.Sprintf("command ended with code %d", e.code) }

// Main runs the program and returns its exit code.
func Main(arguments []string) int {
	root := newRoot()
	root.SetArgs(arguments)
	err := root.Execute()
	var exit exitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.code
	default:
		fmt.Fprintf(os.Stderr, "error: %v\n", err)
		return 1
	}
}

// global has the options of all commands.
type global struct{ state string }

func newRoot() *cobra.Command {
	var options global
	root := &cobra.Command{
		Use:   "cluster",
		Short: "A Kubernetes cluster on this machine, from source and without a container engine",
		Long: "A Kubernetes cluster on this machine, from source and without a container engine.\n\n" +
			"Environment: " + paths.CacheVariable + " moves the cache of programs and images, " +
			paths.StateVariable + " the state directory, " + compile.VersionVariable + " chooses the version of Kubernetes.",
		SilenceUsage: true, SilenceErrors: true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	root.PersistentFlags().StringVar(&options.state, "state", "", "state directory of the cluster (default: one per checkout)")
	root.AddCommand(
		newBuild(), newPackages(), newUp(&options), newDown(&options), newStatus(&options), newExec(&options),
		newLoad(&options), newImage(), newNode(&options), newSSHD(), newSystemctl(control.Socket),
		newLogind(),
		&cobra.Command{
			Use: machine.Subcommand, Hidden: true, Args: cobra.NoArgs,
			RunE: func(called *cobra.Command, _ []string) error { return machine.Main(called.Context()) },
		},
	)
	return root
}

// interruptible returns a context that ends on SIGINT and SIGTERM. It is for commands that clean up when they are
// interrupted.
func interruptible(called *cobra.Command) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(called.Context(), os.Interrupt, syscall.SIGTERM)
}

// open returns the cluster in the state directory of the options.
func (g *global) open() (cluster.Cluster, error) {
	state, err := paths.FindState(g.state)
	if err != nil {
		return cluster.Cluster{}, err
	}
	cache, err := paths.Cache()
	if err != nil {
		return cluster.Cluster{}, err
	}
	return cluster.Cluster{State: state, Cache: cache, Progress: os.Stderr}, nil
}

// change calls a function that changes the cluster, while it holds the lock of the cluster.
func (g *global) change(called *cobra.Command, action func(ctx context.Context, target cluster.Cluster) error) error {
	if os.Geteuid() != 0 {
		return errors.New("this needs root: the nodes are made of namespaces and mounts")
	}
	ctx, cancel := interruptible(called)
	defer cancel()
	target, err := g.open()
	if err != nil {
		return err
	}
	release, err := target.Lock(ctx)
	if err != nil {
		return err
	}
	defer release()
	return action(ctx, target)
}

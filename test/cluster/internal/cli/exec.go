package cli

import (
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/albertofaria/pav/test/cluster/internal/cluster"
	"github.com/albertofaria/pav/test/cluster/internal/namespace"
)

func newExec(options *global) *cobra.Command {
	var wanted cluster.Command
	command := &cobra.Command{
		Use:   "exec [--node NAME] [--network-only] -- COMMAND...",
		Short: "Run a command on a node, with KUBECONFIG and PATH set",
		Long: "Run a command on a node, with KUBECONFIG and PATH set, and end with its exit code.\n\n" +
			"The command sees the node's processes and directories; /tmp, for one, is not the caller's. With " +
			"--network-only, it shares nothing but the network of node1 (or the node given) and stays " +
			"otherwise where the caller is.",
		Args: cobra.MinimumNArgs(1),
		RunE: func(called *cobra.Command, arguments []string) error {
			target, err := options.open()
			if err != nil {
				return err
			}
			wanted.Arguments = arguments
			// This context does not end on signals, because pass forwards signals to the command.
			prepared, pid, kinds, err := target.Prepare(called.Context(), wanted)
			if err != nil {
				return err
			}
			return pass(prepared, pid, kinds)
		},
	}
	command.Flags().StringVar(&wanted.Node, "node", "node1", "the node")
	command.Flags().BoolVar(&wanted.NetworkOnly, "network-only", false, "enter the node's network only")
	// All arguments after the command's name belong to the command, with or without "--".
	command.Flags().SetInterspersed(false)
	return command
}

// pass runs a command in the place of this program. The command has this program's standard input and output, and
// receives its signals. pass returns the command's exit code as an exitError.
func pass(command *exec.Cmd, pid int, kinds []namespace.Kind) error {
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2)
	wait, err := namespace.Start(command, pid, kinds)
	if err != nil {
		return err
	}
	terminal := term.IsTerminal(int(os.Stdin.Fd()))
	go func() {
		for received := range signals {
			// The terminal itself sends these signals to the command when a user types Ctrl-C or Ctrl-\.
			if terminal && (received == syscall.SIGINT || received == syscall.SIGQUIT) {
				continue
			}
			_ = command.Process.Signal(received)
		}
	}()
	err = wait()
	if ended, found := errors.AsType[*exec.ExitError](err); found {
		return exitError{code: exitCode(ended.ProcessState)}
	}
	return err
}

// exitCode returns the exit code that a shell would report.
func exitCode(state *os.ProcessState) int {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return state.ExitCode()
}

package cli

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/albertofaria/pav/test/cluster/internal/cluster"
	"github.com/albertofaria/pav/test/cluster/internal/config"
	"github.com/albertofaria/pav/test/cluster/internal/control"
)

// components are the names of components that the command line accepts, the most important first.
var components = []string{
	config.Kubelet, config.Containerd, config.Proxy, config.Etcd, config.APIServer,
	config.ControllerManager, config.Scheduler, config.SnapshotController, config.SSHD, config.Logind,
}

// operations are the operations on a component that the command line accepts.
var operations = []control.Operation{control.Start, control.Stop, control.Kill, control.Restart}

func newNode(options *global) *cobra.Command {
	command := &cobra.Command{Use: "node", Short: "Do things to a node or to a program on it"}
	for _, verb := range []struct {
		name, short string
		action      func(ctx context.Context, target cluster.Cluster, node string) error
	}{
		{"stop", "Take a node away at once, like a loss of power; its disk stays", stopNode},
		{"shutdown", "Shut a node down through its logind, which must run, and which lets kubelet end the pods first", shutDownNode},
		{"start", "Bring a stopped node back, with a new boot ID, and wait until it is ready", startNode},
		{"reboot", "Stop and start a node", func(ctx context.Context, target cluster.Cluster, node string) error {
			if err := stopNode(ctx, target, node); err != nil {
				return err
			}
			return startNode(ctx, target, node)
		}},
		{"restart", "Stop and start a node with the boot ID that it has, as 'docker restart' does with a node that is a container", restartNode},
		{"isolate", "Take a node's network link away (not that of node1)", func(ctx context.Context, target cluster.Cluster, node string) error {
			return target.SetConnected(ctx, node, false)
		}},
		{"reconnect", "Give a node's network link back", func(ctx context.Context, target cluster.Cluster, node string) error {
			return target.SetConnected(ctx, node, true)
		}},
	} {
		command.AddCommand(&cobra.Command{
			Use: verb.name + " NODE", Short: verb.short, Args: cobra.ExactArgs(1),
			RunE: func(called *cobra.Command, arguments []string) error {
				return options.change(called, func(ctx context.Context, target cluster.Cluster) error {
					return verb.action(ctx, target, arguments[0])
				})
			},
		})
	}
	for _, component := range components {
		command.AddCommand(newComponent(options, component))
	}
	return command
}

func stopNode(ctx context.Context, target cluster.Cluster, node string) error {
	return target.StopNode(ctx, node)
}

func shutDownNode(ctx context.Context, target cluster.Cluster, node string) error {
	return target.ShutDownNode(ctx, node)
}

func startNode(ctx context.Context, target cluster.Cluster, node string) error {
	return target.StartNode(ctx, node)
}

func restartNode(ctx context.Context, target cluster.Cluster, node string) error {
	return target.RestartNode(ctx, node)
}

func newComponent(options *global, component string) *cobra.Command {
	valid := make([]string, len(operations))
	for i, operation := range operations {
		valid[i] = string(operation)
	}
	return &cobra.Command{
		Use:   component + " start|stop|kill|restart NODE",
		Short: "Start, stop, kill (it is started again after a second) or restart " + component + " of a node",
		Args:  cobra.MatchAll(cobra.ExactArgs(2), oneOf(valid)),
		RunE: func(called *cobra.Command, arguments []string) error {
			return options.change(called, func(ctx context.Context, target cluster.Cluster) error {
				return target.Component(ctx, arguments[1], component, control.Operation(arguments[0]))
			})
		},
	}
}

// oneOf returns a check that rejects any first argument that is not in words.
func oneOf(words []string) cobra.PositionalArgs {
	return func(command *cobra.Command, arguments []string) error {
		if !slices.Contains(words, arguments[0]) {
			return &argumentError{argument: arguments[0], usage: command.UseLine()}
		}
		return nil
	}
}

// argumentError reports an argument that a command does not know.
type argumentError struct{ argument, usage string }

func (e *argumentError) Error() string {
	return "unknown argument \"" + e.argument + "\" (usage: " + e.usage + ")"
}

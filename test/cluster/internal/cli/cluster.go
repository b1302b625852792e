package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/albertofaria/pav/test/cluster/internal/cluster"
	"github.com/albertofaria/pav/test/cluster/internal/compile"
)

func newUp(options *global) *cobra.Command {
	var nodes int
	command := &cobra.Command{
		Use:   "up",
		Short: "Bring the cluster up and wait until it is ready",
		Args:  cobra.NoArgs,
		RunE: func(called *cobra.Command, _ []string) error {
			return options.change(called, func(ctx context.Context, target cluster.Cluster) error {
				programs, err := build(ctx, compile.Selection{Kubectl: !compile.HasKubectl()}, os.Stderr)
				if err != nil {
					return err
				}
				return target.Up(ctx, cluster.Options{
					Nodes: nodes, Kubernetes: programs.version.Name, Bin: programs.directory, Images: programs.images,
				})
			})
		},
	}
	command.Flags().IntVar(&nodes, "nodes", 1, "number of nodes, 1 to 3")
	return command
}

func newDown(options *global) *cobra.Command {
	return &cobra.Command{
		Use:   "down",
		Short: "Remove the cluster and everything that it left on the machine",
		Args:  cobra.NoArgs,
		RunE: func(called *cobra.Command, _ []string) error {
			return options.change(called, func(ctx context.Context, target cluster.Cluster) error { return target.Down(ctx) })
		},
	}
}

func newLoad(options *global) *cobra.Command {
	var node string
	command := &cobra.Command{
		Use:   "load IMAGE.tar...",
		Short: "Load image archives into all nodes, or one",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(called *cobra.Command, arguments []string) error {
			ctx, cancel := interruptible(called)
			defer cancel()
			target, err := options.open()
			if err != nil {
				return err
			}
			for _, archive := range arguments {
				if err := target.Load(ctx, archive, node); err != nil {
					return err
				}
			}
			return nil
		},
	}
	command.Flags().StringVar(&node, "node", "", "the only node to load the image into")
	return command
}

func newStatus(options *global) *cobra.Command {
	var format string
	command := &cobra.Command{
		Use:   "status",
		Short: "Show the nodes, their programs and where everything lies",
		Args:  cobra.NoArgs,
		RunE: func(called *cobra.Command, _ []string) error {
			if format != "text" && format != "json" {
				return fmt.Errorf("unknown format %q: it is text or json", format)
			}
			ctx, cancel := interruptible(called)
			defer cancel()
			target, err := options.open()
			if err != nil {
				return err
			}
			status, err := target.Status(ctx)
			if err != nil {
				return err
			}
			if format == "text" {
				return printStatus(os.Stdout, status)
			}
			encoder := json.NewEncoder(os.Stdout)
			encoder.SetIndent("", "  ")
			return encoder.Encode(status)
		},
	}
	command.Flags().StringVarP(&format, "output", "o", "text", "text or json")
	return command
}

func printStatus(output io.Writer, status cluster.Status) error {
	var text strings.Builder
	fmt.Fprintf(&text, "phase\t%s\nstate\t%s\n", status.Phase, status.State)
	if status.Phase != "none" {
		fmt.Fprintf(&text, "Kubernetes\t%s\nkubeconfig\t%s\nserver\t%s\nSSH key\t%s\nshared directory\t%s\nprograms\t%s\n",
			status.Kubernetes, status.Kubeconfig, status.Server, status.SSHKey, status.Shared, status.Bin)
	}
	for _, node := range status.Nodes {
		state := "stopped"
		switch {
		case node.Running && node.Isolated:
			state = "isolated"
		case node.Running:
			state = "running"
		}
		fmt.Fprintf(&text, "\n%s\t%s\t%s\tpid %d\n", node.Name, state, node.Address, node.PID)
		for _, component := range node.Components {
			state := "stopped"
			if component.Running {
				state = "running"
			}
			fmt.Fprintf(&text, "  %s\t%s\t%d start(s)\tpid %d\t%s\n", component.Name, state, component.Starts, component.HostPID, component.LastExit)
		}
	}
	table := tabwriter.NewWriter(output, 0, 0, 2, ' ', 0)
	if _, err := io.WriteString(table, text.String()); err != nil {
		return err
	}
	return table.Flush()
}

package main

import (
	"context"
	"os"
	"strings"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/albertofaria/pav/internal/controller"
	"github.com/albertofaria/pav/internal/node"
	"github.com/albertofaria/pav/internal/observability"
	"github.com/albertofaria/pav/internal/uninstall"
)

func controllerCommand() *cobra.Command {
	options := controller.DefaultOptions()
	options.Version = version
	return agentCommand("controller", "Run the controller agent: provisions and deletes volumes", &options,
		func(ctx context.Context, config *rest.Config, log logr.Logger) error {
			observability.LimitProfiles(options.ProfilingAddress)
			return controller.Run(ctx, config, options, log)
		})
}

func nodeCommand() *cobra.Command {
	options := node.DefaultOptions()
	options.Version = version
	return agentCommand("node", "Run the node agent: stages and publishes the volumes of its node", &options,
		func(ctx context.Context, config *rest.Config, log logr.Logger) error {
			observability.LimitProfiles(options.ProfilingAddress)
			return node.Run(ctx, config, options, log)
		})
}

func prepareUninstallCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "prepare-uninstall",
		Short: "Fail if PaV has volumes or PavProvisioners, and else remove its driver from the nodes",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			config, err := ctrl.GetConfig()
			if err != nil {
				return err
			}
			unreachable, err := uninstall.Run(command.Context(), config)
			if len(unreachable) > 0 {
				command.Printf("these nodes are not ready, so PaV's driver stays registered there: %s; if they return, delete PaV's links in plugins_registry of kubelet's directory\n",
					strings.Join(unreachable, ", "))
			}
			return err
		},
	}
}

// agentCommand returns the command of an agent with its options. Run reads the options itself, once
// they are parsed.
func agentCommand(use, short string, options interface{ AddFlags(flags *pflag.FlagSet) },
	run func(context.Context, *rest.Config, logr.Logger) error,
) *cobra.Command {
	logging := observability.LogOptions{}
	command := &cobra.Command{
		Use:   use,
		Short: short,
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := logging.Validate(); err != nil {
				return err
			}
			config, err := ctrl.GetConfig()
			if err != nil {
				return err
			}
			log := observability.NewLogger(os.Stderr, logging)
			observability.InstallLogger(log)
			return run(command.Context(), config, log)
		},
	}
	options.AddFlags(command.Flags())
	logging.AddFlags(command.Flags())
	return command
}

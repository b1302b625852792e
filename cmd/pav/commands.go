package main

import (
	"os"

	"github.com/spf13/cobra"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/albertofaria/pav/internal/controller"
	"github.com/albertofaria/pav/internal/node"
	"github.com/albertofaria/pav/internal/observe"
)

func controllerCommand() *cobra.Command {
	options := controller.DefaultOptions()
	logging := observe.LogOptions{}
	command := &cobra.Command{
		Use:   "controller",
		Short: "Run the controller agent: provisions and deletes volumes",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := logging.Validate(); err != nil {
				return err
			}
			config, err := ctrl.GetConfig()
			if err != nil {
				return err
			}
			log := observe.NewLogger(os.Stderr, logging)
			observe.InstallLogger(log)
			return controller.Run(command.Context(), config, options, log)
		},
	}
	options.AddFlags(command.Flags())
	logging.AddFlags(command.Flags())
	return command
}

func nodeCommand() *cobra.Command {
	options := node.DefaultOptions()
	options.Version = version
	logging := observe.LogOptions{}
	command := &cobra.Command{
		Use:   "node",
		Short: "Run the node agent: stages and publishes the volumes of its node",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := logging.Validate(); err != nil {
				return err
			}
			config, err := ctrl.GetConfig()
			if err != nil {
				return err
			}
			log := observe.NewLogger(os.Stderr, logging)
			observe.InstallLogger(log)
			return node.Run(command.Context(), config, options, log)
		},
	}
	options.AddFlags(command.Flags())
	logging.AddFlags(command.Flags())
	return command
}

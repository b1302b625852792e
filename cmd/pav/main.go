// Command pav is both agents of PaV, the controller agent and the node agent, and prepares their removal.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	ctrl "sigs.k8s.io/controller-runtime"
)

// version is set at build time.
var version = "dev"

func main() {
	root := &cobra.Command{
		Use:           "pav",
		Short:         "Pods-as-Volumes: volume provisioners made of pod templates",
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(controllerCommand(), nodeCommand(), prepareUninstallCommand())
	if err := root.ExecuteContext(ctrl.SetupSignalHandler()); err != nil {
		fmt.Fprintln(os.Stderr, "pav:", err)
		os.Exit(1)
	}
}

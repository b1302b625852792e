package kubectl

import (
	"github.com/spf13/cobra"

	"github.com/albertofaria/pav/internal/kubectl/cli"
)

// commands are the commands, in the order in which a volume's author meets them.
var commands = []cli.Command{}

// Root returns the command "kubectl pav".
func Root(env *cli.Env) *cobra.Command {
	root := &cobra.Command{
		Use:           "kubectl-pav",
		Short:         "Write, try and look after volumes made of pods",
		Version:       env.Version,
		SilenceUsage:  true,
		SilenceErrors: true,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl pav"},
	}
	root.SetIn(env.In)
	root.SetOut(env.Out)
	root.SetErr(env.ErrOut)
	env.Config.AddFlags(root.PersistentFlags())
	for _, command := range commands {
		root.AddCommand(command(env))
	}
	return root
}

package main

import (
	"bytes"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/albertofaria/pav/internal/controller"
	"github.com/albertofaria/pav/internal/node"
	"github.com/albertofaria/pav/internal/observability"
)

func writeFlags(w *bytes.Buffer) {
	controllers, nodes := controller.DefaultOptions(), node.DefaultOptions()
	// These values come from the environment of this program and are not defaults.
	controllers.Namespace, nodes.NodeName = "", ""
	agents := []struct {
		command string
		options interface{ AddFlags(flags *pflag.FlagSet) }
	}{{"pav controller", &controllers}, {"pav node", &nodes}}
	fmt.Fprint(w, "\n## Flags\n")
	for _, agent := range agents {
		flags := pflag.NewFlagSet(agent.command, pflag.ContinueOnError)
		agent.options.AddFlags(flags)
		(&observability.LogOptions{}).AddFlags(flags)
		fmt.Fprintf(w, "\n| `%s` | default | |\n|---|---|---|\n", agent.command)
		flags.VisitAll(func(f *pflag.Flag) {
			standard := ""
			if f.DefValue != "" {
				standard = "`" + f.DefValue + "`"
			}
			fmt.Fprintf(w, "| `--%s` | %s | %s |\n", f.Name, standard, cell(f.Usage))
		})
	}
}

package doctor

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/albertofaria/pav/internal/kubectl/cli"
)

// Command returns the command.
func Command(env *cli.Env) *cobra.Command {
	output, file := &cli.Output{}, ""
	command := &cobra.Command{
		Use:   "doctor",
		Short: "Check the installation, and say what is wrong",
		Long: `Checks whether PaV is installed completely and works: its definitions, agents, webhooks, policies and
namespaces, the registration of drivers on each node, provisioners and volumes that fail, and objects that should be
gone. Each problem has the command that follows. It changes nothing.

The exit status is 0 if all is well, and 1 if there is a problem. It is 2 if that cannot be told, because the cluster
cannot be reached, or because you may not read what a check needs; the rows "unknown" say which right that is.

--bundle writes a file for a bug report: the objects of PaV, its agents' logs, and this report, without Secrets and
without what usually has them. Look through it before you share it; the page "kubectl pav" of the documentation says
what is left.`,
		Example: "  kubectl pav doctor\n  kubectl pav doctor -o json\n  kubectl pav doctor --bundle pav.tar.gz",
		Args:    cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			cluster, err := env.Connect()
			if err != nil {
				return &cli.ExitError{Code: 2, Err: err}
			}
			facts, err := Gather(command.Context(), cluster.Objects, env.Version, cluster.Now)
			if err != nil {
				return &cli.ExitError{Code: 2, Err: err}
			}
			report := Examine(facts)
			if err := write(env, output, report); err != nil {
				return err
			}
			if file != "" {
				if err := writeBundle(command.Context(), env, cluster, facts, report, file); err != nil {
					return &cli.ExitError{Code: 2, Err: err}
				}
			}
			return exitOf(report)
		},
	}
	output.AddFlag(command.Flags())
	command.Flags().StringVar(&file, "bundle", "", "also write a file for a bug report, such as pav.tar.gz")
	return command
}

// exitOf returns the exit status of a report.
func exitOf(report *Report) error {
	switch report.Result {
	case Problem:
		return &cli.ExitError{Code: 1}
	case Unknown:
		return &cli.ExitError{Code: 2}
	case OK:
	}
	return nil
}

// write writes the report.
func write(env *cli.Env, output *cli.Output, report *Report) error {
	if output.Structured() {
		return output.Write(env.Out, report)
	}
	style := env.Style()
	paint := map[Result]func(string) string{OK: style.Good, Unknown: style.Warn, Problem: style.Bad}
	table := &cli.Table{}
	counts := map[Result]int{}
	for i := range report.Rows {
		row := &report.Rows[i]
		counts[row.Result]++
		table.Row(paint[row.Result](string(row.Result)), row.Check, oneLine(row.Message))
		for _, step := range row.Next {
			table.Row("", "", oneLine(step.Text)+": "+style.Bold(oneLine(step.Command)))
		}
	}
	if err := table.Write(env.Out, ""); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(env.Out, "\n"+conclusion(counts)); err != nil {
		return fmt.Errorf("writing the result: %w", err)
	}
	return nil
}

func oneLine(text string) string { return strings.ReplaceAll(cli.Plain(text), "\n", " | ") }

// conclusion is the last line of a report, for the number of rows with each result.
func conclusion(counts map[Result]int) string {
	problems, unknown := counted(counts[Problem], "problem"), plural(counts[Unknown], "thing is unknown", "things are unknown")
	switch {
	case counts[Problem] > 0 && counts[Unknown] > 0:
		return problems + "; " + unknown
	case counts[Problem] > 0:
		return problems
	case counts[Unknown] > 0:
		return "no problem was found, but " + unknown
	}
	return "all is well"
}

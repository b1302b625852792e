package kubectl

import (
	"errors"
	"fmt"
	"net"
	"net/url"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/albertofaria/pav/internal/kubectl/cli"
	"github.com/albertofaria/pav/internal/kubectl/doctor"
	"github.com/albertofaria/pav/internal/kubectl/lint"
	"github.com/albertofaria/pav/internal/kubectl/logs"
	"github.com/albertofaria/pav/internal/kubectl/render"
	"github.com/albertofaria/pav/internal/kubectl/retry"
	"github.com/albertofaria/pav/internal/kubectl/selftest"
	"github.com/albertofaria/pav/internal/kubectl/skeleton"
	"github.com/albertofaria/pav/internal/kubectl/status"
	"github.com/albertofaria/pav/internal/kubectl/version"
)

// commands are the commands, in the order in which the author of a provisioner needs them.
var commands = []cli.Command{
	skeleton.Command,
	lint.Command,
	render.Command,
	selftest.Command,
	status.GetCommand,
	status.DescribeCommand,
	logs.Command,
	retry.Command,
	retry.RotateCommand,
	doctor.Command,
	version.Command,
}

// Root returns the command "kubectl pav".
func Root(env *cli.Env) *cobra.Command {
	root := &cobra.Command{
		Use:           "kubectl-pav",
		Short:         "Develop, test and inspect volumes and buckets that are made of pods",
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
		root.AddCommand(strict(command(env)))
	}
	addCompletion(env, root)
	return root
}

// strict makes wrong usage of a command, or of one below it, end the program with its own exit status.
func strict(command *cobra.Command) *cobra.Command {
	wrong := func(command *cobra.Command, err error) error {
		return &cli.ExitError{Code: 2, Err: fmt.Errorf("%w; see %s --help", err, command.CommandPath())}
	}
	command.SetFlagErrorFunc(wrong)
	for _, sub := range command.Commands() {
		strict(sub)
	}
	if check := command.Args; check != nil {
		command.Args = func(command *cobra.Command, args []string) error {
			if err := check(command, args); err != nil {
				return wrong(command, err)
			}
			return nil
		}
	}
	if run := command.RunE; run != nil {
		command.RunE = func(command *cobra.Command, args []string) error {
			err := run(command, args)
			if command.Context().Err() == nil && unanswered(err) {
				return &cli.ExitError{Code: 2, Err: err}
			}
			return err
		}
	}
	return command
}

// unanswered reports whether an error without an exit status means that the cluster cannot be used: it cannot be
// reached, does not authenticate the user, or does not have PaV's kinds.
func unanswered(err error) bool {
	if err == nil {
		return false
	}
	if _, decided := errors.AsType[*cli.ExitError](err); decided {
		return false
	}
	_, atURL := errors.AsType[*url.Error](err)
	_, onNetwork := errors.AsType[*net.OpError](err)
	_, inDiscovery := errors.AsType[*apiutil.ErrResourceDiscoveryFailed](err)
	_, inGroups := errors.AsType[*discovery.ErrGroupDiscoveryFailed](err)
	_, noKind := errors.AsType[*meta.NoKindMatchError](err)
	return atURL || onNetwork || inDiscovery || inGroups || noKind || apierrors.IsUnauthorized(err)
}

package commands

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/util/jsonpath"
	kubectlcmd "k8s.io/kubectl/pkg/cmd"

	"github.com/albertofaria/pav/internal/kubectl"
	"github.com/albertofaria/pav/internal/kubectl/cli"
)

// nowhere is an address at which nobody listens.
const nowhere = "http://127.0.0.1:1"

func streams() genericiooptions.IOStreams {
	return genericiooptions.IOStreams{In: strings.NewReader(""), Out: io.Discard, ErrOut: io.Discard}
}

// parse finds the command and parses its flags. It returns the command and its other arguments; done if there is nothing else
// to check, as it is only the name of a command.
func parse(root *cobra.Command, args []string) (command *cobra.Command, rest []string, done bool, err error) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	command, rest, err = root.Find(args)
	if err != nil {
		return nil, nil, false, err
	}
	if command == root {
		return nil, nil, false, fmt.Errorf("there is no command in %q", args)
	}
	if len(rest) == 0 {
		return command, nil, true, nil
	}
	if err := command.ParseFlags(rest); err != nil {
		return nil, nil, false, err
	}
	rest = command.Flags().Args()
	if command.HasSubCommands() && command.Args == nil && len(rest) > 0 { // else it takes operands, too
		return nil, nil, false, fmt.Errorf("%s has no command %q", command.CommandPath(), rest[0])
	}
	if err := command.ValidateArgs(rest); err != nil {
		return nil, nil, false, err
	}
	return command, rest, false, command.ValidateRequiredFlags()
}

// checkPlugin parses a command of the plugin. One that names an object is run until it would connect to the cluster.
func (c *Checker) checkPlugin(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return nil
	}
	env := &cli.Env{IOStreams: streams(), Config: genericclioptions.NewConfigFlags(false)}
	root := kubectl.Root(env) //nolint:contextcheck // only the completion of names has a context of its own
	command, rest, done, err := parse(root, args)
	if err != nil || done || !slices.Contains([]string{"describe", "logs", "retry"}, command.Name()) {
		return err
	}
	for i, arg := range args {
		if arg == sample && len(rest) == 1 && rest[0] == sample {
			args[i] = "pvc/" + sample // a message's reference to an object
		}
	}
	root.SetArgs(append(args, "--server", nowhere, "--kubeconfig", os.DevNull))
	err = root.ExecuteContext(ctx)
	_, atURL := errors.AsType[*url.Error](err)
	_, onNetwork := errors.AsType[*net.OpError](err)
	if !atURL && !onNetwork {
		return fmt.Errorf("it does not ask the cluster: %w", err)
	}
	return nil
}

// typed are kubectl's commands whose first argument is a kind of object, unless a file has the objects.
var typed = []string{"annotate", "delete", "describe", "edit", "explain", "get", "label", "patch", "scale", "status", "taint", "wait"}

// checkKubectl parses a command of kubectl, and what of its arguments kubectl itself would check.
func (c *Checker) checkKubectl(args []string) error {
	root := kubectlcmd.NewKubectlCommand(kubectlcmd.KubectlOptions{
		Arguments: append([]string{"kubectl"}, args...), IOStreams: streams(), ConfigFlags: genericclioptions.NewConfigFlags(false),
	})
	command, rest, done, err := parse(root, args)
	if err != nil || done {
		return err
	}
	for _, arg := range args {
		if err := c.checkKeys(arg); err != nil {
			return err
		}
	}
	if err := c.checkFlags(command); err != nil {
		return err
	}
	switch name := command.Name(); {
	case name == "logs" || name == "exec" || name == "port-forward":
		return c.checkPod(command, rest)
	case !slices.Contains(typed, name):
		return nil
	default:
		return c.checkObjects(command, rest)
	}
}

// checkFlags checks the values of flags with a syntax of their own.
func (c *Checker) checkFlags(command *cobra.Command) error {
	value := func(name string) string {
		if flag := command.Flags().Lookup(name); flag != nil && flag.Changed {
			return flag.Value.String()
		}
		return ""
	}
	if err := c.checkSelector(value("selector")); err != nil {
		return err
	}
	if _, err := fields.ParseSelector(value("field-selector")); err != nil {
		return err
	}
	if path, is := strings.CutPrefix(value("output"), "jsonpath="); is {
		if err := jsonpath.New("").Parse(path); err != nil {
			return err
		}
	}
	if patch := value("patch"); patch != "" && !json.Valid([]byte(patch)) {
		return fmt.Errorf("the patch %s is no JSON", patch)
	}
	return nil
}

// checkPod checks the argument that names a pod, or an object that has pods.
func (c *Checker) checkPod(command *cobra.Command, args []string) error {
	selected := command.Flags().Lookup("selector") != nil && command.Flags().Changed("selector")
	if len(args) == 0 && !selected {
		return errors.New("there is no pod")
	}
	if len(args) > 0 && strings.Contains(args[0], "/") {
		kind, name, _ := strings.Cut(args[0], "/")
		return c.checkObject(kind, name)
	}
	return nil
}

// checkObjects checks the arguments that name objects: KIND NAME…, KIND/NAME…, or KIND,KIND.
func (c *Checker) checkObjects(command *cobra.Command, args []string) error {
	files := command.Flags().Lookup("filename")
	if files != nil && files.Changed {
		return nil
	}
	if len(args) == 0 {
		return errors.New("there is no kind of object")
	}
	if command.Name() == "explain" {
		return c.checkPath(args[0])
	}
	several := strings.Contains(args[0], "/")
	for i, arg := range args {
		if strings.Contains(arg, "=") {
			break // a change
		}
		kind, name, _ := strings.Cut(arg, "/")
		if i > 0 && !several {
			kind, name = args[0], arg
		}
		if err := c.checkObject(kind, name); err != nil {
			return err
		}
	}
	changes := command.Name() == "label" || command.Name() == "annotate"
	if last := args[len(args)-1]; changes && !strings.Contains(last, "=") && !strings.HasSuffix(last, "-") {
		return fmt.Errorf("%q is no change of a %s", last, command.Name())
	}
	if names := len(args) > 1 || several || args[0] == sample; !names && slices.Contains([]string{"delete", "edit", "patch"}, command.Name()) {
		return errors.New("no object is named")
	}
	return nil
}

// checkObject checks kinds, separated by commas, and the name of an object, which may be "".
func (c *Checker) checkObject(kinds, name string) error {
	for kind := range strings.SplitSeq(kinds, ",") {
		if err := c.checkKind(kind); err != nil {
			return err
		}
		if err := c.checkName(kind, name); name != "" && err != nil {
			return err
		}
	}
	return nil
}

// Command kubectl-pav is the kubectl plugin of PaV: "kubectl pav".
package main

import (
	"errors"
	"fmt"
	"os"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/albertofaria/pav/internal/kubectl"
	"github.com/albertofaria/pav/internal/kubectl/cli"
)

// version is set at build time.
var version = "dev"

func main() {
	env := &cli.Env{
		IOStreams: genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr},
		Config:    genericclioptions.NewConfigFlags(true),
		Version:   version,
	}
	err := kubectl.Root(env).ExecuteContext(ctrl.SetupSignalHandler())
	if err == nil {
		return
	}
	exit := &cli.ExitError{Code: 1, Err: err}
	errors.As(err, &exit)
	if exit.Err != nil {
		fmt.Fprintln(os.Stderr, "kubectl pav:", exit.Err)
	}
	os.Exit(exit.Code)
}

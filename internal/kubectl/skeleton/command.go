package skeleton

import (
	"embed"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/albertofaria/pav/internal/kubectl/cli"
)

//go:embed files
var files embed.FS

// kind is a kind of provisioner, and the file that has its skeleton.
type kind struct{ name, text string }

var kinds = []kind{
	{"dynamic", "volumes of a storage system that all nodes reach, created and deleted by pods"},
	{"local", "directories of one node, made where the first pod runs"},
	{"fuse", "a file system of a daemon that runs as long as pods use the volume"},
	{"block", "block devices"},
	{"layer", "layers over the volumes of other claims, such as encryption"},
	{"bucket", "buckets of an object store, and access to them"},
}

// Command returns the command "new".
func Command(env *cli.Env) *cobra.Command {
	text := &strings.Builder{}
	for _, k := range kinds {
		fmt.Fprintf(text, "\n  %-8s %s", k.name, k.text)
	}
	return &cobra.Command{
		Use:   "new KIND NAME",
		Short: "Print a definition to begin with",
		Long: `Print a PavProvisioner to begin with, and a StorageClass that uses it. It works as it is; comments with TODO
say what to replace. No cluster is needed. KIND is one of:
` + text.String(),
		Example:   "  kubectl pav new local my-storage > my-storage.yaml\n  kubectl pav lint my-storage.yaml\n  kubectl pav test my-storage.yaml",
		Args:      cobra.ExactArgs(2),
		ValidArgs: names(),
		RunE: func(_ *cobra.Command, args []string) error {
			definition, err := render(args[0], args[1])
			if err != nil {
				return &cli.ExitError{Code: 2, Err: err}
			}
			_, err = fmt.Fprint(env.Out, definition)
			return err
		},
	}
}

func names() (all []string) {
	for _, k := range kinds {
		all = append(all, k.name)
	}
	return all
}

// placeholder stands for the name of the provisioner in the files.
const placeholder = "@NAME@"

// render returns the skeleton of a kind with the name of the provisioner.
func render(kind, name string) (string, error) {
	if !slices.Contains(names(), kind) {
		return "", fmt.Errorf("there is no skeleton %q: KIND is one of %s", kind, strings.Join(names(), ", "))
	}
	if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
		return "", fmt.Errorf("%q cannot be the name of a PavProvisioner, which is a DNS label: %s", name, problems[0])
	}
	source, err := files.ReadFile("files/" + kind + ".yaml")
	if err != nil {
		return "", err
	}
	return strings.ReplaceAll(string(source), placeholder, name), nil
}

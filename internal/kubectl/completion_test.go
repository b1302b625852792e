package kubectl

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/albertofaria/pav/internal/kubectl/cli"
)

func TestAdd(t *testing.T) {
	env := &cli.Env{Config: genericclioptions.NewConfigFlags(false)}
	root := &cobra.Command{Use: "pav"}
	for _, use := range []string{"describe", "lint", "rotate", "other"} {
		root.AddCommand(&cobra.Command{Use: use, Run: func(*cobra.Command, []string) {}})
	}
	addCompletion(env, root)

	tests := map[string]struct {
		command string
		args    []string
		typed   string
		want    []string
	}{
		"any kind":               {command: "describe", want: []string{"pvc/", "pv/", "pod/", "vs/", "vsc/", "obc/", "bucketclaim/", "bucketaccess/", "pavsnapshot/", "pavbucket/", "pavbucketaccess/"}},
		"the kinds that fit":     {command: "describe", typed: "pv", want: []string{"pvc/", "pv/"}},
		"kinds of buckets":       {command: "rotate", want: []string{"obc/", "bucketaccess/", "pavbucketaccess/"}},
		"a kind that is no good": {command: "describe", typed: "node/a"},
		"too many words":         {command: "describe", args: []string{"pvc", "a"}},
		// There is no cluster.
		"names that cannot be had": {command: "describe", typed: "pvc/a"},
		"names after a kind":       {command: "describe", args: []string{"pvc"}, typed: "a"},
		"files":                    {command: "lint", want: []string{"yaml", "yml", "json"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			command, _, err := root.Find([]string{test.command})
			if err != nil {
				t.Fatal(err)
			}
			command.SetContext(t.Context())
			got, _ := command.ValidArgsFunction(command, test.args, test.typed)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	if other, _, _ := root.Find([]string{"other"}); other.ValidArgsFunction != nil {
		t.Error("a command of which nothing is known is completed")
	}
}

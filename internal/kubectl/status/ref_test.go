package status

import (
	"errors"
	"testing"

	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/albertofaria/pav/internal/kubectl/cli"
)

func TestParse(t *testing.T) {
	env := &cli.Env{Config: genericclioptions.NewConfigFlags(false)}
	*env.Config.Namespace = "apps"
	tests := map[string]struct {
		args []string
		want Ref
	}{
		"as kubectl names objects":  {args: []string{"pvc/data"}, want: Ref{Claim, "apps", "data"}},
		"in two words":              {args: []string{"pod", "web"}, want: Ref{Pod, "apps", "web"}},
		"by the whole name":         {args: []string{"PersistentVolumes/p"}, want: Ref{PV, "", "p"}},
		"by the name and the group": {args: []string{"persistentvolumeclaims.v1/data"}, want: Ref{Claim, "apps", "data"}},
		"of a kind that is no good": {args: []string{"pavstage/s"}},
		"of no kind at all":         {args: []string{"data"}},
		"without a name":            {args: []string{"pvc/"}},
		"with too much":             {args: []string{"pvc/a/b"}},
		"nothing":                   {},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Parse(env, test.args, Claim, PV, Pod)
			if got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
			exit := &cli.ExitError{}
			if wrong := test.want == (Ref{}); wrong != (err != nil) || wrong && (!errors.As(err, &exit) || exit.Code != 2) {
				t.Errorf("error %v", err)
			}
		})
	}
}

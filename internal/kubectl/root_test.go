package kubectl

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/albertofaria/pav/internal/kubectl/cli"
)

// A script must be able to tell "something is wrong with the volume" from "nobody knows".
func TestCommands_WhereTheClusterDoesNotAnswer_EndWithAStatusOfTheirOwn(t *testing.T) {
	t.Setenv("KUBECONFIG", "/dev/null")
	stranger := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = w.Write([]byte(`{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Unauthorized", "message": "Unauthorized", "code": 401}`))
	}))
	defer stranger.Close()
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	for what, server := range map[string]string{"nobody listens": closed.URL, "unauthorized": stranger.URL} {
		for _, args := range []string{"describe pvc/a", "describe pod/a", "retry pvc/a", "retry pavstage/a", "rotate obc/a", "rotate pavbucketaccess/a", "describe obc/a", "get", "get buckets", "get accesses", "logs pvc/a", "logs pv/a -f", "doctor"} {
			t.Run(what+"/"+args, func(t *testing.T) {
				streams, _, _, _ := genericiooptions.NewTestIOStreams()
				root := Root(&cli.Env{IOStreams: streams, Config: genericclioptions.NewConfigFlags(true)})
				root.SetArgs(append(strings.Fields(args), "--server", server))
				err := root.ExecuteContext(t.Context())
				exit, is := errors.AsType[*cli.ExitError](err)
				if !is || exit.Code != 2 {
					t.Errorf("got %v (%T), want exit status 2", err, err)
				}
			})
		}
	}
}

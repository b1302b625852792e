package integration

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/albertofaria/pav/test/agent"
	"github.com/albertofaria/pav/test/controlplane"
	"github.com/albertofaria/pav/test/kubelet"
	"github.com/albertofaria/pav/test/mountns"
)

// cluster is a control plane without nodes, with PaV's objects.
type cluster struct {
	*controlplane.Plane

	// agent is the configuration of an agent, with the rights of one.
	agent *rest.Config
}

var (
	shared     *cluster
	errShared  error
	sharedOnce sync.Once
)

// TestMain runs the tests in a mount namespace of their own, for the nodes that they play, or is one of their node agents.
func TestMain(m *testing.M) {
	if code, isAgent := kubelet.Main(); isAgent {
		os.Exit(code)
	}
	agent.KeepLibraryLogs()
	code := mountns.Run(m)
	if shared != nil {
		if err := shared.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "stopping the control plane:", err)
			code = 1
		}
	}
	os.Exit(code)
}

// start returns the control plane that all tests share.
func start(tb testing.TB) *cluster {
	tb.Helper()
	assets := os.Getenv("KUBEBUILDER_ASSETS")
	if assets == "" {
		tb.Fatal("KUBEBUILDER_ASSETS is not set: run make test")
	}
	sharedOnce.Do(func() { shared, errShared = newCluster(context.WithoutCancel(tb.Context()), assets) })
	if errShared != nil {
		tb.Fatal("starting the control plane:", errShared)
	}
	return shared
}

func newCluster(ctx context.Context, assets string) (*cluster, error) {
	plane, err := controlplane.Start(ctx, assets)
	c := &cluster{Plane: plane}
	if err != nil {
		return c, err
	}
	if err := plane.InstallSnapshots(assets); err != nil {
		return c, err
	}
	// The webhook's failure policy is Fail, and the agents of most tests serve none.
	if err := c.install(ctx, func(object *unstructured.Unstructured) bool { return object.GetKind() != controlplane.KindWebhook }); err != nil {
		return c, err
	}
	c.agent, err = plane.ControllerAgent()
	return c, err
}

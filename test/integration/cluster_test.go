package integration

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/test/agent"
	"github.com/albertofaria/pav/test/kubelet"
	"github.com/albertofaria/pav/test/mountns"
)

// cluster is a control plane without nodes.
type cluster struct {
	environment *envtest.Environment

	// admin may do everything; the tests act through it.
	admin client.WithWatch

	// agent is the configuration of an agent, with the rights of one.
	agent *rest.Config

	// minor is the minor version of Kubernetes, for tests of what older ones do not have.
	minor int

	manager    *exec.Cmd
	managerLog bytes.Buffer
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
		if err := shared.stop(); err != nil {
			fmt.Fprintln(os.Stderr, "stopping the control plane:", err)
			code = 1
		}
	}
	os.Exit(code)
}

// start returns the control plane that all tests share.
func start(t *testing.T) *cluster {
	t.Helper()
	assets := os.Getenv("KUBEBUILDER_ASSETS")
	if assets == "" {
		t.Fatal("KUBEBUILDER_ASSETS is not set: run make test")
	}
	sharedOnce.Do(func() { shared, errShared = newCluster(context.WithoutCancel(t.Context()), assets) })
	if errShared != nil {
		t.Fatal("starting the control plane:", errShared)
	}
	return shared
}

func newCluster(ctx context.Context, assets string) (*cluster, error) {
	c := &cluster{environment: &envtest.Environment{
		ControlPlaneStartTimeout: time.Minute,
	}}
	cfg, err := c.environment.Start()
	if err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), pavv1.AddToScheme(scheme)); err != nil {
		return c, err
	}
	admin := rest.CopyConfig(cfg)
	admin.QPS = -1
	if c.admin, err = client.NewWithWatch(admin, client.Options{Scheme: scheme}); err != nil {
		return c, err
	}
	if c.minor, err = minorVersion(cfg); err != nil {
		return c, err
	}
	if err := c.startManager(ctx, assets); err != nil {
		return c, err
	}
	// The webhook's failure policy is Fail, and the agents of most tests serve none.
	if err := c.install(ctx, func(object *unstructured.Unstructured) bool { return object.GetKind() != kindWebhook }); err != nil {
		return c, err
	}
	return c, c.addAgent()
}

func minorVersion(cfg *rest.Config) (int, error) {
	served, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return 0, err
	}
	version, err := served.ServerVersion()
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(version.Minor)
}

// startManager starts the controllers of Kubernetes that take part in the protocol.
func (c *cluster) startManager(ctx context.Context, assets string) error {
	user, err := c.environment.AddUser(envtest.User{Name: "kube-controller-manager", Groups: []string{"system:masters"}}, nil)
	if err != nil {
		return err
	}
	kubeconfig, err := user.KubeConfig()
	if err != nil {
		return err
	}
	path := filepath.Join(c.environment.ControlPlane.APIServer.CertDir, "kube-controller-manager.kubeconfig")
	if err := os.WriteFile(path, kubeconfig, 0o600); err != nil {
		return err
	}
	c.manager = exec.CommandContext(ctx, filepath.Join(assets, "kube-controller-manager"),
		"--kubeconfig="+path,
		"--leader-elect=false",
		"--secure-port=0",
		"--controllers=persistentvolume-binder-controller,persistentvolume-protection-controller,persistentvolumeclaim-protection-controller,resourcequota-controller,clusterrole-aggregation-controller",
		"--pvclaimbinder-sync-period=2s",
		"--kube-api-qps=500", "--kube-api-burst=1000", // so that it is not the one that tests wait for
	)
	c.manager.Stdout, c.manager.Stderr = &c.managerLog, &c.managerLog
	return c.manager.Start()
}

func (c *cluster) stop() error {
	var problems []error
	if c.manager != nil && c.manager.Process != nil {
		problems = append(problems, c.manager.Process.Kill())
		_ = c.manager.Wait() // says that it was killed
	}
	return errors.Join(append(problems, c.environment.Stop())...)
}

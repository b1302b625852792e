package controlplane

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	cosiv0 "github.com/albertofaria/pav/internal/api/cosi/proposal"
	cosiv1 "github.com/albertofaria/pav/internal/api/cosi/v1alpha1"
	cosiv2 "github.com/albertofaria/pav/internal/api/cosi/v1alpha2"
	obcv1 "github.com/albertofaria/pav/internal/api/objectbucket/v1alpha1"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// Namespace is the namespace of PaV's agents.
const Namespace = "pav"

const serviceAccount = "system:serviceaccount:" + Namespace + ":"

// Plane is a control plane without nodes.
type Plane struct {
	Environment *envtest.Environment

	// Admin may do everything.
	Admin client.WithWatch

	// Minor is the minor version of Kubernetes.
	Minor int

	manager    *exec.Cmd
	managerLog bytes.Buffer
}

// Start starts a control plane with the programs in the directory assets. The caller must stop it, even after an error.
func Start(ctx context.Context, assets string) (*Plane, error) {
	p := &Plane{Environment: &envtest.Environment{BinaryAssetsDirectory: assets, ControlPlaneStartTimeout: time.Minute, ControlPlaneStopTimeout: time.Minute}}
	// Off by default in Kubernetes, and without effect unless a claim names a source of another namespace.
	p.Environment.ControlPlane.GetAPIServer().Configure().Append("feature-gates", "CrossNamespaceVolumeDataSource=true")
	config, err := p.Environment.Start()
	if err != nil {
		return p, err
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), snapshotv1.AddToScheme(scheme), pavv1.AddToScheme(scheme), obcv1.AddToScheme(scheme), cosiv0.AddToScheme(scheme), cosiv1.AddToScheme(scheme), cosiv2.AddToScheme(scheme)); err != nil {
		return p, err
	}
	admin := rest.CopyConfig(config)
	admin.QPS = -1
	if p.Admin, err = client.NewWithWatch(admin, client.Options{Scheme: scheme}); err != nil {
		return p, err
	}
	if p.Minor, err = minorVersion(config); err != nil {
		return p, err
	}
	return p, p.startManager(ctx, assets)
}

func minorVersion(config *rest.Config) (int, error) {
	served, err := discovery.NewDiscoveryClientForConfig(config)
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
func (p *Plane) startManager(ctx context.Context, assets string) error {
	user, err := p.Environment.AddUser(envtest.User{Name: "kube-controller-manager", Groups: []string{"system:masters"}}, nil)
	if err != nil {
		return err
	}
	kubeconfig, err := user.KubeConfig()
	if err != nil {
		return err
	}
	path := filepath.Join(p.Environment.ControlPlane.APIServer.CertDir, "kube-controller-manager.kubeconfig")
	if err := os.WriteFile(path, kubeconfig, 0o600); err != nil {
		return err
	}
	controllers := "persistentvolume-binder-controller,persistentvolume-protection-controller,persistentvolumeclaim-protection-controller," +
		"resourcequota-controller,clusterrole-aggregation-controller"
	if p.Minor >= 34 {
		controllers += ",volumeattributesclass-protection-controller" // Others may not know it, and would not start.
	}
	p.manager = exec.CommandContext(ctx, filepath.Join(assets, "kube-controller-manager"),
		"--kubeconfig="+path,
		"--leader-elect=false",
		"--secure-port=0",
		"--controllers="+controllers,
		"--pvclaimbinder-sync-period=2s",
		"--kube-api-qps=500", "--kube-api-burst=1000", // so that it is not the one that is waited for
	)
	p.manager.Stdout, p.manager.Stderr = &p.managerLog, &p.managerLog
	return p.manager.Start()
}

// ControllerAgent makes the configuration of a controller agent: the service account that deployment.yaml gives rights to.
func (p *Plane) ControllerAgent() (*rest.Config, error) {
	user, err := p.Environment.AddUser(envtest.User{
		Name:   serviceAccount + "controller-agent",
		Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + Namespace},
	}, &rest.Config{})
	if err != nil {
		return nil, err
	}
	return user.Config(), nil
}

// NodeAgent returns the configuration of a node's agent, with its rights.
func (p *Plane) NodeAgent(node string) *rest.Config {
	config := rest.CopyConfig(p.Environment.Config)
	config.Impersonate = rest.ImpersonationConfig{
		UserName: serviceAccount + "node-agent",
		Groups:   []string{"system:authenticated", "system:serviceaccounts", "system:serviceaccounts:" + Namespace},
		Extra:    map[string][]string{"authentication.kubernetes.io/node-name": {node}},
	}
	return config
}

// Stop stops all programs.
func (p *Plane) Stop() error {
	var problems []error
	if p.manager != nil && p.manager.Process != nil {
		problems = append(problems, p.manager.Process.Kill())
		_ = p.manager.Wait() // says that it was killed
	}
	return errors.Join(append(problems, p.Environment.Stop())...)
}

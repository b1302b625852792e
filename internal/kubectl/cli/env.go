package cli

import (
	"errors"
	"fmt"
	"os"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"github.com/spf13/cobra"
	"golang.org/x/term"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cosiv1 "github.com/albertofaria/pav/internal/api/cosi/v1alpha1"
	cosiv2 "github.com/albertofaria/pav/internal/api/cosi/v1alpha2"
	objectbucketv1 "github.com/albertofaria/pav/internal/api/objectbucket/v1alpha1"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/clock"
)

// Env is the environment of a command.
type Env struct {
	genericiooptions.IOStreams

	// Config selects the cluster, namespace and user, by the same flags as kubectl.
	Config *genericclioptions.ConfigFlags

	// Version is PaV's.
	Version string
}

// Terminal reports whether Out is a terminal on which colours and progress are shown. It is false if NO_COLOR is set
// (https://no-color.org).
func (e *Env) Terminal() bool {
	file, ok := e.Out.(*os.File)
	return ok && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && term.IsTerminal(int(file.Fd()))
}

// Namespace returns the user's current namespace.
func (e *Env) Namespace() (string, error) {
	namespace, _, err := e.Config.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return "", fmt.Errorf("reading the kubeconfig: %w", err)
	}
	return namespace, nil
}

// Cluster is a connection to a cluster. Its clients read from the API server, without a cache.
type Cluster struct {
	// Objects reads, writes and watches objects, including PaV's kinds and CustomResourceDefinitions.
	Objects client.WithWatch

	// Kube reads logs of containers, which Objects cannot.
	Kube kubernetes.Interface

	// Now returns the time of the cluster, once the API server has answered: how long something takes is known from times
	// that the cluster wrote, and the clock of the user's machine may be another.
	Now func() time.Time
}

// Connect returns a connection to the user's cluster. It does not send a request.
func (e *Env) Connect() (*Cluster, error) {
	config, err := e.Config.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = 50, 100
	config.WarningHandler = rest.NoWarnings{}
	cluster := clock.New(time.Now)
	config.Wrap(cluster.Transport)
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme), snapshotv1.AddToScheme(scheme)); err != nil {
		return nil, fmt.Errorf("registering Kubernetes' kinds: %w", err)
	}
	if err := errors.Join(objectbucketv1.AddToScheme(scheme), cosiv1.AddToScheme(scheme), cosiv2.AddToScheme(scheme)); err != nil {
		return nil, fmt.Errorf("registering the kinds of buckets: %w", err)
	}
	if err := pavv1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("registering PaV's kinds: %w", err)
	}
	objects, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("connecting to the cluster: %w", err)
	}
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to the cluster: %w", err)
	}
	return &Cluster{Objects: objects, Kube: kube, Now: cluster.Now}, nil
}

// Command returns one command of "kubectl pav".
type Command func(env *Env) *cobra.Command

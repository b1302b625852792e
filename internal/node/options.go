package node

import (
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"

	"github.com/albertofaria/pav/internal/observability"
	"github.com/albertofaria/pav/internal/template"
	"github.com/albertofaria/pav/internal/workflow"
)

// Options are the settings of the node agent.
type Options struct {
	// NodeName is the name of the agent's Node.
	NodeName string

	// KubeletDir is the kubelet's directory, as a path of the host.
	KubeletDir string

	// MountNamespace is the file of the host's mount namespace.
	MountNamespace string

	// MetricsAddress and ProbeAddress are the addresses of metrics and health probes; "0" disables them.
	MetricsAddress, ProbeAddress string

	// ProfilingAddress is the address of profiles; "" disables them.
	ProfilingAddress string

	// QPS and Burst limit the requests to the API server. They protect it from a mistake: how much it takes, it judges
	// itself, by the FlowSchema of the agents.
	QPS   float32
	Burst int

	// OrphanGrace is how long a stage that no pod uses is left to kubelet, before the agent unstages it.
	OrphanGrace time.Duration

	// Templates limits the resources for evaluating a PavProvisioner's fields.
	Templates template.Limits

	// PodDefaults are those of all workflow pods.
	PodDefaults workflow.Defaults

	// Version is the version of the agent, which its drivers report. No flag sets it.
	Version string
}

// DefaultOptions returns the settings of an agent in a pod.
func DefaultOptions() Options {
	return Options{
		NodeName:       os.Getenv("NODE_NAME"),
		KubeletDir:     "/var/lib/kubelet",
		MountNamespace: "/proc/1/ns/mnt",
		MetricsAddress: ":8443",
		ProbeAddress:   ":8081",
		QPS:            200,
		Burst:          400,
		OrphanGrace:    5 * time.Minute,
		Templates:      template.DefaultLimits(),
	}
}

// AddFlags adds the options to a flag set, with their current values as defaults.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.NodeName, "node-name", o.NodeName, "name of the Node that the agent runs on (default: $NODE_NAME)")
	flags.StringVar(&o.KubeletDir, "kubelet-dir", o.KubeletDir, "the kubelet's directory on the host")
	flags.StringVar(&o.MountNamespace, "mount-namespace", o.MountNamespace, "the host's mount namespace")
	flags.StringVar(&o.MetricsAddress, "metrics-address", o.MetricsAddress, "address at which metrics are served, over HTTPS, to clients that may get /metrics; 0 to serve none")
	flags.StringVar(&o.ProbeAddress, "probe-address", o.ProbeAddress, "address at which /healthz and /readyz are served; 0 to serve none")
	flags.StringVar(&o.ProfilingAddress, "profiling-address", o.ProfilingAddress, observability.ProfilingHelp)
	flags.Float32Var(&o.QPS, "kube-api-qps", o.QPS, "requests per second to the API server")
	flags.IntVar(&o.Burst, "kube-api-burst", o.Burst, "burst of requests to the API server")
	flags.DurationVar(&o.OrphanGrace, "orphan-grace", o.OrphanGrace, "how long a volume stays staged that no pod uses and that kubelet may have forgotten")
	flags.Var(&o.PodDefaults, "pod-defaults", workflow.DefaultsHelp)
	o.Templates.AddFlags(flags)
}

// Validate returns all errors in the options.
func (o *Options) Validate() error {
	var errs []error
	if o.NodeName == "" {
		errs = append(errs, errors.New("--node-name (or $NODE_NAME): must name the agent's node"))
	}
	if !filepath.IsAbs(o.KubeletDir) || filepath.Clean(o.KubeletDir) != o.KubeletDir {
		errs = append(errs, errors.New("--kubelet-dir: must be an absolute path without a trailing slash"))
	}
	if o.QPS <= 0 || o.Burst < 1 {
		errs = append(errs, errors.New("--kube-api-qps and --kube-api-burst: must be above 0"))
	}
	if o.OrphanGrace <= 0 {
		errs = append(errs, errors.New("--orphan-grace: must be above 0"))
	}
	return errors.Join(append(errs, observability.ValidateProfiling(o.ProfilingAddress), o.Templates.Validate())...)
}

package controller

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/albertofaria/pav/internal/admission"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/queue"
	"github.com/albertofaria/pav/internal/observability"
	"github.com/albertofaria/pav/internal/template"
	"github.com/albertofaria/pav/internal/workflow"
)

// Options are the settings of the controller agent.
type Options struct {
	// Namespace is the agent's own namespace, which has the leader's Lease.
	Namespace string

	// LeaderElect says whether to wait for leadership before reconciling. Without it, no other controller agent may
	// run.
	LeaderElect bool

	// LeaseDuration is how long a leader that does not renew its Lease stays the leader. The other times follow from
	// it.
	LeaseDuration time.Duration

	// MetricsAddress and ProbeAddress are the addresses of metrics and health probes; "0" disables them.
	MetricsAddress, ProbeAddress string

	// ProfilingAddress is the address of profiles; "" disables them.
	ProfilingAddress string

	// WebhookAddress is the address of the webhook that checks PavProvisioners; "0" disables it.
	WebhookAddress string

	// WebhookClientCA is a file with the authorities of API servers' client certificates; "" serves every client.
	WebhookClientCA string

	// Certificates has the validity of the webhook's certificates. No flag sets it.
	Certificates admission.Lifetimes

	// Workers is how many objects of a kind are reconciled at once.
	Workers int

	// QPS and Burst limit the requests to the API server, for each kind of object. They protect it from a mistake: how
	// much it takes, it judges itself, by the FlowSchema of the agents.
	QPS   float32
	Burst int

	// Pods limits how many validation, creation, expansion, modification and deletion pods run at once.
	Pods queue.Limits

	// Templates limits the resources for evaluating a PavProvisioner's fields.
	Templates template.Limits

	// PodDefaults are those of all workflow pods.
	PodDefaults workflow.Defaults

	// StartupTaint says whether to remove the taint pavv1.NotReadyTaint of nodes on which all drivers are registered.
	StartupTaint bool

	// CrossNamespaceSources says whether claims may name sources of other namespaces, where a ReferenceGrant lets them.
	CrossNamespaceSources bool

	// Version is the agent's own. No flag sets it.
	Version string
}

// DefaultOptions returns the settings of an agent in a pod.
func DefaultOptions() Options {
	return Options{
		Namespace:      os.Getenv("POD_NAMESPACE"),
		LeaderElect:    true,
		LeaseDuration:  15 * time.Second,
		MetricsAddress: ":8443",
		ProbeAddress:   ":8081",
		WebhookAddress: ":9443",
		Certificates:   admission.DefaultLifetimes(),
		Workers:        20,
		QPS:            1000,
		Burst:          2000,
		Pods:           queue.Limits{Overall: 100, PerProvisioner: 40},
		Templates:      template.DefaultLimits(),
	}
}

// AddFlags adds the options to a flag set, with their current values as defaults.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Namespace, "namespace", o.Namespace, "the agent's own namespace (default: $POD_NAMESPACE)")
	flags.BoolVar(&o.LeaderElect, "leader-elect", o.LeaderElect, "wait for leadership before acting; required if more than one replica runs")
	flags.DurationVar(&o.LeaseDuration, "lease-duration", o.LeaseDuration, "how long a leader that does not renew its lease remains the leader; at least 2s")
	flags.StringVar(&o.MetricsAddress, "metrics-address", o.MetricsAddress, "address at which metrics are served, over HTTPS, to clients that may get /metrics; 0 to serve none")
	flags.StringVar(&o.ProbeAddress, "probe-address", o.ProbeAddress, "address at which /healthz and /readyz are served; 0 to serve none")
	flags.StringVar(&o.ProfilingAddress, "profiling-address", o.ProfilingAddress, observability.ProfilingHelp)
	flags.StringVar(&o.WebhookAddress, "webhook-address", o.WebhookAddress, "where to serve the webhook that judges PavProvisioners, with the certificate of the Secret "+admission.SecretName+"; 0 for nowhere")
	flags.StringVar(&o.WebhookClientCA, "webhook-client-ca", o.WebhookClientCA, "file with the authorities of the client certificates of API servers; if it is set, the webhook serves no other clients")
	flags.IntVar(&o.Workers, "workers", o.Workers, "how many objects of a kind are reconciled at once")
	flags.Float32Var(&o.QPS, "kube-api-qps", o.QPS, "requests per second to the API server, for each kind of object")
	flags.IntVar(&o.Burst, "kube-api-burst", o.Burst, "burst of requests to the API server, for each kind of object")
	flags.IntVar(&o.Pods.Overall, "max-pods", o.Pods.Overall, "how many validation, creation, expansion, modification and deletion pods run at once; pods that cannot start do not count, but there are at most three times as many pods in all, and one more for each PavProvisioner")
	flags.IntVar(&o.Pods.PerProvisioner, "max-pods-per-provisioner", o.Pods.PerProvisioner, "how many of these run at once for one PavProvisioner; if as many of its pods cannot start, it gets no more, except one for each namespace without any")
	flags.BoolVar(&o.StartupTaint, "startup-taint", o.StartupTaint, "remove the taint "+pavv1.NotReadyTaint+" from nodes once the drivers of PaV are registered there; needs the right to patch nodes")
	flags.BoolVar(&o.CrossNamespaceSources, "cross-namespace-sources", o.CrossNamespaceSources, "create volumes from snapshots and volumes of other namespaces, where a ReferenceGrant of that namespace allows it; needs the right to list and watch ReferenceGrants, and Kubernetes' feature gate CrossNamespaceVolumeDataSource")
	flags.Var(&o.PodDefaults, "pod-defaults", workflow.DefaultsHelp)
	o.Templates.AddFlags(flags)
}

// Validate returns all errors in the options.
func (o *Options) Validate() error {
	var problems []error
	if o.LeaderElect && len(validation.IsDNS1123Label(o.Namespace)) > 0 {
		problems = append(problems, fmt.Errorf("--namespace (or $POD_NAMESPACE): must name the agent's namespace, not %q", o.Namespace))
	}
	if problem := o.checkWebhook(); problem != nil {
		problems = append(problems, problem)
	}
	if o.LeaseDuration < 2*time.Second {
		problems = append(problems, fmt.Errorf("--lease-duration: must be 2s or more, not %s", o.LeaseDuration))
	}
	if o.Workers < 1 {
		problems = append(problems, fmt.Errorf("--workers: must be 1 or more, not %d", o.Workers))
	}
	if o.QPS <= 0 {
		problems = append(problems, fmt.Errorf("--kube-api-qps: must be above 0, not %g", o.QPS))
	}
	if o.Burst < 1 {
		problems = append(problems, fmt.Errorf("--kube-api-burst: must be 1 or more, not %d", o.Burst))
	}
	if o.Pods.Overall < 1 || o.Pods.PerProvisioner < 1 {
		problems = append(problems, errors.New("--max-pods and --max-pods-per-provisioner: must be 1 or more"))
	}
	return errors.Join(append(problems, observability.ValidateProfiling(o.ProfilingAddress), o.Templates.Validate())...)
}

// serves reports whether the agent serves the webhook.
func (o *Options) serves() bool {
	return o.WebhookAddress != "0"
}

func (o *Options) checkWebhook() error {
	if !o.serves() {
		return nil
	}
	if err := admission.CheckAddress(o.WebhookAddress); err != nil {
		return fmt.Errorf("--webhook-address: %w, or 0 for nowhere", err)
	}
	if !o.LeaderElect && len(validation.IsDNS1123Label(o.Namespace)) > 0 {
		return fmt.Errorf("--namespace (or $POD_NAMESPACE): must name the namespace of the webhook's Secret, not %q", o.Namespace)
	}
	return nil
}

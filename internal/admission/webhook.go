package admission

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/albertofaria/pav/internal/definition"
	"github.com/albertofaria/pav/internal/reconcile"
	"github.com/albertofaria/pav/internal/template"
	"github.com/albertofaria/pav/internal/workflow"
)

// path is where the webhook is served; deployment.yaml has it too.
const path = "/validate-pavprovisioner"

// Webhook is the webhook of a controller agent.
type Webhook struct {
	// Definitions checks definitions.
	Definitions *definition.Checker

	// Templates evaluates definitions, to judge the pods of agents.
	Templates *template.Evaluator

	// PodDefaults are those of all workflow pods.
	PodDefaults workflow.Defaults

	// Namespace is the agent's own.
	Namespace string

	// Address is where to serve, as host:port.
	Address string

	// ClientCA is a file with the authorities of API servers' client certificates. If it is set, nobody without
	// such a certificate is served.
	ClientCA string

	// Lifetimes are those of the certificates.
	Lifetimes Lifetimes

	// Now returns the time of the cluster, by which API servers judge certificates.
	Now func() time.Time
}

// CacheOptions say what a manager's cache is to hold for the webhook: one Secret and one configuration.
func CacheOptions(namespace string) map[client.Object]cache.ByObject {
	named := func(name string) fields.Selector { return fields.OneTermEqualSelector(metav1.ObjectNameField, name) }
	return map[client.Object]cache.ByObject{
		&corev1.Secret{}: {Namespaces: map[string]cache.Config{namespace: {FieldSelector: named(SecretName)}}},
		&admissionregistrationv1.ValidatingWebhookConfiguration{}: {Field: named(ConfigurationName)},
	}
}

// Register adds the webhook's server and certificate to a manager, whose cache has CacheOptions, and whose
// readiness waits until API servers can trust the server. It serves whether or not the replica leads.
func (w *Webhook) Register(ctx context.Context, mgr ctrl.Manager) error {
	// The watches begin with the cache, and not with the first request.
	for _, object := range []client.Object{&corev1.Secret{}, &admissionregistrationv1.ValidatingWebhookConfiguration{}} {
		if _, err := mgr.GetCache().GetInformer(ctx, object, cache.BlockUntilSynced(false)); err != nil {
			return fmt.Errorf("watching %T: %w", object, err)
		}
	}
	certificates := &certificates{reader: mgr.GetCache(), namespace: w.Namespace}
	server, err := newServer(w.Address, w.ClientCA, certificates.forHandshake)
	if err != nil {
		return err
	}
	direct, err := client.New(mgr.GetConfig(), client.Options{Scheme: mgr.GetScheme(), HTTPClient: mgr.GetHTTPClient()})
	if err != nil {
		return fmt.Errorf("making the client that makes dry runs: %w", err)
	}
	server.handle(path, &admission.Webhook{Handler: newHandler(w.Definitions, w.PodDefaults, client.NewDryRunClient(direct))})
	pods := &PodHandler{Client: direct, Templates: w.Templates, PodDefaults: w.PodDefaults}
	server.handle(podsPath, &admission.Webhook{Handler: pods})
	server.handle(controllerPodsPath, &admission.Webhook{Handler: &ControllerPodHandler{Client: direct, Templates: w.Templates, PodDefaults: w.PodDefaults}})
	if err := mgr.Add(server); err != nil {
		return fmt.Errorf("adding the webhook's server: %w", err)
	}
	ready := func(request *http.Request) error {
		if err := certificates.ready(request); err != nil {
			return err
		}
		return server.listens(request) // it makes a handshake
	}
	if err := mgr.AddReadyzCheck("webhook", ready); err != nil {
		return fmt.Errorf("adding the webhook's readiness check: %w", err)
	}
	if err := (&Recorder{Cache: mgr.GetClient(), Pods: pods}).Register(mgr, controller.Options{MaxConcurrentReconciles: 1, RateLimiter: reconcile.Backoff()}); err != nil {
		return fmt.Errorf("registering the writer of records: %w", err)
	}
	renewer := &renewer{
		client: mgr.GetClient(), issuer: newIssuer(w.Namespace, w.Lifetimes), now: w.Now,
		key: types.NamespacedName{Namespace: w.Namespace, Name: SecretName},
	}
	return renewer.register(mgr)
}

// CheckAddress says what is wrong with an address to serve at.
func CheckAddress(address string) error {
	_, number, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("must be HOST:PORT or :PORT: %w", err)
	}
	if port, err := strconv.Atoi(number); err != nil || port < 1 || port > 65535 {
		return fmt.Errorf("%q is not a port from 1 to 65535", number)
	}
	return nil
}

package admission

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"strconv"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/albertofaria/pav/internal/definition"
)

// path is where the webhook is served; deployment.yaml has it too.
const path = "/validate-pavprovisioner"

// Webhook is the webhook of a controller agent.
type Webhook struct {
	// Definitions checks definitions.
	Definitions *definition.Checker

	// Namespace is the agent's own.
	Namespace string

	// Address is where to serve, as host:port.
	Address string

	// Lifetimes are those of the certificates.
	Lifetimes Lifetimes
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
	host, port, err := splitAddress(w.Address)
	if err != nil {
		return err
	}
	// The watches begin with the cache, and not with the first request.
	for _, object := range []client.Object{&corev1.Secret{}, &admissionregistrationv1.ValidatingWebhookConfiguration{}} {
		if _, err := mgr.GetCache().GetInformer(ctx, object, cache.BlockUntilSynced(false)); err != nil {
			return fmt.Errorf("watching %T: %w", object, err)
		}
	}
	certificates := &certificates{reader: mgr.GetCache(), namespace: w.Namespace}
	server := webhook.NewServer(webhook.Options{Host: host, Port: port, TLSOpts: []func(*tls.Config){func(config *tls.Config) {
		config.MinVersion, config.GetCertificate = tls.VersionTLS12, certificates.forHandshake
	}}})
	direct, err := client.New(mgr.GetConfig(), client.Options{Scheme: mgr.GetScheme(), HTTPClient: mgr.GetHTTPClient()})
	if err != nil {
		return fmt.Errorf("making the client that makes dry runs: %w", err)
	}
	handler := &Handler{Definitions: w.Definitions, Client: client.NewDryRunClient(direct)}
	server.Register(path, &admission.Webhook{Handler: handler})
	if err := mgr.Add(server); err != nil {
		return fmt.Errorf("adding the webhook's server: %w", err)
	}
	listens := server.StartedChecker()
	ready := func(request *http.Request) error {
		if err := certificates.ready(request); err != nil {
			return err
		}
		return listens(request) // it makes a handshake
	}
	if err := mgr.AddReadyzCheck("webhook", ready); err != nil {
		return fmt.Errorf("adding the webhook's readiness check: %w", err)
	}
	renewer := &renewer{
		client: mgr.GetClient(), issuer: newIssuer(w.Namespace, w.Lifetimes),
		key: types.NamespacedName{Namespace: w.Namespace, Name: SecretName},
	}
	return renewer.register(mgr)
}

// splitAddress returns the host and the port of an address.
func splitAddress(address string) (host string, port int, err error) {
	host, number, err := net.SplitHostPort(address)
	if err != nil {
		return "", 0, fmt.Errorf("must be HOST:PORT or :PORT: %w", err)
	}
	port, err = strconv.Atoi(number)
	if err != nil || port < 1 || port > 65535 {
		return "", 0, fmt.Errorf("%q is no port from 1 to 65535", number)
	}
	return host, port, nil
}

// CheckAddress says what is wrong with an address to serve at.
func CheckAddress(address string) error {
	_, _, err := splitAddress(address)
	return err
}

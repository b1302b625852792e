package integration

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/albertofaria/pav/internal/admission"
	"github.com/albertofaria/pav/internal/controller"
	"github.com/albertofaria/pav/test/agent"
	"github.com/albertofaria/pav/test/controlplane"
)

// webhook is the webhook of deployment.yaml, whose Service leads to this process.
type webhook struct {
	cluster *cluster
	port    int32

	mu       sync.Mutex
	replicas []*replica
}

// replica is an agent that serves the webhook.
type replica struct {
	*agent.Agent

	address, probes string
}

// serveWebhook installs the webhook for a test, with no replica that serves it.
func serveWebhook(t *testing.T, c *cluster) *webhook {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	w := &webhook{cluster: c, port: portOf(t, listener.Addr().String())}
	go w.forward(lasting(t), listener)

	objects, err := manifests()
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		if object.GetKind() == controlplane.KindWebhook {
			w.install(t, object)
		}
	}
	return w
}

// install makes the API server reach the Service here, by its own name and so with the certificate's.
func (w *webhook) install(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, configuration); err != nil {
		t.Fatal(err)
	}
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: admission.ServiceName}}
	if err := w.cluster.Admin.Delete(t.Context(), service); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	gone(t, w.cluster, service)
	mustCreate(t, w.cluster, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: admission.ServiceName},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"},
	})
	for i := range configuration.Webhooks {
		configuration.Webhooks[i].ClientConfig.Service.Port = new(w.port)
	}
	mustCreate(t, w.cluster, configuration)
	t.Cleanup(func() {
		ctx := lasting(t)
		if err := w.cluster.Admin.Patch(ctx, secret(), client.RawPatch(types.MergePatchType, []byte(`{"data":null}`))); err != nil {
			t.Error(err)
		}
		if err := w.cluster.Admin.Delete(ctx, configuration); err != nil {
			t.Error(err)
		}
		w.waitForce(t, false)
	})
	w.waitForce(t, true)
}

// waitForce waits until the API server asks the webhook, or does not any more.
func (w *webhook) waitForce(t *testing.T, wanted bool) {
	t.Helper()
	eventually(t, fmt.Sprintf("the webhook is asked: %t", wanted), func(ctx context.Context) (bool, string) {
		err := w.try(ctx, provisionerOf("probe")) // no replica runs
		return (err != nil) == wanted, fmt.Sprint(err)
	})
}

func secret() *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: admission.SecretName}}
}

// launch starts a replica, and waits until it is ready.
func (w *webhook) launch(t *testing.T, lifetimes admission.Lifetimes, changes ...func(*controller.Options)) *replica {
	t.Helper()
	o := agent.Options(namespace)
	o.LeaderElect, o.LeaseDuration = true, 30*time.Second // On a busy machine, a short one is lost, and the agent ends.
	o.Certificates = lifetimes
	o.WebhookAddress, o.ProbeAddress = freeAddress(t), freeAddress(t)
	for _, change := range changes {
		change(&o)
	}
	r := &replica{Agent: agent.Launch(t, w.cluster.agent, o, &agent.Line{}), address: o.WebhookAddress, probes: o.ProbeAddress}
	t.Cleanup(func() { r.Stop(t) })
	w.mu.Lock()
	w.replicas = append(w.replicas, r)
	w.mu.Unlock()
	eventually(t, "the replica is ready", func(ctx context.Context) (bool, string) { return r.ready(ctx) })
	return r
}

func (r *replica) ready(ctx context.Context) (ready bool, answer string) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+r.probes+"/readyz?verbose=1", http.NoBody)
	if err != nil {
		return false, err.Error()
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false, err.Error()
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	return response.StatusCode == http.StatusOK, fmt.Sprintf("%s %v", body, err)
}

// certificate returns the certificate that a replica serves, as API servers see it.
func (r *replica) certificate(ctx context.Context, bundle []byte) (*x509.Certificate, error) {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	dialer := tls.Dialer{Config: &tls.Config{RootCAs: roots, ServerName: "webhook.pav.svc", MinVersion: tls.VersionTLS12}}
	connection, err := dialer.DialContext(ctx, "tcp", r.address)
	if err != nil {
		return nil, err
	}
	defer func() { _ = connection.Close() }()
	if secure, ok := connection.(*tls.Conn); ok {
		return secure.ConnectionState().PeerCertificates[0], nil
	}
	return nil, errors.New("the connection is not secure")
}

// forward plays kube-proxy: it connects anyone who calls to a replica that listens.
func (w *webhook) forward(ctx context.Context, listener net.Listener) {
	for {
		caller, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer func() { _ = caller.Close() }()
			server := w.connect(ctx)
			if server == nil {
				return
			}
			defer func() { _ = server.Close() }()
			go func() { _, _ = io.Copy(server, caller); _ = server.Close() }()
			_, _ = io.Copy(caller, server)
		}()
	}
}

func (w *webhook) connect(ctx context.Context) net.Conn {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.replicas {
		if connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", r.address); err == nil {
			return connection
		}
	}
	return nil
}

// try asks the API server whether it would create an object.
func (w *webhook) try(ctx context.Context, object client.Object) error {
	copied, _ := object.DeepCopyObject().(client.Object)
	return w.cluster.Admin.Create(ctx, copied, client.DryRunAll)
}

// freeAddress returns an address that nobody listens at.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

func portOf(t *testing.T, address string) int32 {
	t.Helper()
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	number, err := strconv.ParseInt(port, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	return int32(number)
}

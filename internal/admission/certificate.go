package admission

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Names of the webhook's objects in deployment.yaml.
const (
	// ConfigurationName is the name of the ValidatingWebhookConfiguration.
	ConfigurationName = "pav-provisioners"

	// SecretName is the name of the Secret with the certificate, in the agent's own namespace.
	SecretName = "webhook-certificate"

	// ServiceName is the name of the Service, in the agent's own namespace.
	ServiceName = "webhook"
)

// Keys of the Secret, as in cert-controller.
const (
	keyCA         = "ca.crt"
	keyCAKey      = "ca.key"
	keyServer     = "tls.crt"
	keyServerPair = "tls.key"
)

// dnsName returns the DNS name with which API servers call the webhook.
func dnsName(namespace string) string {
	return ServiceName + "." + namespace + ".svc"
}

// certificates serves the current certificate of the Secret at each handshake.
type certificates struct {
	// Reader reads the cache: a handshake must not wait for the API server.
	reader    client.Reader
	namespace string

	mu      sync.Mutex
	version string // of the Secret from which pair was parsed
	pair    *tls.Certificate
}

// current returns the certificate of the Secret.
func (c *certificates) current(ctx context.Context) (*tls.Certificate, error) {
	secret := &corev1.Secret{}
	if err := c.reader.Get(ctx, client.ObjectKey{Namespace: c.namespace, Name: SecretName}, secret); apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("the Secret %s/%s is missing; run: kubectl apply -f deployment.yaml", c.namespace, SecretName)
	} else if err != nil {
		return nil, fmt.Errorf("reading the Secret %s/%s: %w", c.namespace, SecretName, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pair != nil && c.version == secret.ResourceVersion {
		return c.pair, nil
	}
	if len(secret.Data[keyServer]) == 0 {
		return nil, errors.New("no replica has made a certificate yet")
	}
	pair, err := tls.X509KeyPair(secret.Data[keyServer], secret.Data[keyServerPair])
	if err != nil {
		return nil, fmt.Errorf("reading the certificate of the Secret %s/%s: %w", c.namespace, SecretName, err)
	}
	c.pair, c.version = &pair, secret.ResourceVersion
	return c.pair, nil
}

// forHandshake is a tls.Config's GetCertificate.
func (c *certificates) forHandshake(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	return c.current(hello.Context())
}

// ready is a healthz.Checker: it returns why API servers could not trust this replica, if so.
func (c *certificates) ready(request *http.Request) error {
	pair, err := c.current(request.Context())
	if err != nil {
		return err
	}
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	if err := c.reader.Get(request.Context(), client.ObjectKey{Name: ConfigurationName}, configuration); apierrors.IsNotFound(err) {
		return fmt.Errorf("the ValidatingWebhookConfiguration %s is missing; run: kubectl apply -f deployment.yaml", ConfigurationName)
	} else if err != nil {
		return fmt.Errorf("reading the ValidatingWebhookConfiguration %s: %w", ConfigurationName, err)
	}
	for i := range configuration.Webhooks {
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(configuration.Webhooks[i].ClientConfig.CABundle)
		if _, err := pair.Leaf.Verify(x509.VerifyOptions{DNSName: dnsName(c.namespace), Roots: roots}); err != nil {
			return fmt.Errorf("the ValidatingWebhookConfiguration %s has another authority than the certificate: %w", ConfigurationName, err)
		}
	}
	return nil
}

// parse returns the first certificate of a PEM text, or nil.
func parse(text []byte) *x509.Certificate {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil
	}
	return certificate
}

// trusts reports whether a bundle of PEM texts contains a certificate.
func trusts(bundle, certificate []byte) bool {
	return len(certificate) > 0 && bytes.Contains(bundle, bytes.TrimSpace(certificate))
}

// expired reports whether a certificate has expired, or cannot be parsed.
func expired(text []byte, now time.Time) bool {
	certificate := parse(text)
	return certificate == nil || now.After(certificate.NotAfter)
}

package admission

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// certified returns a certificate for a usage, and the path of a file with its certificate authority.
func certified(t *testing.T, usage x509.ExtKeyUsage) (certificate tls.Certificate, authority string) {
	t.Helper()
	issuer := newIssuer("pav", DefaultLifetimes())
	issuer.rotator.ExtKeyUsages = &[]x509.ExtKeyUsage{usage}
	made, err := issuer.authority(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if certificate, err = tls.X509KeyPair(made[keyServer], made[keyServerPair]); err != nil {
		t.Fatal(err)
	}
	authority = filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(authority, made[keyCA], 0o600); err != nil {
		t.Fatal(err)
	}
	return certificate, authority
}

// freeAddress returns an address at which nothing listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

// If a client CA is configured, the server answers only clients with a certificate of that CA.
func TestServer_WithAClientCA_ServesOnlyItsClients(t *testing.T) {
	certificate, authority := certified(t, x509.ExtKeyUsageClientAuth)
	stranger, _ := certified(t, x509.ExtKeyUsageClientAuth)
	address := freeAddress(t)
	s, err := newServer(address, authority, func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &certificate, nil })
	if err != nil {
		t.Fatal(err)
	}
	s.mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Start(ctx) }()
	<-s.started
	for name, mine := range map[string][]tls.Certificate{"without a certificate": nil, "with another authority's": {stranger}} {
		if code, err := ask(ctx, address, mine); err == nil {
			t.Errorf("a client %s is answered: %d", name, code)
		}
	}
	if code, err := ask(ctx, address, []tls.Certificate{certificate}); err != nil || code != http.StatusTeapot {
		t.Errorf("a client with a certificate is answered: %d, %v", code, err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func ask(ctx context.Context, address string, mine []tls.Certificate) (int, error) {
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true, Certificates: mine}}}
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address+"/", http.NoBody)
	if err != nil {
		return 0, err
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	return response.StatusCode, response.Body.Close()
}

func TestServer_RefusesAFileWithoutAnAuthority(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{empty, empty + ".missing"} {
		if _, err := newServer(":9443", file, func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return nil, x509.ErrUnsupportedAlgorithm }); err == nil {
			t.Errorf("%s is taken", file)
		}
	}
}

package admission

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"
)

const (
	// maxConnections and maxConnectionsEach are how many connections are open at once, in all and from one
	// address. Each has one request at a time. API servers keep up to 25 that are idle.
	maxConnections, maxConnectionsEach = 512, 128

	// shutdownWithin is how long requests have to be answered when the agent ends.
	shutdownWithin = 15 * time.Second
)

// server serves webhooks. Other than controller-runtime's, it bounds what its clients can make it use: they
// need not be API servers.
type server struct {
	address   string
	config    *tls.Config
	mux       *http.ServeMux
	all, each int           // connections
	started   chan struct{} // closed once it listens
}

// newServer returns a server with the certificates. If clientCA names a file, only clients with a certificate of
// the authorities in it are served.
func newServer(address, clientCA string, certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)) (*server, error) {
	// HTTP/1.1 only: the number of connections bounds that of requests.
	config := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}, GetCertificate: certificate}
	if clientCA != "" {
		authorities, err := os.ReadFile(clientCA)
		if err != nil {
			return nil, fmt.Errorf("reading the authority of clients: %w", err)
		}
		config.ClientCAs, config.ClientAuth = x509.NewCertPool(), tls.RequireAndVerifyClientCert
		if !config.ClientCAs.AppendCertsFromPEM(authorities) {
			return nil, fmt.Errorf("reading the authority of clients: %s has no certificate", clientCA)
		}
	}
	return &server{
		address: address, config: config, mux: http.NewServeMux(),
		all: maxConnections, each: maxConnectionsEach, started: make(chan struct{}),
	}, nil
}

// handle serves a webhook at a path. What one webhook's requests use is not taken from another's.
func (s *server) handle(path string, handler http.Handler) {
	s.mux.Handle(path, newGate(handler))
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (*server) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable.
func (s *server) Start(ctx context.Context) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.address)
	if err != nil {
		return fmt.Errorf("serving the webhook: %w", err)
	}
	srv := &http.Server{
		Handler:           s.mux,
		ReadHeaderTimeout: 3 * time.Second, // and for the handshake
		ReadTimeout:       maxWait + readWithin + 3*time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       90 * time.Second, // as long as API servers keep connections
		MaxHeaderBytes:    16 << 10,
		ConnState:         noteIdle,
	}
	close(s.started)
	ended := make(chan error, 1)
	go func() {
		<-ctx.Done()
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownWithin)
		defer cancel()
		ended <- srv.Shutdown(last)
	}()
	bounded := newBoundedListener(listener, s.all, s.each)
	if err := srv.Serve(tls.NewListener(bounded, s.config)); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving the webhook: %w", err)
	}
	if err := <-ended; err != nil {
		return fmt.Errorf("ending the webhook's server: %w", err)
	}
	return nil
}

// listens reports why the server cannot be called.
func (s *server) listens(request *http.Request) error {
	select {
	case <-s.started:
	default:
		return errors.New("the webhook's server has not started")
	}
	dialer := tls.Dialer{NetDialer: &net.Dialer{Timeout: 3 * time.Second}, Config: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // its own
	connection, err := dialer.DialContext(request.Context(), "tcp", s.address)
	if err != nil {
		return fmt.Errorf("the webhook's server cannot be reached: %w", err)
	}
	return connection.Close()
}

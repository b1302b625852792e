package e2e

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// The API server, and the address of the faulty line to it on the first node's network: the API server's
// certificate is good for both.
const (
	apiServer  = "https://10.88.0.1:6443"
	lineHost   = "10.88.0.1"
	linePort   = "7443"
	oneInSoFew = 5 // requests fails while the line is faulty
)

// faultyLine is a way to the API server on which requests fail, half of them after they took effect.
type faultyLine struct {
	faulty           atomic.Bool
	requests, failed atomic.Int64
}

// startFaultyLine has all agents use a faulty line for the rest of the test.
func startFaultyLine(t *testing.T) *faultyLine {
	t.Helper()
	keys := filepath.Join(os.Getenv("PAV_CLUSTER_STATE"), "pki")
	certificate, err := tls.LoadX509KeyPair(filepath.Join(keys, "kube-apiserver.crt"), filepath.Join(keys, "kube-apiserver.key"))
	must(t, err)
	target, err := url.Parse(apiServer)
	must(t, err)
	line := &faultyLine{}
	server := &http.Server{
		Addr: lineHost + ":" + linePort, ReadHeaderTimeout: time.Minute, TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12},
		Handler: &httputil.ReverseProxy{
			Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
			FlushInterval: -1, // watches
			Transport:     line.to(t),
			ErrorHandler:  func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
			ErrorLog:      log.New(io.Discard, "", 0),
		},
		ErrorLog: log.New(io.Discard, "", 0),
	}
	ended := make(chan error, 1)
	go func() { ended <- server.ListenAndServeTLS("", "") }()
	t.Cleanup(func() {
		must(t, server.Close())
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	for _, workload := range []string{"deployment/controller-agent", "daemonset/node-agent"} {
		t.Cleanup(func() { redirect(t, workload, "KUBERNETES_SERVICE_HOST-", "KUBERNETES_SERVICE_PORT-") })
		redirect(t, workload, "KUBERNETES_SERVICE_HOST="+lineHost, "KUBERNETES_SERVICE_PORT="+linePort)
	}
	waitAgents(t, "")
	line.faulty.Store(true)
	return line
}

// redirect sets variables of an agent's container, and waits until its pods have them.
func redirect(t *testing.T, workload string, variables ...string) {
	t.Helper()
	ctx, cancel := cleanupContext(t)
	defer cancel()
	if _, err := kubectl(ctx, "", append([]string{"-n", "pav", "set", "env", workload}, variables...)...); err != nil {
		t.Error(err)
		return
	}
	if _, err := kubectl(ctx, "", "-n", "pav", "rollout", "status", workload); err != nil {
		t.Error(err)
	}
}

// to returns the way from the line to the API server.
func (l *faultyLine) to(t *testing.T) http.RoundTripper {
	t.Helper()
	next, err := rest.TransportFor(rest.AnonymousClientConfig(restConfig(t)))
	must(t, err)
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		l.requests.Add(1)
		fails, late := l.faulty.Load() && rand.IntN(oneInSoFew) == 0, rand.IntN(2) == 0 //nolint:gosec // Nothing is kept secret by it.
		if fails && !late {
			l.failed.Add(1)
			return nil, errLine
		}
		response, err := next.RoundTrip(request)
		if err == nil && fails {
			l.failed.Add(1)
			return nil, errors.Join(errLine, response.Body.Close())
		}
		return response, err
	})
}

var errLine = errors.New("the line fails")

// wantFaults objects unless the line's faults struck, and all agents used it.
func (l *faultyLine) wantFaults(context.Context) error {
	requests, failed := l.requests.Load(), l.failed.Load()
	if requests < 100 || failed*2*oneInSoFew < requests {
		return fmt.Errorf("of %d requests on the line, %d failed", requests, failed)
	}
	return nil
}

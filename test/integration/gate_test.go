package integration

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"

	"k8s.io/client-go/rest"
)

// gated returns a configuration whose requests go through this process. Before each request is passed on to the API server,
// pass is called, which may block: so a test decides what happens first.
func gated(t *testing.T, config *rest.Config, pass func(*http.Request)) *rest.Config {
	t.Helper()
	return relayed(t, config, pass, func(*http.Response) error { return nil })
}

// relayed is gated that can also change the answers.
func relayed(t *testing.T, config *rest.Config, pass func(*http.Request), change func(*http.Response) error) *rest.Config {
	t.Helper()
	own := rest.CopyConfig(config)
	own.Impersonate = rest.ImpersonationConfig{} // The requests say whom they are from.
	transport, err := rest.TransportFor(own)
	if err != nil {
		t.Fatal(err)
	}
	server, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{
		Rewrite:        func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: server.Scheme, Host: server.Host}) },
		Transport:      transport,
		FlushInterval:  -1, // Events are passed on as they come.
		ModifyResponse: change,
	}
	gate := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		pass(r)
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		gate.CloseClientConnections()
		gate.Close()
	})
	config = rest.CopyConfig(config)
	config.Host, config.TLSClientConfig = gate.URL, rest.TLSClientConfig{}
	return config
}

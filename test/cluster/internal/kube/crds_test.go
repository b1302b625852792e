package kube

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

// serve returns a client of a server that gives one answer, and the last request that the server has received.
func serve(t *testing.T, status int, answer string) (*Client, *http.Request, *string) {
	t.Helper()
	received, body := &http.Request{}, new(string)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		content, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		*received, *body = *r, string(content)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(server.Close)
	return &Client{server: server.URL, http: server.Client()}, received, body
}

func TestApplyCRD(t *testing.T) {
	for name, status := range map[string]int{"a new one": http.StatusCreated, "one that exists": http.StatusOK} {
		t.Run(name, func(t *testing.T) {
			client, received, body := serve(t, status, "{}")
			if err := client.ApplyCRD(t.Context(), "as.example.com", []byte("kind: A\n")); err != nil {
				t.Fatal(err)
			}
			const path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/as.example.com"
			if received.Method != http.MethodPatch || received.URL.Path != path || *body != "kind: A\n" {
				t.Errorf("got %s %s with %q", received.Method, received.URL.Path, *body)
			}
			// Without force, fields that another manager has taken would be conflicts.
			if query := received.URL.Query(); query.Get("fieldManager") != "pav-cluster" || query.Get("force") != "true" {
				t.Errorf("got the query %v", query)
			}
			if kind := received.Header.Get("Content-Type"); kind != "application/apply-patch+yaml" {
				t.Errorf("got the type %q", kind)
			}
		})
	}
}

func TestRefusedRequestsSayWhy(t *testing.T) {
	client, _, _ := serve(t, http.StatusUnprocessableEntity, `{"kind":"Status","message":"spec is invalid"}`)
	err := client.ApplyCRD(t.Context(), "as.example.com", nil)
	refused, found := errors.AsType[*RefusedError](err)
	if !found || refused.Message != "spec is invalid" {
		t.Errorf("got %v, want a refusal with a message", err)
	}
	client, _, _ = serve(t, http.StatusInternalServerError, "[-]etcd failed")
	const want = "the API server answers /readyz with 500 Internal Server Error"
	if err := client.Ready(t.Context()); err == nil || err.Error() != want {
		t.Errorf("got %v, want %q", err, want)
	}
}

func TestEstablished(t *testing.T) {
	for name, test := range map[string]struct {
		answer string
		want   bool
	}{
		"new":         {answer: `{}`},
		"names taken": {answer: `{"status":{"conditions":[{"type":"Established","status":"False"}]}}`},
		"only named":  {answer: `{"status":{"conditions":[{"type":"NamesAccepted","status":"True"}]}}`},
		"established": {
			answer: `{"status":{"conditions":[{"type":"NamesAccepted","status":"True"},{"type":"Established","status":"True"}]}}`,
			want:   true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			client, _, _ := serve(t, http.StatusOK, test.answer)
			if got, err := client.Established(t.Context(), "as.example.com"); err != nil || got != test.want {
				t.Errorf("got %t, %v; want %t", got, err, test.want)
			}
		})
	}
}

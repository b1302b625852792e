package observability

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// apiServer knows two tokens, of whom one may read metrics.
type apiServer struct {
	asked int
	down  bool
}

// Create implements reviewer.
func (a *apiServer) Create(_ context.Context, object client.Object, _ ...client.CreateOption) error {
	if a.down {
		return errors.New("connection refused")
	}
	switch review := object.(type) {
	case *authenticationv1.TokenReview:
		a.asked++
		review.Status.Authenticated = review.Spec.Token == "reader" || review.Spec.Token == "tenant"
		review.Status.User.Username = review.Spec.Token
	case *authorizationv1.SubjectAccessReview:
		asks := review.Spec.NonResourceAttributes
		review.Status.Allowed = review.Spec.User == "reader" && asks.Path == "/metrics" && asks.Verb == "get"
	}
	return nil
}

func TestMetricsAreServedOnlyToUsersWhoMayReadThem(t *testing.T) {
	api := &apiServer{}
	g := newGuard(api, logr.Discard(), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }))
	get := func(method, path, authorization string) int {
		request := httptest.NewRequestWithContext(context.WithoutCancel(t.Context()), method, path, http.NoBody)
		if authorization != "" {
			request.Header.Set("Authorization", authorization)
		}
		recorder := httptest.NewRecorder()
		g.ServeHTTP(recorder, request)
		return recorder.Code
	}
	for name, test := range map[string]struct {
		method, path, authorization string
		code                        int
	}{
		"who may read them":          {"GET", "/metrics", "Bearer reader", http.StatusOK},
		"who may not":                {"GET", "/metrics", "Bearer tenant", http.StatusForbidden},
		"who may, but another path":  {"GET", "/other", "Bearer reader", http.StatusForbidden},
		"whose token is unknown":     {"GET", "/metrics", "Bearer nobody", http.StatusUnauthorized},
		"who has no token":           {"GET", "/metrics", "", http.StatusUnauthorized},
		"whose token is empty":       {"GET", "/metrics", "Bearer ", http.StatusUnauthorized},
		"who shows it in other ways": {"GET", "/metrics", "Basic reader", http.StatusUnauthorized},
		"who writes":                 {"POST", "/metrics", "Bearer reader", http.StatusMethodNotAllowed},
	} {
		t.Run(name, func(t *testing.T) {
			for range 2 {
				if code := get(test.method, test.path, test.authorization); code != test.code {
					t.Errorf("got %d, want %d", code, test.code)
				}
			}
		})
	}
	if api.asked != 4 {
		t.Errorf("the API server was asked %d times about 4 pairs of a token and a path", api.asked)
	}
	api.down = true
	if code := get("GET", "/metrics", "Bearer reader"); code != http.StatusOK {
		t.Errorf("while the API server is away, who may read them gets %d", code)
	}
	if code := get("GET", "/metrics", "Bearer new"); code != http.StatusServiceUnavailable {
		t.Errorf("while the API server is away, someone gets %d", code)
	}
	api.down = false
	if code := get("GET", "/metrics", "Bearer new"); code != http.StatusUnauthorized {
		t.Errorf("what was said while the API server was away is remembered: %d", code)
	}
}

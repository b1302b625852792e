package observability

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const (
	// allowedFor and refusedFor are how long an answer of the API server is valid.
	allowedFor, refusedFor = time.Minute, 10 * time.Second

	// answers is how many answers are remembered, and asksAtOnce how many requests are sent at once, as any client
	// can send any token.
	answers, asksAtOnce = 512, 2

	// askWithin is how long the API server may take to answer.
	askWithin = 5 * time.Second
)

// MetricsServer returns the options of a manager's metrics server at an address: it serves HTTPS to clients whose
// token the API server accepts and who may get the path. controller-runtime's own filter does the same, but needs the
// library of API servers.
func MetricsServer(address string) metricsserver.Options {
	return metricsserver.Options{
		BindAddress:   address,
		SecureServing: true, // with a certificate of its own, made when it starts
		TLSOpts: []func(*tls.Config){func(c *tls.Config) {
			c.MinVersion, c.NextProtos = tls.VersionTLS12, []string{"http/1.1"}
		}},
		FilterProvider: func(config *rest.Config, transport *http.Client) (metricsserver.Filter, error) {
			api, err := client.New(config, client.Options{HTTPClient: transport, Scheme: clientgoscheme.Scheme})
			if err != nil {
				return nil, fmt.Errorf("making the client that asks who may read metrics: %w", err)
			}
			return func(log logr.Logger, metrics http.Handler) (http.Handler, error) {
				return newGuard(api, log, metrics), nil
			}, nil
		},
	}
}

// guard serves metrics to those who may read them.
type guard struct {
	api     reviewer
	metrics http.Handler
	log     logr.Logger
	known   *cache.LRUExpireCache // codes, by a hash of token and path
	asks    chan struct{}
}

// reviewer creates reviews at the API server, which answers them.
type reviewer interface {
	Create(ctx context.Context, object client.Object, options ...client.CreateOption) error
}

func newGuard(api reviewer, log logr.Logger, metrics http.Handler) *guard {
	return &guard{api: api, metrics: metrics, log: log, known: cache.NewLRUExpireCache(answers), asks: make(chan struct{}, asksAtOnce)}
}

// ServeHTTP implements http.Handler.
func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	code := g.codeFor(r)
	if code != http.StatusOK {
		http.Error(w, http.StatusText(code), code)
		return
	}
	g.metrics.ServeHTTP(w, r)
}

func (g *guard) codeFor(r *http.Request) int {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	token = strings.TrimSpace(token)
	switch {
	case r.Method != http.MethodGet:
		return http.StatusMethodNotAllowed
	case !strings.EqualFold(scheme, "Bearer") || token == "":
		return http.StatusUnauthorized
	}
	key := sha256.Sum256([]byte(r.URL.Path + "\x00" + token))
	if code, ok := g.known.Get(key); ok {
		return code.(int)
	}
	ctx, cancel := context.WithTimeout(r.Context(), askWithin)
	defer cancel()
	select {
	case g.asks <- struct{}{}:
		defer func() { <-g.asks }()
	case <-ctx.Done():
		return http.StatusServiceUnavailable
	}
	code, err := g.review(ctx, token, r.URL.Path)
	if err != nil {
		g.log.Error(err, "cannot ask who may read metrics")
		return http.StatusServiceUnavailable
	}
	good := refusedFor
	if code == http.StatusOK {
		good = allowedFor
	}
	g.known.Add(key, code, good)
	return code
}

// review asks the API server whether the owner of a token may get a path, and returns the HTTP status.
func (g *guard) review(ctx context.Context, token, path string) (int, error) {
	who := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
	if err := g.api.Create(ctx, who); err != nil {
		return 0, fmt.Errorf("reviewing a token: %w", err)
	}
	if !who.Status.Authenticated {
		return http.StatusUnauthorized, nil
	}
	user := who.Status.User
	extra := map[string]authorizationv1.ExtraValue{}
	for key, values := range user.Extra {
		extra[key] = authorizationv1.ExtraValue(values)
	}
	may := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra,
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: path, Verb: "get"},
	}}
	if err := g.api.Create(ctx, may); err != nil {
		return 0, fmt.Errorf("reviewing what %s may do: %w", user.Username, err)
	}
	if !may.Status.Allowed {
		return http.StatusForbidden, nil
	}
	return http.StatusOK, nil
}

package addon

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	authorizationv1 "k8s.io/api/authorization/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// apiServer serves definitions, one by one as it is told, and the rights of the agent.
type apiServer struct {
	mu      sync.Mutex
	denied  string                                         // the resource that the agent has no rights on
	changes chan *apiextensionsv1.CustomResourceDefinition // of the definition of claims
	asked   chan string                                    // the resources whose rights were asked for
	listed  []string                                       // the field selectors of lists and watches of definitions
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer := func(object any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(object)
	}
	resources := func(group, name, kind string) {
		answer(metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: group, APIResources: []metav1.APIResource{{Name: name, Kind: kind, Verbs: []string{"list", "watch"}}}})
	}
	switch r.URL.Path {
	case "/api":
		answer(metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions", APIVersion: "v1"}})
	case "/apis":
		groups := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
		for name, version := range map[string]string{"apiextensions.k8s.io": "v1", "authorization.k8s.io": "v1", "objectbucket.io": "v1alpha1"} {
			known := metav1.GroupVersionForDiscovery{GroupVersion: name + "/" + version, Version: version}
			groups.Groups = append(groups.Groups, metav1.APIGroup{Name: name, Versions: []metav1.GroupVersionForDiscovery{known}, PreferredVersion: known})
		}
		answer(groups)
	case "/apis/apiextensions.k8s.io/v1":
		resources("apiextensions.k8s.io/v1", "customresourcedefinitions", "CustomResourceDefinition")
	case "/apis/authorization.k8s.io/v1":
		resources("authorization.k8s.io/v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview")
	case "/apis/objectbucket.io/v1alpha1":
		resources("objectbucket.io/v1alpha1", "objectbucketclaims", "ObjectBucketClaim")
	case "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews":
		review := authorizationv1.SelfSubjectAccessReview{}
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		review.TypeMeta = metav1.TypeMeta{Kind: "SelfSubjectAccessReview", APIVersion: "authorization.k8s.io/v1"}
		review.Status.Allowed = review.Spec.ResourceAttributes.Resource != s.denied
		s.asked <- review.Spec.ResourceAttributes.Resource
		answer(review)
	case "/apis/apiextensions.k8s.io/v1/customresourcedefinitions":
		s.definitions(w, r, answer)
	default:
		w.WriteHeader(http.StatusNotFound)
		answer(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Reason: metav1.StatusReasonNotFound, Code: http.StatusNotFound})
	}
}

// definitions serves an empty list, and a watch of the changes.
func (s *apiServer) definitions(w http.ResponseWriter, r *http.Request, answer func(any)) {
	query := r.URL.Query()
	s.mu.Lock()
	s.listed = append(s.listed, query.Get("fieldSelector"))
	s.mu.Unlock()
	switch {
	case query.Get("sendInitialEvents") != "":
		w.WriteHeader(http.StatusUnprocessableEntity) // as servers that are older than the client
		answer(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Reason: metav1.StatusReasonInvalid, Code: http.StatusUnprocessableEntity})
	case query.Get("watch") == "":
		answer(apiextensionsv1.CustomResourceDefinitionList{TypeMeta: metav1.TypeMeta{Kind: "CustomResourceDefinitionList", APIVersion: "apiextensions.k8s.io/v1"}, ListMeta: metav1.ListMeta{ResourceVersion: "1"}})
	default:
		w.Header().Set("Content-Type", "application/json")
		flush, _ := w.(http.Flusher)
		flush.Flush()
		for {
			select {
			case changed := <-s.changes:
				changed.TypeMeta = metav1.TypeMeta{Kind: "CustomResourceDefinition", APIVersion: "apiextensions.k8s.io/v1"}
				_ = json.NewEncoder(w).Encode(map[string]any{"type": "MODIFIED", "object": changed})
				flush.Flush()
			case <-r.Context().Done():
				return
			}
		}
	}
}

// fakeAddon is an add-on that says when it is registered.
type fakeAddon struct{ done chan string }

func (f *fakeAddon) Resources() []schema.GroupVersionResource {
	return []schema.GroupVersionResource{claims}
}

func (f *fakeAddon) Index(context.Context, client.FieldIndexer) error {
	f.done <- "indexed"
	return nil
}

func (f *fakeAddon) Register(ctrl.Manager, controller.Options) error {
	f.done <- "registered"
	return nil
}

// start runs an agent with an installer.
func start(t *testing.T, s *apiServer) *fakeAddon {
	t.Helper()
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{apiextensionsv1.AddToScheme, authorizationv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	mgr, err := ctrl.NewManager(&rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON}}, ctrl.Options{
		Scheme: scheme, Logger: funcr.New(func(string, string) {}, funcr.Options{}), Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: new(true), UsePriorityQueue: new(false)},
	})
	if err != nil {
		t.Fatal(err)
	}
	addon := &fakeAddon{done: make(chan string, 10)}
	if err := (&Installer{Name: "object-bucket", Direct: mgr.GetClient(), Addon: addon}).Register(mgr, controller.Options{}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return addon
}

func want(t *testing.T, from <-chan string, what string) {
	t.Helper()
	select {
	case got := <-from:
		if got != what {
			t.Fatalf("got %q, want %q", got, what)
		}
	case <-time.After(time.Minute):
		t.Fatalf("timed out waiting for %q", what)
	}
}

// send tells those who watch that the definition has changed.
func send(t *testing.T, s *apiServer, changed *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	select {
	case s.changes <- changed:
	case <-time.After(time.Minute):
		t.Fatal("timed out waiting for a watch")
	}
}

// The reconciler is registered when its definition is established, and once.
func TestInstaller(t *testing.T) {
	s := &apiServer{changes: make(chan *apiextensionsv1.CustomResourceDefinition), asked: make(chan string, 100)}
	addon := start(t, s)
	version := 1
	change := func(edits ...func(*apiextensionsv1.CustomResourceDefinition)) {
		version++
		d := established(edits...)
		d.ResourceVersion = fmt.Sprint(version)
		send(t, s, d)
	}
	change(func(d *apiextensionsv1.CustomResourceDefinition) { d.Status.Conditions = nil })
	select {
	case got := <-addon.done:
		t.Fatalf("it is %s before the definition is established", got)
	default:
	}
	change()
	want(t, addon.done, "indexed")
	want(t, addon.done, "registered")
	change(func(d *apiextensionsv1.CustomResourceDefinition) { d.Labels = map[string]string{"k": "v"} })
	for _, resource := range []string{"customresourcedefinitions", "customresourcedefinitions", "objectbucketclaims", "objectbucketclaims"} {
		want(t, s.asked, resource)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.ContainsFunc(s.listed, func(selector string) bool {
		return !strings.Contains(selector, "metadata.name=objectbucketclaims.objectbucket.io")
	}) {
		t.Errorf("all definitions are read: %q", s.listed)
	}
}

// Without the right to watch a definition, nothing is watched.
func TestInstaller_WithoutRights(t *testing.T) {
	for _, resource := range []string{"customresourcedefinitions", "objectbucketclaims"} {
		t.Run(resource, func(t *testing.T) {
			s := &apiServer{denied: resource, changes: make(chan *apiextensionsv1.CustomResourceDefinition), asked: make(chan string, 100)}
			addon := start(t, s)
			if resource == "objectbucketclaims" {
				want(t, s.asked, "customresourcedefinitions")
				want(t, s.asked, "customresourcedefinitions")
				d := established()
				d.ResourceVersion = "2"
				send(t, s, d)
			}
			want(t, s.asked, resource)
			s.mu.Lock()
			defer s.mu.Unlock()
			if resource == "customresourcedefinitions" && len(s.listed) > 0 || len(addon.done) > 0 {
				t.Errorf("definitions are read %d times, or the reconciler is registered", len(s.listed))
			}
		})
	}
}

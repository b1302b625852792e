package integration

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/albertofaria/pav/test/agent"
	"github.com/albertofaria/pav/test/reference"
)

// foreignLine is the line of a program that others wrote to the API server. It has the rights of an administrator.
type foreignLine struct {
	// kubeconfig is the path of a file that the program is given.
	kubeconfig string

	mu     sync.Mutex
	writes []string
}

// newForeignLine opens a line for the duration of a test.
func newForeignLine(t *testing.T, c *cluster, name string) *foreignLine {
	t.Helper()
	user, err := c.Environment.AddUser(envtest.User{Name: name, Groups: []string{"system:masters"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	url, _, err := rest.DefaultServerUrlFor(user.Config())
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TransportFor(user.Config())
	if err != nil {
		t.Fatal(err)
	}
	l := &foreignLine{kubeconfig: filepath.Join(t.TempDir(), name)}
	server := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(url) },
		Transport: transport, FlushInterval: -1, ModifyResponse: l.count, ErrorLog: log.New(io.Discard, "", 0),
	})
	t.Cleanup(server.Close)
	const text = `{apiVersion: v1, kind: Config, current-context: c, clusters: [{name: c, cluster: {server: %q}}], contexts: [{name: c, context: {cluster: c}}]}`
	if err := os.WriteFile(l.kubeconfig, fmt.Appendf(nil, text, server.URL), 0o600); err != nil {
		t.Fatal(err)
	}
	return l
}

// count keeps the writes that succeed.
func (l *foreignLine) count(response *http.Response) error {
	request := response.Request
	if request.Method != http.MethodGet && response.StatusCode < http.StatusMultipleChoices {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.writes = append(l.writes, request.Method+" "+request.URL.Path)
	}
	return nil
}

// Writes returns the writes so far, each as its method and path.
func (l *foreignLine) Writes() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.writes)
}

// controllers runs controllers of Kubernetes that the control plane of other tests lacks.
func controllers(t *testing.T, c *cluster, names string) {
	t.Helper()
	manager := exec.Command(filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kube-controller-manager"), //nolint:noctx // it is killed
		"--kubeconfig="+newForeignLine(t, c, "controllers").kubeconfig, "--leader-elect=false", "--secure-port=0", "--controllers="+names)
	output := &agent.Buffer{}
	manager.Stdout, manager.Stderr = output, output
	manager.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := manager.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = manager.Process.Kill()
		_ = manager.Wait() // says that it was killed
		if t.Failed() {
			t.Logf("log of %s:\n%s", names, output)
		}
	})
}

// uncompared are the fields that differ from object to object, whatever writes them.
var uncompared = []string{
	".kind", ".apiVersion", ".metadata.uid", ".metadata.resourceVersion", ".metadata.generation", ".metadata.creationTimestamp", ".metadata.managedFields",
}

// fieldsOf returns the fields of an object. Values of Secrets are as clients see them. The pairs are what to replace.
func fieldsOf(t *testing.T, object client.Object, pairs []string) reference.Fields {
	t.Helper()
	if secret, is := object.(*corev1.Secret); is {
		secret = secret.DeepCopy()
		secret.StringData = map[string]string{}
		for key, value := range secret.Data {
			secret.StringData[key] = string(value)
		}
		secret.Data, object = nil, secret
	}
	fields, err := reference.FieldsOf(object)
	if err != nil {
		t.Fatal(err)
	}
	return fields.Without(uncompared...).Replace(pairs...)
}

func kindOf(t *testing.T, c *cluster, object client.Object) string {
	t.Helper()
	kind, err := apiutil.GVKForObject(object, c.Admin.Scheme())
	if err != nil {
		t.Fatal(err)
	}
	return kind.Kind
}

// naming returns the writes of objects whose names contain a text.
func naming(writes []string, text string) []string {
	return slices.DeleteFunc(writes, func(write string) bool { return !strings.Contains(write, text) })
}

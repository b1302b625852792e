package integration

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/test/agent"
)

const (
	namespace      = "pav"
	serviceAccount = "system:serviceaccount:" + namespace + ":"
	kindCRD        = "CustomResourceDefinition"
	kindWebhook    = "ValidatingWebhookConfiguration"
)

// manifests returns the objects of deployment.yaml, in its order.
func manifests() ([]*unstructured.Unstructured, error) {
	text, err := os.ReadFile(filepath.Join("..", "..", "deployment.yaml"))
	if err != nil {
		return nil, err
	}
	return objectsIn(text)
}

// objectsIn returns the objects of a text in YAML, in its order.
func objectsIn(text []byte) (objects []*unstructured.Unstructured, err error) {
	reader := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(document, &object.Object); err != nil {
			return nil, err
		}
		if object.GetKind() != "" {
			objects = append(objects, object)
		}
	}
}

// install does what kubectl create -f deployment.yaml does, and waits until PaV's kinds are served.
func (c *cluster) install(ctx context.Context, wanted func(*unstructured.Unstructured) bool) error {
	objects, err := manifests()
	if err != nil {
		return err
	}
	for _, object := range objects {
		if !wanted(object) {
			continue
		}
		if err := c.admin.Create(ctx, object); err != nil {
			return fmt.Errorf("creating %s %q: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return wait.PollUntilContextTimeout(ctx, interval, deadline, true, func(ctx context.Context) (bool, error) {
		for _, list := range []client.ObjectList{&pavv1.PavProvisionerList{}, &pavv1.PavVolumeList{}, &pavv1.PavStageList{}} {
			if err := c.admin.List(ctx, list); err != nil {
				return false, nil //nolint:nilerr // not served yet
			}
		}
		return true, nil
	})
}

// addAgent makes the configuration of a controller agent: the service account that deployment.yaml gives rights to.
func (c *cluster) addAgent() error {
	user, err := c.environment.AddUser(envtest.User{
		Name:   serviceAccount + "controller-agent",
		Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace},
	}, &rest.Config{})
	if err != nil {
		return err
	}
	c.agent = user.Config()
	return nil
}

// nodeAgent returns a client with the rights of a node's agent.
func nodeAgent(t *testing.T, c *cluster, node string) client.Client {
	t.Helper()
	cfg := rest.CopyConfig(c.environment.Config)
	cfg.Impersonate = rest.ImpersonationConfig{
		UserName: serviceAccount + "node-agent",
		Groups:   []string{"system:authenticated", "system:serviceaccounts", "system:serviceaccounts:" + namespace},
		Extra:    map[string][]string{"authentication.kubernetes.io/node-name": {node}},
	}
	agent, err := client.New(cfg, client.Options{Scheme: c.admin.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	return agent
}

// Contract: "To uninstall PaV …, run: kubectl delete crd pavprovisioners.pav.albertofaria.github.io", which
// "will cause the deletion of all existing PavProvisioner objects and block until they are fully removed".
func TestUninstallation(t *testing.T) {
	c := start(t)
	run(t, c)
	driver(t, c, "uninstalled", retain)
	claim := mustCreate(t, c, claimOf("uninstalled", "data"))
	pv, volume := bound(t, c, claim)
	mustDelete(t, c, claim)
	exists(t, c, volume, "is retained", func(v *pavv1.PavVolume) bool { return v.Status.Phase == pavv1.VolumeRetained })
	mustDelete(t, c, pv)

	crds := func(object *unstructured.Unstructured) bool { return object.GetKind() == kindCRD }
	objects, err := manifests()
	if err != nil {
		t.Fatal(err)
	}
	first := &unstructured.Unstructured{}
	first.SetAPIVersion("apiextensions.k8s.io/v1")
	first.SetKind(kindCRD)
	first.SetName("pavprovisioners." + pavv1.Group)
	mustDelete(t, c, first)
	gone(t, c, first)
	gone(t, c, csiDriver("uninstalled"))
	for _, object := range objects {
		if crds(object) && object.GetName() != first.GetName() {
			mustDelete(t, c, object)
			gone(t, c, object)
		}
	}
	if err := c.install(lasting(t), crds); err != nil { // for the tests that follow
		t.Fatal(err)
	}
}

// checkNothingLeft is how every test ends, when its agent has.
func checkNothingLeft(t *testing.T, c *cluster) {
	t.Helper()
	agent.CheckNoGoroutines(t)
	for _, list := range []client.ObjectList{
		&pavv1.PavProvisionerList{}, &pavv1.PavVolumeList{}, &pavv1.PavStageList{},
		&corev1.PersistentVolumeList{}, &corev1.PersistentVolumeClaimList{}, &corev1.PodList{}, &corev1.NodeList{},
	} {
		if err := c.admin.List(lasting(t), list); err != nil {
			t.Error(err)
		}
		eachItem(t, list, func(object client.Object) { t.Errorf("%T %s is left", object, object.GetName()) })
	}
}

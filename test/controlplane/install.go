package controlplane

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// KindWebhook is the kind of the webhook's configuration. Its failure policy is Fail: where no webhook is served, it must not
// be installed.
const KindWebhook = "ValidatingWebhookConfiguration"

// Manifests returns the objects of a file in YAML, in its order.
func Manifests(path string) ([]*unstructured.Unstructured, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return Objects(text)
}

// Objects returns the objects of a text in YAML, in its order.
func Objects(text []byte) (objects []*unstructured.Unstructured, err error) {
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

// Install does what kubectl create -f does with the objects that are wanted, and waits until PaV's kinds are served.
func (p *Plane) Install(ctx context.Context, objects []*unstructured.Unstructured, wanted func(*unstructured.Unstructured) bool) error {
	for _, object := range objects {
		if !wanted(object) {
			continue
		}
		if err := p.Admin.Create(ctx, object); err != nil {
			return fmt.Errorf("creating %s %q: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
		for _, list := range []client.ObjectList{&pavv1.PavProvisionerList{}, &pavv1.PavVolumeList{}, &pavv1.PavStageList{}, &pavv1.PavSnapshotList{}} {
			if err := p.Admin.List(ctx, list); err != nil {
				return false, nil //nolint:nilerr // not served yet
			}
		}
		return true, nil
	})
}

// InstallSnapshots installs the CRDs of snapshots, an add-on, which are beside the programs in the directory assets, and waits until
// they are served.
func (p *Plane) InstallSnapshots(assets string) error {
	crds := filepath.Join(assets, "snapshot-crds")
	_, err := envtest.InstallCRDs(p.Environment.Config, envtest.CRDInstallOptions{Paths: []string{crds}, ErrorIfPathMissing: true})
	if err != nil {
		return fmt.Errorf("installing the CRDs of snapshots, which bin/cluster has put into %s: %w", crds, err)
	}
	return nil
}

package commands

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// shortNames are those short names of Kubernetes' kinds that PaV prints.
var shortNames = []string{"crd", "pv", "pvc", "sc"}

// cluster is what is known of a cluster with PaV without asking one.
type cluster struct {
	// kinds has all names of kinds, singular, plural and short, and definitions PaV's own and those that it brings, by these names.
	kinds       map[string]bool
	definitions map[string]*apiextensionsv1.CustomResourceDefinition

	// named has the names of the objects of deployment.yaml by the plural of their kinds, and pods the labels of its pods.
	named map[string][]string
	pods  []labels.Set

	// keys has the source of all keys of labels and annotations.
	keys string
}

func newCluster(root string) (*cluster, error) {
	c := &cluster{
		kinds: map[string]bool{
			"customresourcedefinition": true, "customresourcedefinitions": true,
			"volumesnapshot": true, "volumesnapshots": true, "volumesnapshotcontent": true, "volumesnapshotcontents": true,
			"volumesnapshotclass": true, "volumesnapshotclasses": true,
		},
		definitions: map[string]*apiextensionsv1.CustomResourceDefinition{}, named: map[string][]string{},
	}
	for _, name := range shortNames {
		c.kinds[name] = true
	}
	for kind := range clientgoscheme.Scheme.AllKnownTypes() {
		plural, singular := meta.UnsafeGuessKindToResource(kind)
		c.kinds[plural.Resource], c.kinds[singular.Resource] = true, true
	}
	return c, errors.Join(c.readDefinitions(root), c.readDeployment(root), c.readKeys(root))
}

func (c *cluster) readDefinitions(root string) error {
	var files []string
	for _, pattern := range []string{"deploy/chart/definitions/*.yaml", "deploy/foreign/*/*.yaml"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(found) == 0 {
			return fmt.Errorf("%s: found no definitions: %w", pattern, err)
		}
		files = append(files, found...)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(text, crd); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		names := crd.Spec.Names
		for _, name := range append(names.ShortNames, names.Plural, names.Singular, names.Plural+"."+crd.Spec.Group) {
			c.kinds[name], c.definitions[name] = true, crd
		}
	}
	return nil
}

func (c *cluster) readDeployment(root string) error {
	text, err := os.ReadFile(filepath.Join(root, "deployment.yaml"))
	if err != nil {
		return err
	}
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(&object.Object); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("deployment.yaml: %w", err)
		}
		plural, _ := meta.UnsafeGuessKindToResource(object.GroupVersionKind())
		c.named[plural.Resource] = append(c.named[plural.Resource], object.GetName())
		pod, found, err := unstructured.NestedStringMap(object.Object, "spec", "template", "metadata", "labels")
		if err != nil {
			return fmt.Errorf("deployment.yaml: %w", err)
		}
		if found {
			c.pods = append(c.pods, pod)
		}
	}
}

func (c *cluster) readKeys(root string) error {
	files, err := filepath.Glob(filepath.Join(root, "internal/api/v1alpha1/*.go"))
	for _, file := range files {
		text, wrong := os.ReadFile(file)
		c.keys, err = c.keys+string(text), errors.Join(err, wrong)
	}
	return err
}

// checkKind checks a kind of object.
func (c *cluster) checkKind(kind string) error {
	if kind != sample && !c.kinds[strings.ToLower(kind)] {
		return fmt.Errorf("there is no kind %q of objects", kind)
	}
	return nil
}

// onlyInstalled are kinds of which PaV prints only names of its own objects.
var onlyInstalled = []string{"deployments", "daemonsets", "customresourcedefinitions", "validatingwebhookconfigurations"}

// checkName checks the name of an object that PaV's installation has.
func (c *cluster) checkName(kind, name string) error {
	if kind == "crd" {
		kind = "customresourcedefinitions"
	}
	for _, plural := range onlyInstalled {
		if (kind == plural || kind+"s" == plural) && !strings.Contains(name, sample) && !slices.Contains(c.named[plural], name) {
			return fmt.Errorf("deployment.yaml has no %s %q", kind, name)
		}
	}
	return nil
}

// checkSelector checks that a selector that names a part of PaV selects pods.
func (c *cluster) checkSelector(text string) error {
	selector, err := labels.Parse(text)
	if err != nil || !strings.Contains(text, "app.kubernetes.io/") {
		return err
	}
	if selector.Matches(labels.Set{"app.kubernetes.io/name": "snapshot-controller"}) {
		return nil // the label of the add-on's pods in its own manifests
	}
	if !slices.ContainsFunc(c.pods, func(pod labels.Set) bool { return selector.Matches(pod) }) {
		return fmt.Errorf("%s selects no pod of deployment.yaml", text)
	}
	return nil
}

var ownKey = regexp.MustCompile(regexp.QuoteMeta(pavv1.Group) + `/([a-z-]+)`)

// checkKeys checks that PaV knows the keys of labels and annotations in an argument.
func (c *cluster) checkKeys(argument string) error {
	for _, match := range ownKey.FindAllStringSubmatch(argument, -1) {
		if !strings.Contains(c.keys, `"/`+match[1]+`"`) {
			return fmt.Errorf("PaV has no label or annotation %s", match[0])
		}
	}
	return nil
}

// checkPath checks the path of "kubectl explain".
func (c *cluster) checkPath(path string) error {
	fields := strings.Split(path, ".")
	if err := c.checkKind(fields[0]); err != nil {
		return err
	}
	crd := c.definitions[fields[0]]
	if crd == nil {
		return nil
	}
	schema := *crd.Spec.Versions[0].Schema.OpenAPIV3Schema
	for _, field := range fields[1:] {
		for schema.Items != nil && schema.Items.Schema != nil {
			schema = *schema.Items.Schema
		}
		next, found := schema.Properties[field]
		if !found {
			return fmt.Errorf("%s has no field %q", path, field)
		}
		schema = next
	}
	return nil
}

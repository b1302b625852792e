package agent

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"
)

func deployment(namespace string) client.Object {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: Controller, Labels: Labels(Controller)}}
}

func daemonSet(namespace string) client.Object {
	return &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: Node, Labels: Labels(Node)}}
}

func webhooksIn(namespace string) client.Object {
	service := &admissionv1.ServiceReference{Namespace: namespace, Name: "webhook"}
	return &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: Webhooks},
		Webhooks: []admissionv1.ValidatingWebhook{{ClientConfig: admissionv1.WebhookClientConfig{Service: service}}}}
}

func TestNamespace(t *testing.T) {
	forbidden := func(name string) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: name}, "", errors.New("no right"))
	}
	foreign := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: "other", Labels: Labels(Controller)}}
	for name, test := range map[string]struct {
		objects []client.Object
		list    error
		get     error
		want    string
		fails   bool
	}{
		"not installed":                          {want: "pav"},
		"in the default namespace":               {objects: []client.Object{deployment("pav"), daemonSet("pav")}, want: "pav"},
		"in another namespace":                   {objects: []client.Object{deployment("storage"), daemonSet("storage")}, want: "storage"},
		"only one agent is there":                {objects: []client.Object{daemonSet("storage")}, want: "storage"},
		"an object of another name has labels":   {objects: []client.Object{foreign}, want: "pav"},
		"a tenant has the same names and labels": {objects: []client.Object{deployment("a-tenant"), deployment("storage"), webhooksIn("storage")}, want: "storage"},
		"the webhooks may not be read":           {objects: []client.Object{deployment("a-tenant"), deployment("pav")}, get: forbidden("validatingwebhookconfigurations"), want: "pav"},
		"nothing tells which one":                {objects: []client.Object{deployment("b"), daemonSet("a")}, want: "a"},
		"all namespaces are forbidden":           {objects: []client.Object{deployment("storage")}, list: forbidden("deployments"), want: "pav"},
		"the cluster does not answer":            {list: errors.New("connection refused"), fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			reader := fake.NewClientBuilder().WithScheme(clientscheme.Scheme).WithObjects(test.objects...).WithInterceptorFuncs(interceptor.Funcs{
				List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
					if test.list != nil {
						return test.list
					}
					return c.List(ctx, list, options...)
				},
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
					if test.get != nil {
						return test.get
					}
					return c.Get(ctx, key, object, options...)
				},
			}).Build()
			got, err := Namespace(t.Context(), reader)
			if got != test.want || (err != nil) != test.fails {
				t.Errorf("got %q, %v, want %q", got, err, test.want)
			}
		})
	}
}

// The manifests of an installation have the names and labels by which the agents are found.
func TestNames_AreThoseOfTheManifests(t *testing.T) {
	text, err := os.ReadFile("../../../deployment.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]client.MatchingLabels{"Deployment " + Controller: Labels(Controller), "DaemonSet " + Node: Labels(Node), "ValidatingWebhookConfiguration " + Webhooks: nil}
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		object := &metav1.PartialObjectMetadata{}
		if err := yaml.Unmarshal([]byte(document), object); err != nil {
			t.Fatal(err)
		}
		labels, wanted := want[object.Kind+" "+object.Name]
		if !wanted {
			continue
		}
		delete(want, object.Kind+" "+object.Name)
		for key, value := range labels {
			if object.Labels[key] != value {
				t.Errorf("%s %s has the label %s=%q, want %q", object.Kind, object.Name, key, object.Labels[key], value)
			}
		}
	}
	for name := range want {
		t.Errorf("deployment.yaml has no %s", name)
	}
}

package addon

import (
	"context"
	"errors"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/albertofaria/pav/internal/reconcile"
)

var claims = schema.GroupVersionResource{Group: "objectbucket.io", Version: "v1alpha1", Resource: "objectbucketclaims"}

// established is the definition of a resource that the cluster serves.
func established(edits ...func(*apiextensionsv1.CustomResourceDefinition)) *apiextensionsv1.CustomResourceDefinition {
	d := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: definitionOf(claims)}}
	d.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1alpha1", Served: true, Schema: &apiextensionsv1.CustomResourceValidation{}}}
	d.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{{Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue}}
	for _, edit := range edits {
		edit(d)
	}
	return d
}

func TestMissingOf(t *testing.T) {
	for name, test := range map[string]struct {
		definition *apiextensionsv1.CustomResourceDefinition
		want       string
	}{
		"it is served":        {established(), ""},
		"it does not exist":   {nil, "the definition objectbucketclaims.objectbucket.io"},
		"it is being deleted": {established(func(d *apiextensionsv1.CustomResourceDefinition) { d.DeletionTimestamp = new(metav1.Now()) }), "the definition objectbucketclaims.objectbucket.io"},
		"it is not established": {established(func(d *apiextensionsv1.CustomResourceDefinition) {
			d.Status.Conditions[0].Status = apiextensionsv1.ConditionFalse
		}), "version v1alpha1 of objectbucketclaims.objectbucket.io"},
		"it says nothing yet":                  {established(func(d *apiextensionsv1.CustomResourceDefinition) { d.Status.Conditions = nil }), "version v1alpha1 of objectbucketclaims.objectbucket.io"},
		"it has another version":               {established(func(d *apiextensionsv1.CustomResourceDefinition) { d.Spec.Versions[0].Name = "v1" }), "version v1alpha1 of objectbucketclaims.objectbucket.io"},
		"it has the version, and does not use": {established(func(d *apiextensionsv1.CustomResourceDefinition) { d.Spec.Versions[0].Served = false }), "version v1alpha1 of objectbucketclaims.objectbucket.io"},
	} {
		if got := missingOf(test.definition, claims); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

// What is kept of a definition is what missingOf reads.
func TestTrim(t *testing.T) {
	trimmed, err := trim(established())
	if err != nil {
		t.Fatal(err)
	}
	definition, ok := trimmed.(*apiextensionsv1.CustomResourceDefinition)
	if !ok || definition.Spec.Versions[0].Schema != nil || missingOf(definition, claims) != "" {
		t.Errorf("got %+v", trimmed)
	}
}

func TestDemand(t *testing.T) {
	errTimeout := errors.New("timeout")
	later := func(err error) bool { _, ok := errors.AsType[*reconcile.Later](err); return ok }
	for name, test := range map[string]struct {
		allowed map[string]bool
		answer  error
		want    func(error) bool
	}{
		"both are allowed":               {allowed: map[string]bool{"list": true, "watch": true}, want: func(err error) bool { return err == nil }},
		"it may not list":                {allowed: map[string]bool{"watch": true}, want: later},
		"it may not watch":               {allowed: map[string]bool{"list": true}, want: later},
		"it may not even ask":            {answer: apierrors.NewForbidden(schema.GroupResource{}, "", nil), want: later},
		"the API server does not answer": {answer: errTimeout, want: func(err error) bool { return errors.Is(err, errTimeout) }},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := authorizationv1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			direct := fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{
				Create: func(_ context.Context, _ client.WithWatch, object client.Object, _ ...client.CreateOption) error {
					review, ok := object.(*authorizationv1.SelfSubjectAccessReview)
					if !ok {
						t.Fatalf("%T is created", object)
					}
					asked := review.Spec.ResourceAttributes
					if asked.Group != claims.Group || asked.Resource != claims.Resource || asked.Name != "n" {
						t.Errorf("asked for %+v", asked)
					}
					review.Status.Allowed = test.allowed[asked.Verb]
					return test.answer
				},
			}).Build()
			i := &Installer{Name: "claims", Direct: direct}
			err := i.demand(t.Context(), authorizationv1.ResourceAttributes{Group: claims.Group, Resource: claims.Resource, Name: "n"})
			if !test.want(err) {
				t.Errorf("got %v", err)
			}
		})
	}
}

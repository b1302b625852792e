package integration

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	obcv1 "github.com/albertofaria/pav/internal/api/objectbucket/v1alpha1"
	"github.com/albertofaria/pav/test/controlplane"
)

// credentialsNamespace is where the keys are that open sealed credentials.
const credentialsNamespace = "pav-credentials"

// enableBuckets does what kubectl create -f deployment-buckets.yaml does, for the duration of a test, and waits until the policies hold.
// The namespace stays, as nothing here would empty it.
func enableBuckets(t *testing.T, c *cluster) {
	t.Helper()
	objects, err := controlplane.Manifests(filepath.Join("..", "..", "deployment-buckets.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	enableBucketsBy(t, c, objects)
}

// enableBucketsBy is enableBuckets with these objects.
func enableBucketsBy(t *testing.T, c *cluster, objects []*unstructured.Unstructured) {
	t.Helper()
	for _, object := range objects {
		isNamespace := object.GetKind() == "Namespace"
		err := c.Admin.Create(t.Context(), object)
		switch {
		case isNamespace && apierrors.IsAlreadyExists(err):
		case err != nil:
			t.Fatal(err)
		case !isNamespace:
			t.Cleanup(func() { mustDeleteLasting(t, c, object) })
		}
	}
	thief := client.NewDryRunClient(stolenController(t, c))
	for _, refused := range []struct {
		object client.Object
		why    string
	}{
		{&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "no-access"}}, "for accesses to buckets only"},
		{&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "no-access"}}, "for ObjectBucketClaims only"},
	} {
		eventually(t, "the policies hold", func(ctx context.Context) (bool, string) {
			err := thief.Create(ctx, copied(refused.object))
			return err != nil && strings.Contains(err.Error(), refused.why), errorText(err)
		})
	}
}

func errorText(err error) string {
	if err == nil {
		return "no error"
	}
	return err.Error()
}

const cosiGroup = "objectstorage.k8s.io"

// bucketKinds are the kinds of other programs, by what they are called in URLs.
var bucketKinds = map[string]schema.GroupVersionKind{
	"objectbucketclaims":  obcv1.GroupVersion.WithKind("ObjectBucketClaim"),
	"objectbuckets":       obcv1.GroupVersion.WithKind("ObjectBucket"),
	"bucketclaims":        {Group: cosiGroup, Version: "v1alpha1", Kind: "BucketClaim"},
	"buckets":             {Group: cosiGroup, Version: "v1alpha1", Kind: "Bucket"},
	"bucketaccesses":      {Group: cosiGroup, Version: "v1alpha1", Kind: "BucketAccess"},
	"bucketclasses":       {Group: cosiGroup, Version: "v1alpha1", Kind: "BucketClass"},
	"bucketaccessclasses": {Group: cosiGroup, Version: "v1alpha1", Kind: "BucketAccessClass"},
}

// installBucketKinds installs these kinds, as other programs may have done. Objects of COSI may have any fields.
func installBucketKinds(t *testing.T, c *cluster) {
	t.Helper()
	var crds []*apiextensionsv1.CustomResourceDefinition
	for plural, kind := range bucketKinds {
		if kind.Group != cosiGroup {
			continue
		}
		scope := apiextensionsv1.NamespaceScoped
		if kind.Kind != "BucketClaim" && kind.Kind != "BucketAccess" {
			scope = apiextensionsv1.ClusterScoped
		}
		crds = append(crds, &apiextensionsv1.CustomResourceDefinition{
			ObjectMeta: metav1.ObjectMeta{
				Name: plural + "." + kind.Group, Annotations: map[string]string{"api-approved.kubernetes.io": "unapproved, for a test"},
			},
			Spec: apiextensionsv1.CustomResourceDefinitionSpec{
				Group: kind.Group, Scope: scope,
				Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Singular: strings.ToLower(kind.Kind), Kind: kind.Kind, ListKind: kind.Kind + "List"},
				Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
					Name: kind.Version, Served: true, Storage: true,
					Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
					Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
						Type: "object", XPreserveUnknownFields: new(true),
					}},
				}},
			},
		})
	}
	for _, options := range []envtest.CRDInstallOptions{
		{CRDs: crds},
		{Paths: []string{filepath.Join("..", "..", "deploy", "foreign", "objectbucket")}, ErrorIfPathMissing: true},
	} {
		if _, err := envtest.InstallCRDs(c.Environment.Config, options); err != nil {
			t.Fatal(err)
		}
	}
	schemasHold(t, c, false)
}

// schemasHold waits until the API server applies the schemas of COSI's kinds, or none, as the last test may have installed the other.
func schemasHold(t *testing.T, c *cluster, schemas bool) {
	t.Helper()
	asks := client.NewDryRunClient(c.Admin)
	for plural, kind := range bucketKinds {
		if kind.Group != cosiGroup {
			continue
		}
		in := ""
		if kind.Kind == "BucketClaim" || kind.Kind == "BucketAccess" {
			in = "default"
		}
		eventually(t, fmt.Sprintf("%s have schemas: %t", plural, schemas), func(ctx context.Context) (bool, string) {
			err := asks.Create(ctx, bucketObject(plural, in, "no-fields", map[string]any{"spec": map[string]any{}}))
			return schemas && apierrors.IsInvalid(err) || !schemas && err == nil, errorText(err)
		})
	}
}

// bucketObject returns an object of one of these kinds. The namespace is empty for those of the cluster.
func bucketObject(plural, in, name string, fields map[string]any) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	maps.Copy(object.Object, fields)
	object.SetGroupVersionKind(bucketKinds[plural])
	object.SetNamespace(in)
	object.SetName(name)
	return object
}

package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/kubectl/agent"
)

// reader returns a cluster with objects, whose API server answers a request for a kind with an error, if there is one.
func reader(t *testing.T, answer func(kind string) error, objects ...client.Object) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientscheme.AddToScheme(scheme), pavv1.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	kind := func(c client.Client, object runtime.Object) string {
		gvk, err := c.GroupVersionKindFor(object)
		if err != nil {
			t.Error(err)
		}
		if kind := strings.TrimSuffix(gvk.Kind, "List"); kind != "Secret" {
			return kind
		}
		t.Error("it reads Secrets")
		return ""
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if err := answer(kind(c, list)); err != nil {
				return err
			}
			return c.List(ctx, list, options...)
		},
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if err := answer(kind(c, object)); err != nil {
				return err
			}
			return c.Get(ctx, key, object, options...)
		},
	}).Build()
}

func allowed(string) error { return nil }

// installed are some objects of an installation in namespace storage.
func installed(t *testing.T) []client.Object {
	t.Helper()
	f := healthy(t)
	named := func(name string, labels map[string]string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "storage", Name: name, Labels: labels}
	}
	f.Deployment.ObjectMeta, f.DaemonSet.ObjectMeta = named(agent.Controller, agent.Labels(agent.Controller)), named(agent.Node, agent.Labels(agent.Node))
	f.Lease.ObjectMeta, f.Endpoints[0].Name, f.Webhooks.ObjectMeta = named(leaseName, nil), "webhook-1", metav1.ObjectMeta{Name: agent.Webhooks}
	objects := []client.Object{f.Deployment, f.DaemonSet, f.Lease, f.Webhooks, &f.Endpoints[0], &corev1.Service{ObjectMeta: named("webhook", nil)}}
	for _, definition := range f.Definitions {
		objects = append(objects, definition)
	}
	objects = append(objects, pointers(f.Agents)...)
	objects = append(objects, pointers(f.Nodes)...)
	objects = append(objects, pointers(f.CSINodes)...)
	objects = append(objects, pointers(f.CSIDrivers)...)
	objects = append(objects, pointers(append(f.Namespaces, openNamespace("")))...)
	objects = append(objects, pointers(append(f.Quotas, quota("apps", "1", "5"), quota("closed", "5", "5")))...)
	objects = append(objects, pointers(f.Provisioners)...)
	objects = append(objects, pointers(f.Volumes)...)
	objects = append(objects, pointers(f.Stages)...)
	objects = append(objects, pointers(append(f.Pods, corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: "client"}}))...)
	return append(objects, &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-u1"}},
		&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: "data", UID: "u1"}})
}

func TestGather_ReadsTheInstallation_InItsNamespace(t *testing.T) {
	f, err := Gather(t.Context(), reader(t, allowed, installed(t)...), "0.2.0", atNoon)
	if err != nil {
		t.Fatal(err)
	}
	// The fake API server knows no policies.
	for _, name := range policyNames {
		f.Policies[name], f.Bindings[name] = true, true
	}
	if r := Examine(f); r.Result != OK || r.Namespace != "storage" {
		t.Errorf("in namespace %q: %q, unread: %q", r.Namespace, found(r), f.Unread)
	}
	got := fmt.Sprintf("%d agents, %d nodes, %d stages, %d volumes, %d workflow pods, %d quotas, %d claims", len(f.Agents), len(f.Nodes), len(f.Stages), len(f.Volumes), len(f.Pods), len(f.Quotas), len(f.Claims))
	if want := "4 agents, 2 nodes, 1 stages, 1 volumes, 1 workflow pods, 2 quotas, 1 claims"; got != want {
		t.Errorf("it reads %s, want %s", got, want)
	}
}

// A cluster has one of the two versions of COSI, and PaV serves both.
func TestGather_ReadsWhichVersionsOfClaimsOfBucketsAreServed(t *testing.T) {
	const claims, cosi = "objectbucketclaims.objectbucket.io", "bucketclaims.objectstorage.k8s.io"
	for name, test := range map[string]struct {
		definition string
		versions   []apiextensionsv1.CustomResourceDefinitionVersion
		want       bool
	}{
		"COSI v1alpha1":              {cosi, []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1alpha1", Served: true}}, true},
		"COSI v1alpha2":              {cosi, []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1alpha2", Served: true}}, true},
		"COSI's first proposal":      {"buckets.cosi.io", []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1alpha1", Served: true}}, true},
		"COSI v1beta1":               {cosi, []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1alpha2"}, {Name: "v1beta1", Served: true}}, false},
		"ObjectBucketClaims":         {claims, []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1alpha1", Served: true}}, true},
		"ObjectBucketClaims, as new": {claims, []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1alpha2", Served: true}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			definition := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: test.definition}}
			definition.Spec.Versions = test.versions
			f, err := Gather(t.Context(), reader(t, allowed, append(installed(t), definition)...), "0.2.0", atNoon)
			if err != nil {
				t.Fatal(err)
			}
			if got, found := f.BucketAPIs[test.definition]; !found || got != test.want || len(f.BucketAPIs) != 1 {
				t.Errorf("got %v", f.BucketAPIs)
			}
		})
	}
}

func TestGather_WhereSomethingCannotBeRead_ReadsTheRest(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("no right"))
	for name, test := range map[string]struct {
		kind   string
		answer error
		may    right
		want   string // "" if nothing can be read
	}{
		"a right is lacking":               {"Lease", forbidden, getLease, "you may not get leases in namespace storage"},
		"the API server fails":             {"Node", apierrors.NewInternalError(errors.New("etcd is slow")), listNodes, "cannot list nodes: Internal error occurred: etcd is slow"},
		"the kind does not exist":          {"PavStage", &meta.NoKindMatchError{}, listStages, "cannot list pavstages: the cluster does not have that kind of object"},
		"the kind has just been removed":   {"PavVolume", apierrors.NewNotFound(schema.GroupResource{}, ""), listVolumes, "cannot list pavvolumes: the cluster does not have that kind of object"},
		"the user is not known":            {"PavVolume", apierrors.NewUnauthorized(""), listVolumes, ""},
		"the API server cannot be reached": {"PavVolume", errors.New("connection refused"), listVolumes, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := Gather(t.Context(), reader(t, func(kind string) error {
				if kind == test.kind {
					return test.answer
				}
				return nil
			}, installed(t)...), "0.2.0", atNoon)
			if test.want == "" {
				if !errors.Is(err, test.answer) {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if f.Unread[test.may] != test.want || len(f.Unread) != 1 || len(f.CSIDrivers) != 2 {
				t.Errorf("unread is %q, want %q; %d CSIDrivers", f.Unread, test.want, len(f.CSIDrivers))
			}
		})
	}
}

// Lists of any length are read completely.
func TestGather_ReadsAllPages(t *testing.T) {
	var objects []client.Object
	for i := range 3 {
		objects = append(objects, &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("driver-", i), Labels: map[string]string{"own": fmt.Sprint(i)}}})
	}
	paged := interceptor.NewClient(reader(t, allowed).(client.WithWatch), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			drivers, is := list.(*storagev1.CSIDriverList)
			if !is {
				return c.List(ctx, list, options...)
			}
			asked := (&client.ListOptions{}).ApplyOptions(options)
			at := len(asked.Continue)
			drivers.Items = append(drivers.Items[:0], *objects[at].(*storagev1.CSIDriver))
			drivers.Continue = strings.Repeat("x", (at+1)%len(objects))
			return nil
		},
	})
	f, err := Gather(t.Context(), paged, "0.2.0", atNoon)
	if err != nil {
		t.Fatal(err)
	}
	for i := range f.CSIDrivers {
		if want := objects[i]; f.CSIDrivers[i].Name != want.GetName() || f.CSIDrivers[i].Labels["own"] != fmt.Sprint(i) {
			t.Errorf("item %d is %s, with %v", i, f.CSIDrivers[i].Name, f.CSIDrivers[i].Labels)
		}
	}
	if len(f.CSIDrivers) != len(objects) {
		t.Errorf("%d of %d items are read", len(f.CSIDrivers), len(objects))
	}
}

package obc

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	objectbucketv1 "github.com/albertofaria/pav/internal/api/objectbucket/v1alpha1"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/protocol"
	"github.com/albertofaria/pav/internal/reconcile"
	"github.com/albertofaria/pav/internal/template"
)

// cluster is a cluster with a reconciler. The reconcilers of the records are played by the tests.
type cluster struct {
	client.WithWatch
	*testing.T
	reconciler *Reconciler
	events     *record.FakeRecorder
	configs    int // how often a ConfigMap was written

	stallsAt  string // the request before which the reconciler stalls
	meanwhile func() // what happens then
}

func newCluster(t *testing.T, objects ...client.Object) *cluster {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{pavv1.AddToScheme, objectbucketv1.AddToScheme, corev1.AddToScheme, storagev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c := &cluster{T: t, events: record.NewFakeRecorder(1000)}
	c.reconciler = &Reconciler{Events: c.events, Templates: template.NewEvaluator(template.DefaultLimits()), Now: func() time.Time { return noon }}
	builder := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithStatusSubresource(&objectbucketv1.ObjectBucketClaim{}, &objectbucketv1.ObjectBucket{}, &pavv1.PavBucket{}, &pavv1.PavBucketAccess{})
	for _, register := range []func(context.Context, client.FieldIndexer) error{reconcile.RegisterIndexes, c.reconciler.Index} {
		if err := register(t.Context(), indexer{builder}); err != nil {
			t.Fatal(err)
		}
	}
	c.WithWatch = builder.Build()
	c.restart()
	return c
}

type indexer struct{ *fake.ClientBuilder }

func (i indexer) IndexField(_ context.Context, object client.Object, field string, extract client.IndexerFunc) error {
	i.WithIndex(object, field, extract)
	return nil
}

// restart makes the reconciler forget everything.
func (c *cluster) restart() {
	former := c.reconciler
	c.reconciler = &Reconciler{
		Client: c.WithWatch, Live: c.WithWatch, Events: former.Events, Templates: former.Templates, Now: former.Now,
		Direct: interceptor.NewClient(c.WithWatch, interceptor.Funcs{
			Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
				return fmt.Errorf("the agent has no right to read ConfigMaps")
			},
			Create: func(ctx context.Context, direct client.WithWatch, object client.Object, options ...client.CreateOption) error {
				c.stall(createsConfigMap)
				c.configs++
				object.SetUID(types.UID(fmt.Sprintf("config-%d", c.configs)))
				return direct.Create(ctx, object, options...)
			},
			Update: c.replaceConfigMap,
		}),
	}
}

// The requests that a reconciler makes to write a ConfigMap, in their order.
const (
	seesConfigMap     = "it sees the ConfigMap"
	createsConfigMap  = "it creates the ConfigMap"
	replacesConfigMap = "it replaces the ConfigMap"
)

// stall lets something happen before a request, once.
func (c *cluster) stall(request string) {
	if request == c.stallsAt && c.meanwhile != nil {
		meanwhile := c.meanwhile
		c.meanwhile = nil
		meanwhile()
	}
}

// replaceConfigMap does what the policy pav-controller-config-maps does, and answers dry runs as an API server does.
func (c *cluster) replaceConfigMap(ctx context.Context, direct client.WithWatch, object client.Object, options ...client.UpdateOption) error {
	if object.GetResourceVersion() == "" {
		c.stall(seesConfigMap)
	} else {
		c.stall(replacesConfigMap)
	}
	has := &corev1.ConfigMap{}
	if err := direct.Get(ctx, client.ObjectKeyFromObject(object), has); err != nil {
		return err
	}
	resource := schema.GroupResource{Resource: "configmaps"}
	if has.Labels[pavv1.AccessLabel] != object.GetLabels()[pavv1.AccessLabel] {
		return apierrors.NewForbidden(resource, object.GetName(), nil)
	}
	if uid := object.GetUID(); uid != "" && uid != has.UID {
		return apierrors.NewConflict(resource, object.GetName(), nil)
	}
	object.SetUID(has.UID)
	if all := (&client.UpdateOptions{}); len(all.ApplyOptions(options).DryRun) > 0 {
		object.SetResourceVersion(has.ResourceVersion)
		return nil
	}
	c.configs++
	return direct.Update(ctx, object, options...)
}

// pass lets the reconciler work on a claim until it is idle, and returns when it wants to be called again.
func (c *cluster) pass(name types.NamespacedName) time.Duration {
	c.Helper()
	version, after := "", time.Duration(0)
	for range 10 {
		result, err := c.reconciler.Reconcile(c.Context(), ctrl.Request{NamespacedName: name})
		if err != nil {
			c.Fatal(err)
		}
		after = result.RequeueAfter
		now := c.version()
		if now == version {
			return after
		}
		version = now
	}
	c.Fatal("the reconciler never comes to rest")
	return after
}

// version changes with each object that the reconciler writes.
func (c *cluster) version() string {
	c.Helper()
	text := ""
	for _, list := range []client.ObjectList{&objectbucketv1.ObjectBucketClaimList{}, &objectbucketv1.ObjectBucketList{}, &pavv1.PavBucketList{}, &pavv1.PavBucketAccessList{}, &corev1.ConfigMapList{}} {
		if err := c.List(c.Context(), list); err != nil {
			c.Fatal(err)
		}
		raw, err := json.Marshal(list)
		c.must(err)
		text += string(raw)
	}
	return text
}

// get returns an object, or nil.
func get[T client.Object](c *cluster, object T, namespace, name string) T {
	c.Helper()
	var none T
	err := c.Get(c.Context(), types.NamespacedName{Namespace: namespace, Name: name}, object)
	if apierrors.IsNotFound(err) {
		return none
	}
	if err != nil {
		c.Fatal(err)
	}
	return object
}

func (c *cluster) claim(name types.NamespacedName) *objectbucketv1.ObjectBucketClaim {
	c.Helper()
	return get(c, &objectbucketv1.ObjectBucketClaim{}, name.Namespace, name.Name)
}

func (c *cluster) bucket(uid types.UID) *pavv1.PavBucket {
	c.Helper()
	return get(c, &pavv1.PavBucket{}, "", protocol.BucketRecord(uid))
}

func (c *cluster) access(uid types.UID) *pavv1.PavBucketAccess {
	c.Helper()
	return get(c, &pavv1.PavBucketAccess{}, "", protocol.AccessRecord(uid))
}

func (c *cluster) objectBucket(name types.NamespacedName) *objectbucketv1.ObjectBucket {
	c.Helper()
	return get(c, &objectbucketv1.ObjectBucket{}, "", objectbucketv1.BucketOf(name.Namespace, name.Name))
}

func (c *cluster) config(name types.NamespacedName) *corev1.ConfigMap {
	c.Helper()
	return get(c, &corev1.ConfigMap{}, name.Namespace, name.Name)
}

func (c *cluster) must(err error) {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
}

// serve does what the reconcilers of the records do for a claim that they can serve.
func (c *cluster) serve(uid types.UID) {
	c.Helper()
	bucket, access := c.bucket(uid), c.access(uid)
	bucket.Status.Phase, bucket.Status.BucketID, bucket.Status.Created = pavv1.BucketReady, bucket.Spec.BucketName, true
	bucket.Status.Info = map[string]string{"endpoint": "http://s3:9000"}
	c.must(c.Status().Update(c.Context(), bucket))
	access.Status.Phase, access.Status.Current = pavv1.AccessReady, &pavv1.GrantedAccount{AccountName: "ba"}
	c.must(c.Status().Update(c.Context(), access))
}

// forget does what the reconciler of a record does when it is done with it.
func (c *cluster) forget(record client.Object) {
	c.Helper()
	controllerutil.RemoveFinalizer(record, pavv1.BucketFinalizer)
	c.must(c.Update(c.Context(), record))
	c.must(client.IgnoreNotFound(c.Delete(c.Context(), record)))
}

// told reports whether an event has a text.
func (c *cluster) told(text string) bool {
	for {
		select {
		case event := <-c.events.Events:
			if strings.Contains(event, text) {
				return true
			}
		default:
			return false
		}
	}
}

// theClass and theProvisioner are those of the claims.
func theClass() *storagev1.StorageClass {
	class := claimed().class
	class.Parameters = map[string]string{"endpoint": "http://s3:9000"}
	return class
}

func theProvisioner() *pavv1.PavProvisioner {
	p := claimed().provisioner
	p.Spec.BucketValidation.Store = &pavv1.Template{Raw: []byte(`"{{ params.endpoint }}"`)}
	return p
}

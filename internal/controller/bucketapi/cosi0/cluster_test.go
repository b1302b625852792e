package cosi0

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	cosiv0 "github.com/albertofaria/pav/internal/api/cosi/proposal"
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
}

func newCluster(t *testing.T, objects ...client.Object) *cluster {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{pavv1.AddToScheme, cosiv0.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c := &cluster{T: t, events: record.NewFakeRecorder(1000)}
	c.reconciler = &Reconciler{Events: c.events, Templates: template.NewEvaluator(template.DefaultLimits()), Now: func() time.Time { return noon }}
	builder := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithStatusSubresource(&cosiv0.Bucket{}, &cosiv0.BucketContent{}, &pavv1.PavBucket{}, &pavv1.PavBucketAccess{})
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
	c.reconciler = &Reconciler{Client: c.WithWatch, Live: c.WithWatch, Events: former.Events, Templates: former.Templates, Now: former.Now}
}

// pass lets the reconciler work until it is idle, and returns when it wants to be called again.
func (c *cluster) pass() time.Duration {
	c.Helper()
	version := ""
	for range 10 {
		result, err := c.reconciler.Reconcile(c.Context(), ctrl.Request{NamespacedName: photos})
		if err != nil {
			c.Fatal(err)
		}
		now := c.version()
		if now == version {
			return result.RequeueAfter
		}
		version = now
	}
	c.Fatal("the reconciler never comes to rest")
	return 0
}

// version changes with each object that the reconciler writes.
func (c *cluster) version() string {
	c.Helper()
	text := ""
	for _, list := range []client.ObjectList{&cosiv0.BucketList{}, &cosiv0.BucketContentList{}, &pavv1.PavBucketList{}, &pavv1.PavBucketAccessList{}} {
		c.must(c.List(c.Context(), list))
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
	c.must(err)
	return object
}

func (c *cluster) object() *cosiv0.Bucket {
	c.Helper()
	return get(c, &cosiv0.Bucket{}, photos.Namespace, photos.Name)
}

func (c *cluster) content(name string) *cosiv0.BucketContent {
	c.Helper()
	return get(c, &cosiv0.BucketContent{}, "", name)
}

func (c *cluster) bucket(uid types.UID) *pavv1.PavBucket {
	c.Helper()
	return get(c, &pavv1.PavBucket{}, "", protocol.BucketRecord(uid))
}

func (c *cluster) access(uid types.UID) *pavv1.PavBucketAccess {
	c.Helper()
	return get(c, &pavv1.PavBucketAccess{}, "", protocol.AccessRecord(uid))
}

func (c *cluster) must(err error) {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
}

// serve does what the reconcilers of the records do for a Bucket that they can serve.
func (c *cluster) serve(uid types.UID) {
	c.Helper()
	bucket, access := c.bucket(uid), c.access(uid)
	bucket.Status.Phase, bucket.Status.BucketID, bucket.Status.Created = pavv1.BucketReady, bucket.Spec.BucketName, true
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

// remove deletes the Bucket, and plays the end of its records.
func (c *cluster) remove(uid types.UID) {
	c.Helper()
	c.must(c.Delete(c.Context(), c.object()))
	c.pass()
	c.forget(c.access(uid))
	c.pass()
	c.forget(c.bucket(uid))
	c.pass()
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

// theClass and theProvisioner are those of the Buckets.
func theClass(changes ...func(*cosiv0.BucketClass)) *cosiv0.BucketClass {
	class := asked().class
	for _, change := range changes {
		change(class)
	}
	return class
}

func theProvisioner() *pavv1.PavProvisioner {
	p := asked().provisioner
	p.Spec.BucketValidation = &pavv1.BucketValidation{Store: &pavv1.Template{Raw: []byte(`"{{ params.endpoint }}"`)}}
	return p
}

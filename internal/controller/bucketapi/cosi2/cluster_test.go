package cosi2

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

	cosiv2 "github.com/albertofaria/pav/internal/api/cosi/v1alpha2"
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
	for _, add := range []func(*runtime.Scheme) error{pavv1.AddToScheme, cosiv2.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c := &cluster{T: t, events: record.NewFakeRecorder(1000)}
	c.reconciler = &Reconciler{Events: c.events, Templates: template.NewEvaluator(template.DefaultLimits()), Now: func() time.Time { return noon }}
	builder := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithStatusSubresource(&cosiv2.BucketClaim{}, &cosiv2.Bucket{}, &cosiv2.BucketAccess{}, &pavv1.PavBucket{}, &pavv1.PavBucketAccess{})
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

// pass lets the reconciler work on the claims and the access until it is idle.
func (c *cluster) pass() {
	c.Helper()
	version := ""
	for range 20 {
		for _, work := range []struct {
			of    types.NamespacedName
			visit func(context.Context, ctrl.Request) (ctrl.Result, error)
		}{{photos, c.reconciler.reconcileClaim}, {films, c.reconciler.reconcileClaim}, {app, c.reconciler.reconcileAccess}} {
			if _, err := work.visit(c.Context(), ctrl.Request{NamespacedName: work.of}); err != nil {
				c.Fatal(err)
			}
		}
		now := c.version()
		if now == version {
			return
		}
		version = now
	}
	c.Fatal("the reconciler never comes to rest")
}

// version changes with each object that the reconciler writes.
func (c *cluster) version() string {
	c.Helper()
	text := ""
	for _, list := range []client.ObjectList{&cosiv2.BucketClaimList{}, &cosiv2.BucketList{}, &cosiv2.BucketAccessList{}, &pavv1.PavBucketList{}, &pavv1.PavBucketAccessList{}} {
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

func (c *cluster) claim() *cosiv2.BucketClaim {
	c.Helper()
	return get(c, &cosiv2.BucketClaim{}, photos.Namespace, photos.Name)
}

func (c *cluster) bucket(name string) *cosiv2.Bucket {
	c.Helper()
	return get(c, &cosiv2.Bucket{}, "", name)
}

func (c *cluster) access() *cosiv2.BucketAccess {
	c.Helper()
	return get(c, &cosiv2.BucketAccess{}, app.Namespace, app.Name)
}

func (c *cluster) bucketRecord(uid types.UID) *pavv1.PavBucket {
	c.Helper()
	return get(c, &pavv1.PavBucket{}, "", protocol.BucketRecord(uid))
}

func (c *cluster) accessRecord() *pavv1.PavBucketAccess {
	c.Helper()
	return get(c, &pavv1.PavBucketAccess{}, "", protocol.AccessRecord(accessUID))
}

func (c *cluster) must(err error) {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
}

// serve does what the reconciler of PavBuckets does for a claim that it can serve.
func (c *cluster) serve(claim types.UID, id string) {
	c.Helper()
	b := c.bucketRecord(claim)
	b.Status.Phase, b.Status.BucketID, b.Status.Created, b.Status.Protocols = pavv1.BucketReady, id, true, b.Spec.Protocols
	c.must(c.Status().Update(c.Context(), b))
}

// grant does what the reconciler of PavBucketAccesses does for an access that it can grant.
func (c *cluster) grant(account string) {
	c.Helper()
	a := c.accessRecord()
	a.Status.Phase, a.Status.Current = pavv1.AccessReady, &pavv1.GrantedAccount{AccountName: "ba", AccountID: account}
	c.must(c.Status().Update(c.Context(), a))
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

// theClass, theAccessClass and theProvisioner are those of the claim and the access.
func theClass() *cosiv2.BucketClass {
	class := claimed().class
	class.Spec.Parameters = map[string]string{"endpoint": "http://s3:9000"}
	return class
}

func theAccessClass() *cosiv2.BucketAccessClass {
	class := asked().class
	class.Spec.Parameters = map[string]string{"role": "user"}
	class.Spec.MultiBucketAccess = cosiv2.MultiBucketAccessMultiple
	return class
}

func theProvisioner() *pavv1.PavProvisioner {
	p := claimed().provisioner
	p.Spec.BucketValidation = &pavv1.BucketValidation{Store: &pavv1.Template{Raw: []byte(`"{{ params.endpoint }}"`)}}
	p.Spec.BucketAccessGrant = &pavv1.BucketAccessGrant{}
	return p
}

// fieldsOf returns the fields that a list selects by.
func fieldsOf(options []client.ListOption) []string {
	all := (&client.ListOptions{}).ApplyOptions(options)
	if all.FieldSelector == nil {
		return nil
	}
	var fields []string
	for _, r := range all.FieldSelector.Requirements() {
		fields = append(fields, r.Field)
	}
	return fields
}

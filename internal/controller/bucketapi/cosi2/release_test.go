package cosi2

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	cosiv2 "github.com/albertofaria/pav/internal/api/cosi/v1alpha2"
)

// An administrator wants the Bucket to stay just before it is deleted.
func TestLife_ABucketIsRetainedInTheLastMoment(t *testing.T) {
	c := newCluster(t, claimed().claim, theClass(), theProvisioner())
	c.pass()
	c.serve(claimUID, "id")
	c.pass()
	c.must(c.Delete(t.Context(), c.claim()))
	c.pass()
	c.forget(c.bucketRecord(claimUID))
	c.reconciler.Client = interceptor.NewClient(c.WithWatch, interceptor.Funcs{
		Delete: func(ctx context.Context, cluster client.WithWatch, object client.Object, options ...client.DeleteOption) error {
			changed := &cosiv2.Bucket{}
			c.must(cluster.Get(ctx, client.ObjectKeyFromObject(object), changed))
			changed.Spec.DeletionPolicy = cosiv2.DeletionPolicyRetain
			c.must(cluster.Update(ctx, changed))
			return cluster.Delete(ctx, object, options...)
		},
	})
	c.pass()
	if b := c.bucket(bucketName); b == nil || b.DeletionTimestamp != nil || isHeld(b) {
		t.Errorf("the Bucket is %v", b)
	}
}

// The BucketClass of another driver's claim was written again, with a PavProvisioner as its driver. The claim and its Bucket are still the
// other driver's: nothing is said of them, and when the claim is deleted, that driver has to let it go.
func TestLife_OfAClaimOfAnotherDriver(t *testing.T) {
	claim := claimed().claim
	claim.Finalizers = []string{cosiv2.Finalizer}
	b := &cosiv2.Bucket{ObjectMeta: metav1.ObjectMeta{Name: bucketName, Finalizers: []string{cosiv2.Finalizer}}}
	b.Spec = cosiv2.BucketSpec{DriverName: "x", DeletionPolicy: cosiv2.DeletionPolicyDelete, BucketClaimRef: cosiv2.BucketClaimReference{Namespace: "a", Name: "photos", UID: claimUID}}
	c := newCluster(t, claim, b, theClass(), theProvisioner())
	for _, deleted := range []bool{false, true} {
		if deleted {
			c.must(c.Delete(t.Context(), c.claim()))
		}
		before := c.version()
		c.pass()
		if diff := cmp.Diff(before, c.version()); diff != "" || c.told("") {
			t.Errorf("with a claim that is deleted (%t), something is done (-before +after), or said:\n%s", deleted, diff)
		}
	}
}

package cosi2

import (
	"context"
	"testing"

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

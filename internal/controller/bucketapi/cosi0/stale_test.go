package cosi0

import (
	"context"
	"fmt"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	cosiv0 "github.com/albertofaria/pav/internal/api/cosi/proposal"
)

// By a cache that is behind, nothing is given up, deleted or let go.
func TestLife_TheCacheIsBehind(t *testing.T) {
	for name, test := range map[string]struct {
		deleted bool     // whether the Bucket is being deleted
		hidden  []string // the types of what the cache does not have
	}{
		"it lacks the Bucket":                    {hidden: []string{"*proposal.Bucket"}},
		"it lacks the records":                   {deleted: true, hidden: []string{"*v1alpha1.PavBucketList", "*v1alpha1.PavBucketAccessList"}},
		"it has the BucketContent only":          {hidden: []string{"*proposal.Bucket", "*v1alpha1.PavBucketList", "*v1alpha1.PavBucketAccessList"}},
		"it lacks the record of the access":      {deleted: true, hidden: []string{"*v1alpha1.PavBucketAccessList"}},
		"it lacks the records and what is shown": {deleted: true, hidden: []string{"*v1alpha1.PavBucketList", "*v1alpha1.PavBucketAccessList", "*proposal.BucketContentList", "*proposal.BucketContent"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, asked().object, theClass(), theProvisioner())
			c.pass()
			c.serve(bucketUID)
			c.pass()
			if test.deleted {
				c.must(c.Delete(t.Context(), c.object()))
			}
			c.reconciler.Client = interceptor.NewClient(c.WithWatch, interceptor.Funcs{
				Get: func(ctx context.Context, cache client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
					if slices.Contains(test.hidden, fmt.Sprintf("%T", object)) {
						return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
					}
					return cache.Get(ctx, key, object, options...)
				},
				List: func(ctx context.Context, cache client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
					if slices.Contains(test.hidden, fmt.Sprintf("%T", list)) {
						return nil
					}
					return cache.List(ctx, list, options...)
				},
			})
			if c.pass() <= 0 {
				t.Error("there is no other pass")
			}
			if c.access(bucketUID).Spec.Released || c.bucket(bucketUID).Spec.Released {
				t.Error("a record is given up")
			}
			for what, object := range map[string]client.Object{"Bucket": c.object(), "BucketContent": c.content(contentName)} {
				if !controllerutil.ContainsFinalizer(object, cosiv0.Finalizer) {
					t.Errorf("the %s is let go", what)
				}
			}
		})
	}
}

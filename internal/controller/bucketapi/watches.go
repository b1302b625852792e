package bucketapi

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/reconcile"
)

// KeyOfClaim is the key of a claim in an index.
func KeyOfClaim(name types.NamespacedName) string { return reconcile.Bucket(name.String()) }

// IndexedBy returns the index of objects of one type by a key; "" for none.
func IndexedBy[T client.Object](key func(T) string) client.IndexerFunc {
	return IndexedByAll(func(object T) []string {
		if value := key(object); value != "" {
			return []string{value}
		}
		return nil
	})
}

// IndexedByAll returns the index of objects of one type by several keys.
func IndexedByAll[T client.Object](keys func(T) []string) client.IndexerFunc {
	return func(object client.Object) []string {
		if typed, ok := object.(T); ok {
			return keys(typed)
		}
		return nil
	}
}

// Requests returns the request for the objects of a name.
func Requests(namespace, name string) []ctrl.Request {
	return []ctrl.Request{{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}}
}

// Records maps the records of an API to the objects that they are of.
type Records struct {
	// Client reads from the cache.
	Client client.Reader

	// API is the API. Records of others are mapped to nothing.
	API pavv1.BucketAPI
}

// Claim maps a PavBucket to its claim.
func (r Records) Claim(_ context.Context, object client.Object) []ctrl.Request {
	if b, ok := object.(*pavv1.PavBucket); ok && b.Spec.API == r.API {
		return Requests(b.Spec.ClaimRef.Namespace, b.Spec.ClaimRef.Name)
	}
	return nil
}

// Claims maps a PavBucketAccess to the claims of its buckets, which it keeps from being deleted: it may be that of a volume.
func (r Records) Claims(ctx context.Context, object client.Object) []ctrl.Request {
	a, ok := object.(*pavv1.PavBucketAccess)
	if !ok {
		return nil
	}
	var requests []ctrl.Request
	for _, accessed := range a.Spec.Buckets {
		bucket, err := Named(ctx, r.Client, accessed.Bucket, &pavv1.PavBucket{})
		if err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "cannot look a PavBucket up", "bucket", accessed.Bucket)
			continue
		}
		if bucket != nil {
			requests = append(requests, r.Claim(ctx, bucket)...)
		}
	}
	return requests
}

// Access maps a PavBucketAccess to the object that asks for access.
func (r Records) Access(_ context.Context, object client.Object) []ctrl.Request {
	if a, ok := object.(*pavv1.PavBucketAccess); ok && a.Spec.API == r.API {
		return Requests(a.Spec.Requester.Namespace, a.Spec.Requester.Name)
	}
	return nil
}

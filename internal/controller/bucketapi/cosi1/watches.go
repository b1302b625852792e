package cosi1

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cosiv1 "github.com/albertofaria/pav/internal/api/cosi/v1alpha1"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/bucketapi"
)

// The indexes of COSI's kinds.
const (
	// claimsByClass finds claims by their BucketClass, and claimsByExisting by the existing Bucket that they ask for.
	claimsByClass    = "bucketclaim.class"
	claimsByExisting = "bucketclaim.existing"

	// bucketsByClaim finds Buckets by the key of the claim that they name, and existingByDriver the Buckets of administrators by their driver.
	bucketsByClaim   = "cosibucket.claim"
	existingByDriver = "cosibucket.driver"

	// accessesByClass finds accesses by their BucketAccessClass, and accessesByClaim by the key of the claim that they name.
	accessesByClass = "bucketaccess.class"
	accessesByClaim = "bucketaccess.claim"
)

// Index adds the indexes of COSI's kinds to the cache.
func (r *Reconciler) Index(ctx context.Context, indexer client.FieldIndexer) error {
	for _, index := range []struct {
		name    string
		object  client.Object
		extract client.IndexerFunc
	}{
		{claimsByClass, &cosiv1.BucketClaim{}, bucketapi.IndexedBy(func(c *cosiv1.BucketClaim) string { return c.Spec.BucketClassName })},
		{claimsByExisting, &cosiv1.BucketClaim{}, bucketapi.IndexedBy(func(c *cosiv1.BucketClaim) string { return c.Spec.ExistingBucketName })},
		{bucketsByClaim, &cosiv1.Bucket{}, bucketapi.IndexedBy(func(b *cosiv1.Bucket) string {
			ref := reference(b)
			return bucketapi.KeyOfClaim(types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name})
		})},
		{existingByDriver, &cosiv1.Bucket{}, bucketapi.IndexedBy(func(b *cosiv1.Bucket) string {
			if b.Spec.ExistingBucketID == "" {
				return ""
			}
			return b.Spec.DriverName
		})},
		{accessesByClass, &cosiv1.BucketAccess{}, bucketapi.IndexedBy(func(a *cosiv1.BucketAccess) string { return a.Spec.BucketAccessClassName })},
		{accessesByClaim, &cosiv1.BucketAccess{}, bucketapi.IndexedBy(func(a *cosiv1.BucketAccess) string {
			return bucketapi.KeyOfClaim(types.NamespacedName{Namespace: a.Namespace, Name: a.Spec.BucketClaimName})
		})},
	} {
		if err := indexer.IndexField(ctx, index.object, index.name, index.extract); err != nil {
			return fmt.Errorf("adding index %s: %w", index.name, err)
		}
	}
	return nil
}

// records maps the records of this version.
func (r *Reconciler) records() bucketapi.Records {
	return bucketapi.Records{Client: r.Client, API: pavv1.BucketAPICOSI1}
}

// claimsOfBucket maps a Bucket to the claim that it names, and to those that ask for it.
func (r *Reconciler) claimsOfBucket(ctx context.Context, object client.Object) []ctrl.Request {
	requests := r.claimsBy(ctx, claimsByExisting, object.GetName())
	if b, ok := object.(*cosiv1.Bucket); ok {
		if ref := reference(b); ref.Name != "" {
			requests = append(requests, bucketapi.Requests(ref.Namespace, ref.Name)...)
		}
	}
	return requests
}

// claimsOfClass maps a BucketClass to its claims.
func (r *Reconciler) claimsOfClass(ctx context.Context, object client.Object) []ctrl.Request {
	return r.claimsBy(ctx, claimsByClass, object.GetName())
}

// claimsOfProvisioner maps a PavProvisioner to the claims of its classes, and to those that ask for its existing Buckets.
func (r *Reconciler) claimsOfProvisioner(ctx context.Context, object client.Object) []ctrl.Request {
	var requests []ctrl.Request
	classes := &cosiv1.BucketClassList{}
	if err := r.Client.List(ctx, classes, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "cannot look BucketClasses up")
	}
	for i := range classes.Items {
		if class := &classes.Items[i]; class.DriverName == object.GetName() {
			requests = append(requests, r.claimsOfClass(ctx, class)...)
		}
	}
	buckets := &cosiv1.BucketList{}
	if err := r.Client.List(ctx, buckets, client.MatchingFields{existingByDriver: object.GetName()}, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "cannot look Buckets up", "driver", object.GetName())
	}
	for i := range buckets.Items {
		requests = append(requests, r.claimsBy(ctx, claimsByExisting, buckets.Items[i].Name)...)
	}
	return requests
}

// claimsBy returns requests for the claims that an index lists, and that may wait for something.
func (r *Reconciler) claimsBy(ctx context.Context, index, key string) []ctrl.Request {
	claims := &cosiv1.BucketClaimList{}
	if err := r.Client.List(ctx, claims, client.MatchingFields{index: key}, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "cannot look BucketClaims up", "index", index, "key", key)
		return nil
	}
	var requests []ctrl.Request
	for i := range claims.Items {
		if c := &claims.Items[i]; !c.Status.BucketReady || c.DeletionTimestamp != nil {
			requests = append(requests, bucketapi.Requests(c.Namespace, c.Name)...)
		}
	}
	return requests
}

// accessesOfBucket maps the record of a claim to the accesses that may wait for it.
func (r *Reconciler) accessesOfBucket(ctx context.Context, object client.Object) []ctrl.Request {
	if b, ok := object.(*pavv1.PavBucket); ok && b.Spec.API == pavv1.BucketAPICOSI1 {
		return r.accessesBy(ctx, accessesByClaim, bucketapi.KeyOfClaim(types.NamespacedName{Namespace: b.Spec.ClaimRef.Namespace, Name: b.Spec.ClaimRef.Name}))
	}
	return nil
}

// accessesOfClaim maps a claim to the accesses that may wait for it.
func (r *Reconciler) accessesOfClaim(ctx context.Context, object client.Object) []ctrl.Request {
	return r.accessesBy(ctx, accessesByClaim, bucketapi.KeyOfClaim(client.ObjectKeyFromObject(object)))
}

// accessesOfClass maps a BucketAccessClass to its accesses.
func (r *Reconciler) accessesOfClass(ctx context.Context, object client.Object) []ctrl.Request {
	return r.accessesBy(ctx, accessesByClass, object.GetName())
}

// accessesOfProvisioner maps a PavProvisioner to the accesses of its classes.
func (r *Reconciler) accessesOfProvisioner(ctx context.Context, object client.Object) []ctrl.Request {
	classes := &cosiv1.BucketAccessClassList{}
	if err := r.Client.List(ctx, classes, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "cannot look BucketAccessClasses up")
		return nil
	}
	var requests []ctrl.Request
	for i := range classes.Items {
		if class := &classes.Items[i]; class.DriverName == object.GetName() {
			requests = append(requests, r.accessesOfClass(ctx, class)...)
		}
	}
	return requests
}

// accessesBy returns requests for the accesses that an index lists, and that may wait for something. A key may be that of several claims.
func (r *Reconciler) accessesBy(ctx context.Context, index, key string) []ctrl.Request {
	accesses := &cosiv1.BucketAccessList{}
	if err := r.Client.List(ctx, accesses, client.MatchingFields{index: key}, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "cannot look BucketAccesses up", "index", index, "key", key)
		return nil
	}
	var requests []ctrl.Request
	for i := range accesses.Items {
		if a := &accesses.Items[i]; !a.Status.AccessGranted || a.DeletionTimestamp != nil {
			requests = append(requests, bucketapi.Requests(a.Namespace, a.Name)...)
		}
	}
	return requests
}

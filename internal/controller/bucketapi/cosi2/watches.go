package cosi2

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cosiv2 "github.com/albertofaria/pav/internal/api/cosi/v1alpha2"
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

	// accessesByClass finds accesses by their BucketAccessClass, accessesByDriver by the driver that they have already, and accessesByClaim
	// by the keys of the claims that they name.
	accessesByClass  = "bucketaccess.class"
	accessesByDriver = "bucketaccess.driver"
	accessesByClaim  = "bucketaccess.claim"
)

// Index adds the indexes of COSI's kinds to the cache.
func (r *Reconciler) Index(ctx context.Context, indexer client.FieldIndexer) error {
	for _, index := range []struct {
		name    string
		object  client.Object
		extract client.IndexerFunc
	}{
		{claimsByClass, &cosiv2.BucketClaim{}, bucketapi.IndexedBy(func(c *cosiv2.BucketClaim) string { return c.Spec.BucketClassName })},
		{claimsByExisting, &cosiv2.BucketClaim{}, bucketapi.IndexedBy(func(c *cosiv2.BucketClaim) string { return c.Spec.ExistingBucketName })},
		{bucketsByClaim, &cosiv2.Bucket{}, bucketapi.IndexedBy(func(b *cosiv2.Bucket) string { return bucketapi.KeyOfClaim(claimOf(b)) })},
		{existingByDriver, &cosiv2.Bucket{}, bucketapi.IndexedBy(func(b *cosiv2.Bucket) string {
			if b.Spec.ExistingBucketID == "" {
				return ""
			}
			return b.Spec.DriverName
		})},
		{accessesByClass, &cosiv2.BucketAccess{}, bucketapi.IndexedBy(func(a *cosiv2.BucketAccess) string { return a.Spec.BucketAccessClassName })},
		{accessesByDriver, &cosiv2.BucketAccess{}, bucketapi.IndexedBy(func(a *cosiv2.BucketAccess) string { return a.Status.DriverName })},
		{accessesByClaim, &cosiv2.BucketAccess{}, bucketapi.IndexedByAll(keysOfClaims)},
	} {
		if err := indexer.IndexField(ctx, index.object, index.name, index.extract); err != nil {
			return fmt.Errorf("adding index %s: %w", index.name, err)
		}
	}
	return nil
}

// claimOf returns the name of the claim that a Bucket names.
func claimOf(b *cosiv2.Bucket) types.NamespacedName {
	return types.NamespacedName{Namespace: b.Spec.BucketClaimRef.Namespace, Name: b.Spec.BucketClaimRef.Name}
}

// keysOfClaims returns the keys of the claims that an access names.
func keysOfClaims(a *cosiv2.BucketAccess) []string {
	keys := make([]string, len(a.Spec.BucketClaims))
	for i, asked := range a.Spec.BucketClaims {
		keys[i] = bucketapi.KeyOfClaim(types.NamespacedName{Namespace: a.Namespace, Name: asked.BucketClaimName})
	}
	return keys
}

// records maps the records of this version.
func (r *Reconciler) records() bucketapi.Records {
	return bucketapi.Records{Client: r.Client, API: pavv1.BucketAPICOSI2}
}

// claimsOfBucket maps a Bucket to the claim that it names, and to those that ask for it.
func (r *Reconciler) claimsOfBucket(ctx context.Context, object client.Object) []ctrl.Request {
	requests := r.claimsBy(ctx, claimsByExisting, object.GetName())
	if b, ok := object.(*cosiv2.Bucket); ok {
		claim := claimOf(b)
		requests = append(requests, bucketapi.Requests(claim.Namespace, claim.Name)...)
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
	classes := &cosiv2.BucketClassList{}
	if err := r.Client.List(ctx, classes, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "cannot look BucketClasses up")
	}
	for i := range classes.Items {
		if class := &classes.Items[i]; class.Spec.DriverName == object.GetName() {
			requests = append(requests, r.claimsOfClass(ctx, class)...)
		}
	}
	buckets := &cosiv2.BucketList{}
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
	claims := &cosiv2.BucketClaimList{}
	if err := r.Client.List(ctx, claims, client.MatchingFields{index: key}, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "cannot look BucketClaims up", "index", index, "key", key)
		return nil
	}
	var requests []ctrl.Request
	for i := range claims.Items {
		if c := &claims.Items[i]; !c.Status.ReadyToUse || c.DeletionTimestamp != nil {
			requests = append(requests, bucketapi.Requests(c.Namespace, c.Name)...)
		}
	}
	return requests
}

// accessesOfBucket maps the record of a claim to the accesses that may wait for it.
func (r *Reconciler) accessesOfBucket(ctx context.Context, object client.Object) []ctrl.Request {
	if b, ok := object.(*pavv1.PavBucket); ok && b.Spec.API == pavv1.BucketAPICOSI2 {
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

// accessesOfProvisioner maps a PavProvisioner to the accesses that have it as their driver, and to those of its classes.
func (r *Reconciler) accessesOfProvisioner(ctx context.Context, object client.Object) []ctrl.Request {
	requests := r.accessesBy(ctx, accessesByDriver, object.GetName())
	classes := &cosiv2.BucketAccessClassList{}
	if err := r.Client.List(ctx, classes, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "cannot look BucketAccessClasses up")
		return requests
	}
	for i := range classes.Items {
		if class := &classes.Items[i]; class.Spec.DriverName == object.GetName() {
			requests = append(requests, r.accessesOfClass(ctx, class)...)
		}
	}
	return requests
}

// accessesBy returns requests for the accesses that an index lists, and that may wait for something. A key may be that of several claims.
func (r *Reconciler) accessesBy(ctx context.Context, index, key string) []ctrl.Request {
	accesses := &cosiv2.BucketAccessList{}
	if err := r.Client.List(ctx, accesses, client.MatchingFields{index: key}, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "cannot look BucketAccesses up", "index", index, "key", key)
		return nil
	}
	var requests []ctrl.Request
	for i := range accesses.Items {
		if a := &accesses.Items[i]; !a.Status.ReadyToUse || a.DeletionTimestamp != nil {
			requests = append(requests, bucketapi.Requests(a.Namespace, a.Name)...)
		}
	}
	return requests
}

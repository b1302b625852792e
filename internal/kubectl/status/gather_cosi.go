package status

import (
	"context"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	cosiv1 "github.com/albertofaria/pav/internal/api/cosi/v1alpha1"
	cosiv2 "github.com/albertofaria/pav/internal/api/cosi/v1alpha2"
	"github.com/albertofaria/pav/internal/protocol"
)

// readCOSI reads an object of COSI; nil if there is none. A cluster has one of the two versions. Facts have the objects of both as those of
// v1alpha1, which convert makes of those of v1alpha2.
func readCOSI[V1, V2 client.Object](ctx context.Context, g *gatherer, namespace, name, what string, v1 V1, v2 V2, convert func(V2) V1) (V1, error) {
	var none V1
	found, err := g.getKnown(ctx, namespace, name, what, v1)
	if err != nil {
		return none, err
	}
	if found {
		return v1, nil
	}
	if found, err = g.getKnown(ctx, namespace, name, what, v2); err != nil || !found {
		return none, err
	}
	return convert(v2), nil
}

// cosiClaim reads a BucketClaim.
func (g *gatherer) cosiClaim(ctx context.Context, namespace, name string) (*cosiv1.BucketClaim, error) {
	return readCOSI(ctx, g, namespace, name, hiddenBucketClaims, &cosiv1.BucketClaim{}, &cosiv2.BucketClaim{}, func(c *cosiv2.BucketClaim) *cosiv1.BucketClaim {
		g.Bucket.ClaimError = messageOf(c.Status.Error)
		return &cosiv1.BucketClaim{
			ObjectMeta: c.ObjectMeta,
			Spec:       cosiv1.BucketClaimSpec{BucketClassName: c.Spec.BucketClassName, ExistingBucketName: c.Spec.ExistingBucketName},
			Status:     cosiv1.BucketClaimStatus{BucketReady: c.Status.ReadyToUse, BucketName: c.Status.BoundBucketName},
		}
	})
}

// cosiAccess reads a BucketAccess.
func (g *gatherer) cosiAccess(ctx context.Context, namespace, name string) (*cosiv1.BucketAccess, error) {
	return readCOSI(ctx, g, namespace, name, hiddenAccesses, &cosiv1.BucketAccess{}, &cosiv2.BucketAccess{}, func(a *cosiv2.BucketAccess) *cosiv1.BucketAccess {
		b := g.Bucket
		b.AccessError, b.AskedClaims, b.AskedSecrets = messageOf(a.Status.Error), nil, nil
		for _, asked := range a.Spec.BucketClaims {
			b.AskedClaims, b.AskedSecrets = append(b.AskedClaims, asked.BucketClaimName), append(b.AskedSecrets, asked.AccessSecretName)
		}
		access := &cosiv1.BucketAccess{
			ObjectMeta: a.ObjectMeta,
			Spec:       cosiv1.BucketAccessSpec{BucketAccessClassName: a.Spec.BucketAccessClassName},
			Status:     cosiv1.BucketAccessStatus{AccessGranted: a.Status.ReadyToUse, AccountID: a.Status.AccountID},
		}
		if len(b.AskedClaims) > 0 {
			access.Spec.BucketClaimName = b.AskedClaims[0]
		}
		return access
	})
}

// cosiBucket reads the Bucket of a BucketClaim. The versions have different names for those that are made for claims.
func (g *gatherer) cosiBucket(ctx context.Context, claim *cosiv1.BucketClaim) (*cosiv1.Bucket, error) {
	names := []string{cosiv1.BucketOf(claim.UID), cosiv2.BucketOf(claim.UID)}
	if existing := claim.Spec.ExistingBucketName; existing != "" {
		names = []string{existing}
	}
	for _, name := range names {
		b, err := readCOSI(ctx, g, "", name, hiddenCOSIBuckets, &cosiv1.Bucket{}, &cosiv2.Bucket{}, func(b *cosiv2.Bucket) *cosiv1.Bucket {
			return &cosiv1.Bucket{
				ObjectMeta: b.ObjectMeta,
				Spec:       cosiv1.BucketSpec{DriverName: b.Spec.DriverName, DeletionPolicy: cosiv1.DeletionPolicy(b.Spec.DeletionPolicy)},
			}
		})
		if err != nil || b != nil {
			return b, err
		}
	}
	return nil, nil
}

// cosiClass reads a BucketClass.
func (g *gatherer) cosiClass(ctx context.Context, name string) (*cosiv1.BucketClass, error) {
	return readCOSI(ctx, g, "", name, hiddenBucketClasses, &cosiv1.BucketClass{}, &cosiv2.BucketClass{}, func(c *cosiv2.BucketClass) *cosiv1.BucketClass {
		return &cosiv1.BucketClass{ObjectMeta: c.ObjectMeta, DriverName: c.Spec.DriverName, DeletionPolicy: cosiv1.DeletionPolicy(c.Spec.DeletionPolicy)}
	})
}

// cosiAccessClass reads a BucketAccessClass.
func (g *gatherer) cosiAccessClass(ctx context.Context, name string) (*cosiv1.BucketAccessClass, error) {
	return readCOSI(ctx, g, "", name, hiddenAccessClasses, &cosiv1.BucketAccessClass{}, &cosiv2.BucketAccessClass{}, func(c *cosiv2.BucketAccessClass) *cosiv1.BucketAccessClass {
		return &cosiv1.BucketAccessClass{ObjectMeta: c.ObjectMeta, DriverName: c.Spec.DriverName}
	})
}

// bucketOfAsked reads the claims that an access without a record names, and their records, up to the first that has no bucket yet. Reports
// are about that one.
func (g *gatherer) bucketOfAsked(ctx context.Context) error {
	b := g.Bucket
	for _, name := range b.askedClaims() {
		b.Access.Spec.BucketClaimName, b.Claim, b.Record = name, nil, nil
		if err := g.bucketClaim(ctx, Ref{Kind: BucketClaim, Namespace: b.Access.Namespace, Name: name}, ""); err != nil {
			return err
		}
		if b.Claim != nil {
			if err := g.pavBucket(ctx, protocol.BucketRecord(b.Claim.UID)); err != nil {
				return err
			}
		}
		if !b.isReady() {
			return nil
		}
	}
	return nil
}

// messageOf returns the message of an error in a status, or "".
func messageOf(shown *cosiv2.TimestampedError) string {
	if shown == nil {
		return ""
	}
	return strings.TrimSpace(shown.Message)
}

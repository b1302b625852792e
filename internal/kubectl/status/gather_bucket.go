package status

import (
	"context"
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	objectbucketv1 "github.com/albertofaria/pav/internal/api/objectbucket/v1alpha1"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/kubectl/agent"
	"github.com/albertofaria/pav/internal/protocol"
)

// What a user may not be allowed to read of buckets, as in Facts.Hidden.
const (
	hiddenObjectClaims  = "ObjectBucketClaims"
	hiddenObjectBuckets = "ObjectBuckets"
	hiddenBucketClaims  = "BucketClaims"
	hiddenCOSIBuckets   = "Buckets"
	hiddenBucketClasses = "BucketClasses"
	hiddenAccesses      = "BucketAccesses"
	hiddenAccessClasses = "BucketAccessClasses"
	hiddenPavBuckets    = "PavBuckets"
	hiddenPavAccesses   = "PavBucketAccesses"
)

// namesOfBucketKinds are the kinds as Kubernetes writes them, and what the user may not read where they are hidden.
var namesOfBucketKinds = map[Kind]struct{ one, all string }{
	ObjectBucketClaim: {"ObjectBucketClaim", hiddenObjectClaims}, BucketClaim: {"BucketClaim", hiddenBucketClaims},
	BucketAccess: {"BucketAccess", hiddenAccesses}, PavBucket: {"PavBucket", hiddenPavBuckets}, PavAccess: {"PavBucketAccess", hiddenPavAccesses},
}

// BucketRecords returns the records of an object: the PavBucket of a claim or itself, and the PavBucketAccess of an ObjectBucketClaim, of a
// BucketAccess or itself. At least one of them is not nil.
func BucketRecords(ctx context.Context, reader client.Reader, ref Ref) (*pavv1.PavBucket, *pavv1.PavBucketAccess, error) {
	g := &gatherer{reader, &Facts{Subject: ref}}
	if err := g.fromBucket(ctx); err != nil {
		return nil, nil, err
	}
	b := g.Bucket
	if ref.isAccess() {
		b.Record = nil
	}
	switch {
	case b.Record != nil || b.Own != nil:
		return b.Record, b.Own, nil
	case g.hides(hiddenPavBuckets):
		return nil, nil, fmt.Errorf("you may not read PavBuckets")
	case g.hides(hiddenPavAccesses):
		return nil, nil, fmt.Errorf("you may not read PavBucketAccesses")
	default:
		return nil, nil, fmt.Errorf("%s: PaV has no record of it; see kubectl pav describe %s", ref, ref)
	}
}

// fromBucket reads the objects of a bucket and of its accesses, of which the user has named one.
func (g *gatherer) fromBucket(ctx context.Context) error {
	b := &BucketFacts{}
	g.Bucket = b
	var err error
	switch g.Subject.Kind {
	case PavBucket:
		err = g.pavBucket(ctx, g.Subject.Name)
	case PavAccess:
		err = g.pavAccess(ctx, g.Subject.Name)
	case BucketAccess:
		err = g.fromAccess(ctx)
	default:
		err = g.fromBucketClaim(ctx)
	}
	if err != nil {
		return err
	}
	if b.ObjectClaim == nil && b.Claim == nil && b.Access == nil && b.Record == nil && b.Own == nil {
		return g.noBucket()
	}
	for _, read := range []func(context.Context) error{g.bucketOfAccess, g.claimOfRecord, g.requesterOfRecord} {
		if err := read(ctx); err != nil {
			return err
		}
	}
	return nil
}

// noBucket returns the error about an object of a bucket of which nothing was found.
func (g *gatherer) noBucket() error {
	kind := namesOfBucketKinds[g.Subject.Kind]
	if g.hides(kind.all) {
		return fmt.Errorf("you may not read %s", kind.all)
	}
	if g.Subject.Namespace != "" {
		return fmt.Errorf("there is no %s %q in namespace %q", kind.one, g.Subject.Name, g.Subject.Namespace)
	}
	return fmt.Errorf("there is no %s %q", kind.one, g.Subject.Name)
}

// fromBucketClaim reads a claim and its records, which may be all that is left of it.
func (g *gatherer) fromBucketClaim(ctx context.Context) error {
	b, ref := g.Bucket, g.Subject
	if err := g.bucketClaim(ctx, ref, ""); err != nil {
		return err
	}
	var uid types.UID
	switch {
	case b.ObjectClaim != nil:
		uid = b.ObjectClaim.UID
	case b.Claim != nil:
		uid = b.Claim.UID
	default:
		former, err := g.buckets(ctx, func(record *pavv1.PavBucket) bool { return claimOfBucket(record) == ref })
		if err != nil {
			return err
		}
		if len(former) > 0 {
			b.Record = &former[len(former)-1]
			uid = b.Record.Spec.ClaimRef.UID
		}
	}
	if b.Record == nil && uid != "" {
		if err := g.pavBucket(ctx, protocol.BucketRecord(uid)); err != nil {
			return err
		}
	}
	if ref.Kind != ObjectBucketClaim || uid == "" {
		return nil
	}
	return g.pavAccess(ctx, protocol.AccessRecord(uid))
}

// fromAccess reads a BucketAccess and its record, which may be all that is left of it.
func (g *gatherer) fromAccess(ctx context.Context) error {
	b, ref := g.Bucket, g.Subject
	access, err := g.cosiAccess(ctx, ref.Namespace, ref.Name)
	if err != nil {
		return err
	}
	if access != nil {
		b.Access = access
		return g.pavAccess(ctx, protocol.AccessRecord(access.UID))
	}
	former, err := g.accesses(ctx, func(record *pavv1.PavBucketAccess) bool { return requesterOf(record) == ref })
	if err == nil && len(former) > 0 {
		b.Own = &former[len(former)-1]
	}
	return err
}

// bucketClaim reads a claim, unless it has another UID than is wanted; "" for any.
func (g *gatherer) bucketClaim(ctx context.Context, ref Ref, uid types.UID) error {
	if ref.Kind == ObjectBucketClaim {
		claim := &objectbucketv1.ObjectBucketClaim{}
		found, err := g.getKnown(ctx, ref.Namespace, ref.Name, hiddenObjectClaims, claim)
		if found && (uid == "" || claim.UID == uid) {
			g.Bucket.ObjectClaim = claim
		}
		return err
	}
	claim, err := g.cosiClaim(ctx, ref.Namespace, ref.Name)
	if claim == nil || uid != "" && claim.UID != uid {
		g.Bucket.ClaimError = "" // it is that of another claim
		return err
	}
	g.Bucket.Claim = claim
	return nil
}

func (g *gatherer) pavBucket(ctx context.Context, name string) error {
	record := &pavv1.PavBucket{}
	found, err := g.getKnown(ctx, "", name, hiddenPavBuckets, record)
	if found {
		g.Bucket.Record = record
	}
	return err
}

func (g *gatherer) pavAccess(ctx context.Context, name string) error {
	record := &pavv1.PavBucketAccess{}
	found, err := g.getKnown(ctx, "", name, hiddenPavAccesses, record)
	if found {
		g.Bucket.Own = record
	}
	return err
}

// bucketOfAccess reads the bucket of an access: that of its record, or that of the claim which it names.
func (g *gatherer) bucketOfAccess(ctx context.Context) error {
	b := g.Bucket
	if !g.Subject.isAccess() {
		return nil
	}
	if b.Own == nil {
		return g.bucketOfAsked(ctx)
	}
	var first *pavv1.PavBucket
	for _, accessed := range b.Own.Spec.Buckets {
		if err := g.pavBucket(ctx, accessed.Bucket); err != nil {
			return err
		}
		if b.Record != nil && !b.isReady() {
			return nil
		}
		if first == nil {
			first = b.Record
		}
	}
	b.Record = first
	return nil
}

// claimOfRecord reads the claim of the bucket. It may be another one with the same name.
func (g *gatherer) claimOfRecord(ctx context.Context) error {
	b := g.Bucket
	if b.Record == nil || b.ObjectClaim != nil || b.Claim != nil {
		return nil
	}
	ref := claimOfBucket(b.Record)
	if ref.Kind == PavBucket {
		return nil
	}
	return g.bucketClaim(ctx, ref, b.Record.Spec.ClaimRef.UID)
}

// requesterOfRecord reads the BucketAccess of the access. It may be another one with the same name.
func (g *gatherer) requesterOfRecord(ctx context.Context) error {
	b := g.Bucket
	if b.Own == nil || b.Access != nil || requesterOf(b.Own).Kind != BucketAccess {
		return nil
	}
	ref := b.Own.Spec.Requester
	access, err := g.cosiAccess(ctx, ref.Namespace, ref.Name)
	if access != nil && access.UID == ref.UID {
		b.Access = access
	}
	return err
}

// bucketObjects reads what else belongs to a bucket: the objects that show it, its accesses, and its classes.
func (g *gatherer) bucketObjects(ctx context.Context) error {
	for _, read := range []func(context.Context) error{g.shown, g.accessesOfBucket, g.bucketClasses, g.bucketsEnabled} {
		if err := read(ctx); err != nil {
			return err
		}
	}
	return nil
}

// shown reads the object in which the API shows the bucket.
func (g *gatherer) shown(ctx context.Context) error {
	b := g.Bucket
	if claim := b.ObjectClaim; claim != nil {
		object := &objectbucketv1.ObjectBucket{}
		found, err := g.getKnown(ctx, "", objectbucketv1.BucketOf(claim.Namespace, claim.Name), hiddenObjectBuckets, object)
		if found && object.Spec.ClaimRef != nil && object.Spec.ClaimRef.UID == claim.UID {
			b.ObjectBucket = object
		}
		return err
	}
	if b.Claim == nil {
		return nil
	}
	var err error
	b.Object, err = g.cosiBucket(ctx, b.Claim)
	return err
}

// accessesOfBucket reads the accesses to a bucket, unless the user has asked about one of them.
func (g *gatherer) accessesOfBucket(ctx context.Context) error {
	b := g.Bucket
	var err error
	if !g.Subject.isAccess() && b.Record != nil {
		b.Accesses, err = g.accesses(ctx, func(record *pavv1.PavBucketAccess) bool {
			return slices.ContainsFunc(record.Spec.Buckets, func(a pavv1.AccessedBucket) bool { return a.Bucket == b.Record.Name })
		}, client.MatchingLabels{pavv1.ProvisionerLabel: b.Record.Spec.Provisioner})
	}
	if own := b.Own; own != nil && !slices.ContainsFunc(b.Accesses, func(a pavv1.PavBucketAccess) bool { return a.Name == own.Name }) {
		b.Accesses = append(b.Accesses, *own)
	}
	return err
}

// bucketClasses reads the classes of objects without a record: nothing depends on them later.
func (g *gatherer) bucketClasses(ctx context.Context) error {
	b := g.Bucket
	if claim := b.ObjectClaim; claim != nil && b.Record == nil {
		class := &storagev1.StorageClass{}
		found, err := g.get(ctx, "", claim.Spec.StorageClassName, hiddenClasses, class)
		if found {
			g.Class = class
		}
		return err
	}
	var err error
	if claim := b.Claim; claim != nil && b.Record == nil && claim.Spec.ExistingBucketName == "" {
		if b.Class, err = g.cosiClass(ctx, claim.Spec.BucketClassName); err != nil {
			return err
		}
	}
	if access := b.Access; access != nil && b.Own == nil {
		b.AccessClass, err = g.cosiAccessClass(ctx, access.Spec.BucketAccessClassName)
	}
	return err
}

// bucketsEnabled looks up whether the controller agent serves buckets, if it has not begun.
func (g *gatherer) bucketsEnabled(ctx context.Context) error {
	if b := g.Bucket; b.Record != nil || b.Own != nil {
		return nil
	}
	err := g.Get(ctx, client.ObjectKey{Name: agent.BucketRights}, &rbacv1.ClusterRoleBinding{})
	g.Bucket.Disabled = apierrors.IsNotFound(err)
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
		return fmt.Errorf("looking up whether buckets are enabled: %w", err)
	}
	return nil
}

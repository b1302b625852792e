package cosi2

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cosiv2 "github.com/albertofaria/pav/internal/api/cosi/v1alpha2"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/bucketapi"
	"github.com/albertofaria/pav/internal/controller/rule"
	"github.com/albertofaria/pav/internal/protocol"
	"github.com/albertofaria/pav/internal/reconcile"
)

// gatherAccesses reads from the cache what the decisions about the accesses of a name depend on.
func (r *Reconciler) gatherAccesses(ctx context.Context, name types.NamespacedName) ([]accessObservation, error) {
	access, err := reconcile.Optional(ctx, r.Client, name, &cosiv2.BucketAccess{})
	if err != nil {
		return nil, err
	}
	records, err := reconcile.AccessesRequestedBy(ctx, r.Client, pavv1.BucketAPICOSI2, name)
	if err != nil {
		return nil, err
	}
	all := groupAccesses(name, access, records)
	left := make([]types.UID, len(all))
	for i := range all {
		o := &all[i]
		left[i], o.now = o.uid, r.Now()
		if o.record != nil {
			r.accesses.Add(name, o.uid)
		}
		o.remembered = r.accesses.Has(name, o.uid)
		if err := addToAccess(ctx, r.Client, o); err != nil {
			return nil, err
		}
	}
	r.accesses.Keep(name, left)
	return all, nil
}

// groupAccesses returns an observation of each access of a name of which there is something.
func groupAccesses(name types.NamespacedName, access *cosiv2.BucketAccess, records []pavv1.PavBucketAccess) []accessObservation {
	var all []accessObservation
	if access != nil {
		all = append(all, accessObservation{name: name, uid: access.UID, access: access})
	}
	for i := range records {
		uid := records[i].Spec.Requester.UID
		at := slices.IndexFunc(all, func(o accessObservation) bool { return o.uid == uid })
		if at < 0 {
			at = len(all)
			all = append(all, accessObservation{name: name, uid: uid})
		}
		all[at].record = &records[i]
	}
	slices.SortFunc(all, func(a, b accessObservation) int { return strings.Compare(string(a.uid), string(b.uid)) })
	return all
}

// addToAccess adds what the decision depends on besides access and record.
func addToAccess(ctx context.Context, reader client.Reader, o *accessObservation) error {
	var err error
	switch {
	case o.record != nil:
		if o.provisioner, err = bucketapi.Named(ctx, reader, o.record.Spec.Provisioner, &pavv1.PavProvisioner{}); err != nil {
			return err
		}
		return addBuckets(ctx, reader, o)
	case o.access == nil:
		return nil
	}
	if o.class, err = bucketapi.Named(ctx, reader, o.access.Spec.BucketAccessClassName, &cosiv2.BucketAccessClass{}); err != nil {
		return err
	}
	driver := o.access.Status.DriverName
	if driver == "" && o.class != nil {
		driver = o.class.Spec.DriverName
	}
	if o.provisioner, err = bucketapi.Named(ctx, reader, driver, &pavv1.PavProvisioner{}); err != nil {
		return err
	}
	return addClaims(ctx, reader, o)
}

// addBuckets adds the records of the buckets of an access that has a record, unless it shows them already.
func addBuckets(ctx context.Context, reader client.Reader, o *accessObservation) error {
	if o.access == nil || len(o.access.Status.AccessedBuckets) > 0 {
		return nil
	}
	for _, accessed := range o.record.Spec.Buckets {
		bucket, err := bucketapi.Named(ctx, reader, accessed.Bucket, &pavv1.PavBucket{})
		if err != nil {
			return err
		}
		if bucket != nil {
			o.buckets = append(o.buckets, bucket)
		}
	}
	return nil
}

// addClaims adds the claims that an access names, which are in its own namespace, and their records: they must be of the claims' UIDs, and
// not of former ones of their names.
func addClaims(ctx context.Context, reader client.Reader, o *accessObservation) error {
	for _, asked := range o.access.Spec.BucketClaims {
		c := askedClaim{BucketClaimAccess: asked}
		key := types.NamespacedName{Namespace: o.name.Namespace, Name: asked.BucketClaimName}
		var err error
		if c.claim, err = bucketapi.Optional(ctx, reader, key, &cosiv2.BucketClaim{}); err != nil {
			return err
		}
		if c.claim != nil {
			bucket, err := bucketapi.Named(ctx, reader, protocol.BucketRecord(c.claim.UID), &pavv1.PavBucket{})
			if err != nil {
				return err
			}
			if bucket != nil && bucketapi.IsRecordOfClaim(bucket, pavv1.BucketAPICOSI2, key, c.claim.UID) {
				c.bucket = bucket
			}
		}
		o.claims = append(o.claims, c)
	}
	return nil
}

// confirmedAccess decides again with the objects that the API server has, before a step is taken. If that gives another step, the cache is
// behind, and the error is reconcile.ErrStale.
func (r *Reconciler) confirmedAccess(ctx context.Context, o accessObservation, next rule.Step) (accessObservation, error) {
	live := accessObservation{name: o.name, uid: o.uid, now: o.now, remembered: o.remembered}
	access, err := reconcile.Optional(ctx, r.Live, o.name, &cosiv2.BucketAccess{})
	if err != nil {
		return live, err
	}
	if access != nil && access.UID == o.uid {
		live.access = access
	}
	record, err := bucketapi.Named(ctx, r.Live, o.recordName(), &pavv1.PavBucketAccess{})
	if err != nil {
		return live, err
	}
	if record != nil && live.isRecordOf(record) {
		live.record = record
	}
	if err := addToAccess(ctx, r.Live, &live); err != nil {
		return live, err
	}
	if decideAccess(live).Step != next {
		return live, reconcile.ErrStale
	}
	return live, nil
}

package cosi1

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cosiv1 "github.com/albertofaria/pav/internal/api/cosi/v1alpha1"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/bucketapi"
	"github.com/albertofaria/pav/internal/controller/rule"
	"github.com/albertofaria/pav/internal/protocol"
	"github.com/albertofaria/pav/internal/reconcile"
)

// gatherAccesses reads from the cache what the decisions about the accesses of a name depend on.
func (r *Reconciler) gatherAccesses(ctx context.Context, name types.NamespacedName) ([]accessObservation, error) {
	access, err := reconcile.Optional(ctx, r.Client, name, &cosiv1.BucketAccess{})
	if err != nil {
		return nil, err
	}
	records, err := reconcile.AccessesRequestedBy(ctx, r.Client, pavv1.BucketAPICOSI1, name)
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
func groupAccesses(name types.NamespacedName, access *cosiv1.BucketAccess, records []pavv1.PavBucketAccess) []accessObservation {
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
	if o.record != nil {
		o.provisioner, err = bucketapi.Named(ctx, reader, o.record.Spec.Provisioner, &pavv1.PavProvisioner{})
		return err
	}
	if o.access == nil {
		return nil
	}
	if o.class, err = bucketapi.Named(ctx, reader, o.access.Spec.BucketAccessClassName, &cosiv1.BucketAccessClass{}); err != nil {
		return err
	}
	if o.class != nil {
		if o.provisioner, err = bucketapi.Named(ctx, reader, o.class.DriverName, &pavv1.PavProvisioner{}); err != nil {
			return err
		}
	}
	return addClaim(ctx, reader, o)
}

// addClaim adds the claim that an access names, which is in its own namespace, and the record of that claim: it must be of the claim's UID,
// and not of a former one of its name.
func addClaim(ctx context.Context, reader client.Reader, o *accessObservation) error {
	var err error
	key := types.NamespacedName{Namespace: o.name.Namespace, Name: o.access.Spec.BucketClaimName}
	if o.claim, err = bucketapi.Optional(ctx, reader, key, &cosiv1.BucketClaim{}); err != nil || o.claim == nil {
		return err
	}
	bucket, err := bucketapi.Named(ctx, reader, protocol.BucketRecord(o.claim.UID), &pavv1.PavBucket{})
	if err != nil || bucket == nil {
		return err
	}
	if of := (claimObservation{name: key, uid: o.claim.UID}); of.isRecordOf(bucket) {
		o.bucket = bucket
	}
	return nil
}

// confirmedAccess decides again with the objects that the API server has, before a step is taken. If that gives another step, the cache is
// behind, and the error is reconcile.ErrStale.
func (r *Reconciler) confirmedAccess(ctx context.Context, o accessObservation, next rule.Step) (accessObservation, error) {
	live := accessObservation{name: o.name, uid: o.uid, now: o.now, remembered: o.remembered}
	access, err := reconcile.Optional(ctx, r.Live, o.name, &cosiv1.BucketAccess{})
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

package cosi1

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cosiv1 "github.com/albertofaria/pav/internal/api/cosi/v1alpha1"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/bucketapi"
	"github.com/albertofaria/pav/internal/controller/rule"
	"github.com/albertofaria/pav/internal/reconcile"
)

// gatherClaims reads from the cache what the decisions about the claims of a name depend on.
func (r *Reconciler) gatherClaims(ctx context.Context, name types.NamespacedName) ([]claimObservation, error) {
	claim, err := reconcile.Optional(ctx, r.Client, name, &cosiv1.BucketClaim{})
	if err != nil {
		return nil, err
	}
	records, err := reconcile.BucketsClaimedBy(ctx, r.Client, pavv1.BucketAPICOSI1, name)
	if err != nil {
		return nil, err
	}
	buckets := &cosiv1.BucketList{}
	if err := r.Client.List(ctx, buckets, client.MatchingFields{bucketsByClaim: bucketapi.KeyOfClaim(name)}); err != nil {
		return nil, fmt.Errorf("looking up the Buckets of claim %q: %w", name, err)
	}
	all := groupClaims(name, claim, records, buckets.Items)
	left := make([]types.UID, len(all))
	for i := range all {
		o := &all[i]
		left[i], o.now = o.uid, r.Now()
		if o.record != nil {
			r.claims.Add(name, o.uid)
		}
		o.remembered = r.claims.Has(name, o.uid)
		if err := r.addToClaim(ctx, r.Client, o); err != nil {
			return nil, err
		}
	}
	r.claims.Keep(name, left)
	return all, nil
}

// groupClaims returns an observation of each claim of a name of which there is something.
func groupClaims(name types.NamespacedName, claim *cosiv1.BucketClaim, records []pavv1.PavBucket, buckets []cosiv1.Bucket) []claimObservation {
	byUID := map[types.UID]*claimObservation{}
	var all []*claimObservation
	of := func(uid types.UID) *claimObservation {
		if byUID[uid] == nil {
			byUID[uid] = &claimObservation{name: name, uid: uid}
			all = append(all, byUID[uid])
		}
		return byUID[uid]
	}
	for i := range records {
		of(records[i].Spec.ClaimRef.UID).record = &records[i]
	}
	if claim != nil {
		of(claim.UID).claim = claim
	}
	for i := range buckets {
		// An administrator may have written several that name the claim.
		b := &buckets[i]
		if uid := reference(b).UID; uid != "" && isOf(b, name, uid) {
			if o := of(uid); o.bucket == nil || !o.isBucketLeft() {
				o.bucket = b
			}
		}
	}
	slices.SortFunc(all, func(a, b *claimObservation) int { return strings.Compare(string(a.uid), string(b.uid)) })
	observations := make([]claimObservation, len(all))
	for i := range all {
		observations[i] = *all[i]
	}
	return observations
}

// addToClaim adds what the decision depends on besides claim and record. A Bucket that the observation has already is that of a claim which
// is not wanted any more, and only read again.
func (r *Reconciler) addToClaim(ctx context.Context, reader client.Reader, o *claimObservation) error {
	bucket := o.bucketName()
	if o.bucket != nil && o.record == nil && !o.wanted() {
		bucket = o.bucket.Name
	}
	var err error
	if o.bucket, err = bucketapi.Named(ctx, reader, bucket, &cosiv1.Bucket{}); err != nil {
		return err
	}
	if err := addDriver(ctx, reader, o); err != nil {
		return err
	}
	if o.record != nil {
		o.accesses, err = bucketapi.AccessesTo(ctx, r.Client, o.record.Name)
		return err
	}
	if o.isExisting() && o.provisioner != nil {
		o.holder, err = bucketapi.HolderOf(ctx, r.Client, pavv1.BucketAPICOSI1, o.provisioner.Name, o.bucketName(), o.uid)
	}
	return err
}

// addDriver adds class and provisioner to an observation.
func addDriver(ctx context.Context, reader client.Reader, o *claimObservation) error {
	driver := ""
	var err error
	switch {
	case o.record != nil:
		driver = o.record.Spec.Provisioner
	case o.bucket != nil && (o.isExisting() || o.claim == nil):
		driver = o.bucket.Spec.DriverName
	case o.claim != nil:
		if o.class, err = bucketapi.Named(ctx, reader, o.claim.Spec.BucketClassName, &cosiv1.BucketClass{}); err != nil || o.class == nil {
			return err
		}
		if driver = o.class.DriverName; o.isForeign(driver) {
			return nil
		}
	}
	o.provisioner, err = bucketapi.Named(ctx, reader, driver, &pavv1.PavProvisioner{})
	return err
}

// confirmedClaim decides again with the objects that the API server has, before a step is taken. If that gives another step, the cache is
// behind, and the error is reconcile.ErrStale.
func (r *Reconciler) confirmedClaim(ctx context.Context, o claimObservation, next rule.Step) (claimObservation, error) {
	live := claimObservation{name: o.name, uid: o.uid, now: o.now, bucket: o.bucket, remembered: o.remembered}
	claim, err := reconcile.Optional(ctx, r.Live, o.name, &cosiv1.BucketClaim{})
	if err != nil {
		return live, err
	}
	if claim != nil && claim.UID == o.uid {
		live.claim = claim
	}
	record, err := bucketapi.Named(ctx, r.Live, o.recordName(), &pavv1.PavBucket{})
	if err != nil {
		return live, err
	}
	if record != nil && live.isRecordOf(record) {
		live.record = record
	}
	if err := r.addToClaim(ctx, r.Live, &live); err != nil {
		return live, err
	}
	if decideClaim(live).Step != next {
		return live, reconcile.ErrStale
	}
	return live, nil
}

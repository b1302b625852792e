package obc

import (
	"context"
	"slices"
	"strings"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	objectbucketv1 "github.com/albertofaria/pav/internal/api/objectbucket/v1alpha1"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/bucketapi"
	"github.com/albertofaria/pav/internal/controller/rule"
	"github.com/albertofaria/pav/internal/reconcile"
)

// gather reads from the cache what the decisions about the claims of a name depend on. The claim that exists is the last.
func (r *Reconciler) gather(ctx context.Context, name types.NamespacedName) ([]observation, error) {
	claim, err := reconcile.Optional(ctx, r.Client, name, &objectbucketv1.ObjectBucketClaim{})
	if err != nil {
		return nil, err
	}
	objectBucket, err := reconcile.Optional(ctx, r.Client, objectBucketKey(name), &objectbucketv1.ObjectBucket{})
	if err != nil {
		return nil, err
	}
	buckets, err := reconcile.BucketsClaimedBy(ctx, r.Client, pavv1.BucketAPIClaim, name)
	if err != nil {
		return nil, err
	}
	accesses, err := reconcile.AccessesRequestedBy(ctx, r.Client, pavv1.BucketAPIClaim, name)
	if err != nil {
		return nil, err
	}
	all := group(name, claim, objectBucket, buckets, accesses)
	left := make([]types.UID, len(all))
	for i := range all {
		o := &all[i]
		o.now = r.Now()
		if o.bucket != nil || o.access != nil || o.objectBucket != nil {
			r.memories.change(name, o.uid, func(m *memory) { m.ours = true })
		}
		left[i], o.memory = o.uid, r.memories.get(name, o.uid)
		if err := addDefinition(ctx, r.Client, o); err != nil {
			return nil, err
		}
	}
	r.memories.keep(name, left)
	return all, nil
}

// group returns an observation of each claim of a name of which there is something. The claim that exists is the last.
func group(name types.NamespacedName, claim *objectbucketv1.ObjectBucketClaim, objectBucket *objectbucketv1.ObjectBucket, buckets []pavv1.PavBucket, accesses []pavv1.PavBucketAccess) []observation {
	var uids []types.UID
	byUID := map[types.UID]*observation{}
	of := func(uid types.UID) *observation {
		if byUID[uid] == nil {
			uids, byUID[uid] = append(uids, uid), &observation{name: name, uid: uid}
		}
		return byUID[uid]
	}
	for i := range buckets {
		of(buckets[i].Spec.ClaimRef.UID).bucket = &buckets[i]
	}
	for i := range accesses {
		of(accesses[i].Spec.Requester.UID).access = &accesses[i]
	}
	if objectBucket != nil && isOfName(objectBucket, name) {
		of(objectBucket.Spec.ClaimRef.UID)
	}
	if claim != nil {
		of(claim.UID).claim = claim
	}
	slices.SortFunc(uids, func(a, b types.UID) int { return strings.Compare(string(a), string(b)) })
	var former []observation
	unsettled := false
	for _, uid := range uids {
		o := byUID[uid]
		o.addObjectBucket(objectBucket)
		if o.claim == nil {
			former = append(former, *o)
			unsettled = unsettled || !o.isSettled()
		}
	}
	if claim == nil {
		return former
	}
	present := *byUID[claim.UID]
	present.former = unsettled
	return append(former, present)
}

func objectBucketKey(name types.NamespacedName) types.NamespacedName {
	return types.NamespacedName{Name: objectbucketv1.BucketOf(name.Namespace, name.Name)}
}

// addDefinition adds class and provisioner to an observation.
func addDefinition(ctx context.Context, reader client.Reader, o *observation) error {
	provisioner := ""
	switch {
	case o.bucket != nil:
		provisioner = o.bucket.Spec.Provisioner
	case o.wanted():
		class, err := bucketapi.Named(ctx, reader, o.claim.Spec.StorageClassName, &storagev1.StorageClass{})
		if err != nil || class == nil {
			return err
		}
		o.class, provisioner = class, class.Provisioner
	case o.isHeld():
		// The class may be gone, and what a claim names there may change. A tenant who changes the label could remove the finalizer as well.
		provisioner = o.claim.Labels[objectbucketv1.ProvisionerLabel]
	}
	var err error
	o.provisioner, err = bucketapi.Named(ctx, reader, provisioner, &pavv1.PavProvisioner{})
	return err
}

// confirmed decides again with the objects that the API server has, before a step is taken. If that gives another step, the cache is
// behind, and the error is reconcile.ErrStale.
func (r *Reconciler) confirmed(ctx context.Context, o observation, next rule.Step) (observation, error) {
	live := observation{name: o.name, uid: o.uid, now: o.now, former: o.former, memory: o.memory}
	claim, err := reconcile.Optional(ctx, r.Live, o.name, &objectbucketv1.ObjectBucketClaim{})
	if err != nil {
		return live, err
	}
	if claim != nil && claim.UID == o.uid {
		live.claim = claim
	}
	bucket, err := bucketapi.Named(ctx, r.Live, o.bucketRecord(), &pavv1.PavBucket{})
	if err != nil {
		return live, err
	}
	if bucket != nil && live.isBucketOf(bucket) {
		live.bucket = bucket
	}
	access, err := bucketapi.Named(ctx, r.Live, o.accessRecord(), &pavv1.PavBucketAccess{})
	if err != nil {
		return live, err
	}
	if access != nil && live.isAccessOf(access) {
		live.access = access
	}
	objectBucket, err := reconcile.Optional(ctx, r.Live, objectBucketKey(o.name), &objectbucketv1.ObjectBucket{})
	if err != nil {
		return live, err
	}
	live.addObjectBucket(objectBucket)
	if err := addDefinition(ctx, r.Live, &live); err != nil {
		return live, err
	}
	if decide(live).Step != next {
		return live, reconcile.ErrStale
	}
	return live, nil
}

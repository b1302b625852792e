package cosi0

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cosiv0 "github.com/albertofaria/pav/internal/api/cosi/proposal"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/bucketapi"
	"github.com/albertofaria/pav/internal/controller/rule"
	"github.com/albertofaria/pav/internal/reconcile"
)

// gather reads from the cache what the decisions about the Buckets of a name depend on.
func (r *Reconciler) gather(ctx context.Context, name types.NamespacedName) ([]observation, error) {
	object, err := reconcile.Optional(ctx, r.Client, name, &cosiv0.Bucket{})
	if err != nil {
		return nil, err
	}
	buckets, err := reconcile.BucketsClaimedBy(ctx, r.Client, pavv1.BucketAPICOSI0, name)
	if err != nil {
		return nil, err
	}
	accesses, err := reconcile.AccessesRequestedBy(ctx, r.Client, pavv1.BucketAPICOSI0, name)
	if err != nil {
		return nil, err
	}
	contents := &cosiv0.BucketContentList{}
	if err := r.Client.List(ctx, contents, client.MatchingFields{contentsByBucket: bucketapi.KeyOfClaim(name)}); err != nil {
		return nil, fmt.Errorf("looking up the BucketContents of Bucket %q: %w", name, err)
	}
	all := group(name, object, buckets, accesses, contents.Items)
	left := make([]types.UID, len(all))
	for i := range all {
		o := &all[i]
		left[i], o.now = o.uid, r.Now()
		if o.bucket != nil || o.access != nil {
			r.memory.Add(name, o.uid)
		}
		o.remembered = r.memory.Has(name, o.uid)
		if err := add(ctx, r.Client, o); err != nil {
			return nil, err
		}
	}
	r.memory.Keep(name, left)
	return all, nil
}

// group returns an observation of each Bucket of a name of which there is something.
func group(name types.NamespacedName, object *cosiv0.Bucket, buckets []pavv1.PavBucket, accesses []pavv1.PavBucketAccess, contents []cosiv0.BucketContent) []observation {
	var all []observation
	of := func(uid types.UID) *observation {
		at := slices.IndexFunc(all, func(o observation) bool { return o.uid == uid })
		if at < 0 {
			at, all = len(all), append(all, observation{name: name, uid: uid})
		}
		return &all[at]
	}
	for i := range buckets {
		of(buckets[i].Spec.ClaimRef.UID).bucket = &buckets[i]
	}
	for i := range accesses {
		of(accesses[i].Spec.Requester.UID).access = &accesses[i]
	}
	if object != nil {
		of(object.UID).object = object
	}
	for i := range contents {
		ref := contents[i].Spec.BucketRef
		if ref != nil && ref.UUID != "" && isContentOf(&contents[i], name, ref.UUID) {
			of(ref.UUID).content = &contents[i]
		}
	}
	slices.SortFunc(all, func(a, b observation) int { return strings.Compare(string(a.uid), string(b.uid)) })
	return all
}

// add adds what the decision depends on besides Bucket and records: class, provisioner and BucketContent. A BucketContent that the observation
// has already is only read again.
func add(ctx context.Context, reader client.Reader, o *observation) error {
	if err := addDefinition(ctx, reader, o); err != nil {
		return err
	}
	content, err := bucketapi.Named(ctx, reader, o.contentName(), &cosiv0.BucketContent{})
	o.content, o.other = nil, nil
	switch {
	case err != nil:
		return err
	case content == nil:
	case isContentOf(content, o.name, o.uid):
		o.content = content
	default:
		o.other = content
	}
	return nil
}

// addDefinition adds class and provisioner to an observation.
func addDefinition(ctx context.Context, reader client.Reader, o *observation) error {
	provisioner := ""
	var err error
	switch {
	case o.bucket != nil:
		o.class, provisioner = copyOfClass(o.bucket), o.bucket.Spec.Provisioner
	case o.wanted():
		o.class, err = bucketapi.Named(ctx, reader, o.object.Spec.BucketClassName, &cosiv0.BucketClass{})
		if err != nil || o.class == nil {
			return err
		}
		provisioner = o.class.Provisioner
	case o.isHeld():
		// The class may be gone, and what a Bucket names there may change. A tenant who changes the label could remove the finalizer as well.
		provisioner = o.label()
	}
	o.provisioner, err = bucketapi.Named(ctx, reader, provisioner, &pavv1.PavProvisioner{})
	return err
}

// confirmed decides again with the objects that the API server has, before a step is taken. If that gives another step, the cache is
// behind, and the error is reconcile.ErrStale.
func (r *Reconciler) confirmed(ctx context.Context, o observation, next rule.Step) (observation, error) {
	live := observation{name: o.name, uid: o.uid, now: o.now, content: o.content, remembered: o.remembered}
	object, err := reconcile.Optional(ctx, r.Live, o.name, &cosiv0.Bucket{})
	if err != nil {
		return live, err
	}
	if object != nil && object.UID == o.uid {
		live.object = object
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
	if err := add(ctx, r.Live, &live); err != nil {
		return live, err
	}
	if decide(live).Step != next {
		return live, reconcile.ErrStale
	}
	return live, nil
}

package access

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/rule"
	"github.com/albertofaria/pav/internal/reconcile"
)

// gather reads everything that the decision about an access depends on.
func (r *Reconciler) gather(ctx context.Context, record *pavv1.PavBucketAccess) (observation, error) {
	o := observation{record: record, now: r.Now()}
	// A pod that cannot start is given up also where others wait for its buckets, or accounts of the access for their revocation.
	overdue, _ := due(record, o.now)
	o.contended = r.slots.Contended(record.Spec.Provisioner) || r.Turns.IsAwaited(turnOf(record.Name)) || overdue != nil && record.Status.Granting != nil
	o.retry = pavv1.RetryRequested(record, record.Status.LastHandledRetry, o.now)
	var err error
	if o.Found, err = r.runs.Find(ctx, record); err != nil {
		return o, err
	}
	if o.provisioner, err = reconcile.Optional(ctx, r.Client, client.ObjectKey{Name: record.Spec.Provisioner}, &pavv1.PavProvisioner{}); err != nil {
		return o, err
	}
	if o.buckets, err = bucketsOf(ctx, r.Client, record); err != nil {
		return o, err
	}
	err = r.gatherStages(ctx, r.Client, &o, cachedStages(record))
	return o, err
}

// bucketsOf returns the PavBuckets of an access that exist, in its order.
func bucketsOf(ctx context.Context, reader client.Reader, record *pavv1.PavBucketAccess) ([]*pavv1.PavBucket, error) {
	var buckets []*pavv1.PavBucket
	for _, accessed := range record.Spec.Buckets {
		bucket, err := reconcile.Optional(ctx, reader, client.ObjectKey{Name: accessed.Bucket}, &pavv1.PavBucket{})
		if err != nil {
			return nil, err
		}
		if bucket != nil {
			buckets = append(buckets, bucket)
		}
	}
	return buckets, nil
}

// confirmed decides again with the objects that the API server has, before a step that cannot be undone. If that gives another step, the
// cache is behind, and the error is reconcile.ErrStale.
func (r *Reconciler) confirmed(ctx context.Context, o observation, next rule.Step) (observation, error) {
	live := &pavv1.PavBucketAccess{}
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(o.record), live); client.IgnoreNotFound(err) != nil {
		return o, fmt.Errorf("reading PavBucketAccess %q: %w", o.record.Name, err)
	}
	if live.UID != o.record.UID || live.ResourceVersion != o.record.ResourceVersion {
		return o, reconcile.ErrStale
	}
	live.SetManagedFields(nil)
	o.record = live // with its copies of objects, which the cache does not keep
	var err error
	if o.provisioner, err = reconcile.Optional(ctx, r.Live, client.ObjectKey{Name: live.Spec.Provisioner}, &pavv1.PavProvisioner{}); err != nil {
		return o, err
	}
	if o.buckets, err = bucketsOf(ctx, r.Live, live); err != nil {
		return o, err
	}
	if err := r.gatherStages(ctx, r.Live, &o, liveStages(live)); err != nil {
		return o, err
	}
	if decide(o).Step != next {
		return o, reconcile.ErrStale
	}
	return o, nil
}

package access

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/podplan"
	"github.com/albertofaria/pav/internal/reconcile"
)

// checkStores returns a refusal if an earlier access is to one of the buckets by a record that has another store. Records keep the store with
// which they were written, so that this happens when an administrator changes spec.bucketValidation.store. A policy that is written for the
// one would lack the accounts of the other. What the present definition says of both records decides whether they are of one bucket.
func (r *Reconciler) checkStores(ctx context.Context, o observation, definition podplan.BucketDefinition) error {
	if o.record.Status.Current != nil {
		return nil // it has had its place in the policy for long
	}
	records := &pavv1.PavBucketList{}
	if err := r.Client.List(ctx, records, client.MatchingFields{reconcile.BucketsByProvisioner: o.record.Spec.Provisioner}, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("looking up who has a bucket: %w", err)
	}
	for _, bucket := range o.buckets {
		for i := range records.Items {
			other := &records.Items[i]
			if other.Name == bucket.Name || other.Spec.Store == bucket.Spec.Store || reconcile.BucketID(other) != reconcile.BucketID(bucket) {
				continue
			}
			if err := r.checkStore(ctx, o, definition, bucket, other.Name); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkStore is checkStores for a bucket, which is as the API server has it, and another record whose bucket has the same identifier.
func (r *Reconciler) checkStore(ctx context.Context, o observation, definition podplan.BucketDefinition, bucket *pavv1.PavBucket, name string) error {
	accesses, err := r.live(ctx, o.record, []string{name})
	if err != nil || earlier(accesses, o.record) == 0 {
		return err
	}
	other, err := reconcile.Optional(ctx, r.Live, client.ObjectKey{Name: name}, &pavv1.PavBucket{})
	if err != nil || other == nil {
		return err
	}
	own, err := r.presentStore(ctx, definition, bucket)
	if err != nil {
		return err
	}
	theirs, err := r.presentStore(ctx, definition, other)
	if err != nil || own != theirs {
		return err
	}
	return refuse("bucket %q is in the store %q according to PavBucket %q, and in %q according to PavBucket %q of claim %s/%s, which was written with another "+
		"spec.bucketValidation.store: now both would be in %q, so that neither's policy would have the accounts of the other. Restore spec.bucketValidation.store of "+
		"PavProvisioner %q, and create the claim again; or delete claim %s/%s first. If these are two buckets, let spec.bucketValidation.store tell them apart",
		bucket.Status.BucketID, bucket.Spec.Store, bucket.Name, other.Spec.Store, other.Name, other.Spec.ClaimRef.Namespace, other.Spec.ClaimRef.Name, own,
		o.record.Spec.Provisioner, other.Spec.ClaimRef.Namespace, other.Spec.ClaimRef.Name)
}

// presentStore returns the store that a record would have if it was written now.
func (r *Reconciler) presentStore(ctx context.Context, definition podplan.BucketDefinition, bucket *pavv1.PavBucket) (string, error) {
	namespace, err := r.namespace(ctx, bucket.Spec.ClaimRef.Namespace)
	if err != nil {
		return "", err
	}
	return podplan.BucketRequest{BucketDefinition: definition, Record: bucket, Namespace: namespace}.Store(ctx)
}

// namespace returns a Namespace as templates see it; nil if it is gone.
func (r *Reconciler) namespace(ctx context.Context, name string) (map[string]any, error) {
	live, err := reconcile.Optional(ctx, r.Live, client.ObjectKey{Name: name}, &corev1.Namespace{})
	if err != nil || live == nil {
		return nil, err
	}
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(live)
	if err != nil {
		return nil, fmt.Errorf("decoding namespace %q: %w", name, err)
	}
	return object, nil
}

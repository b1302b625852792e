package obc

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	objectbucketv1 "github.com/albertofaria/pav/internal/api/objectbucket/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/bucketapi"
	"github.com/albertofaria/pav/internal/controller/rule"
)

// releaseAccess gives up the access of a claim that is gone or going.
func (r *Reconciler) releaseAccess(ctx context.Context, o observation, d rule.Decision) error {
	o, err := r.confirmed(ctx, o, d.Step)
	if err != nil {
		return err
	}
	released := o.access.DeepCopy()
	released.Spec.Released = true
	if err := bucketapi.Patch(ctx, r.Client, o.access, released); err != nil {
		return err
	}
	ctrl.LoggerFrom(ctx).Info("released the access of a claim")
	return nil
}

// releaseBucket gives up the bucket of a claim, after what tells clients of it.
func (r *Reconciler) releaseBucket(ctx context.Context, o observation, d rule.Decision) error {
	o, err := r.confirmed(ctx, o, d.Step)
	if err != nil {
		return err
	}
	if err := r.removeConfigMap(ctx, o); err != nil {
		return err
	}
	if o.objectBucket != nil {
		if err := r.setBucketPhase(ctx, &o, objectbucketv1.BucketReleased); err != nil {
			return err
		}
	}
	released := o.bucket.DeepCopy()
	released.Spec.Released = true
	if err := bucketapi.Patch(ctx, r.Client, o.bucket, released); err != nil {
		return err
	}
	ctrl.LoggerFrom(ctx).Info("released the bucket of a claim")
	return nil
}

// deleteObjectBucket deletes the ObjectBucket of a claim that has no bucket any more.
func (r *Reconciler) deleteObjectBucket(ctx context.Context, o observation, d rule.Decision) error {
	o, err := r.confirmed(ctx, o, d.Step)
	if err != nil {
		return err
	}
	if err := r.removeConfigMap(ctx, o); err != nil { // in case that the records were removed by force
		return err
	}
	return bucketapi.DeleteHeld(ctx, r.Client, o.objectBucket, objectbucketv1.Finalizer)
}

// releaseClaim lets a claim be deleted of which nothing is left.
func (r *Reconciler) releaseClaim(ctx context.Context, o observation, d rule.Decision) error {
	o, err := r.confirmed(ctx, o, d.Step)
	if err != nil {
		return err
	}
	if err := r.removeConfigMap(ctx, o); err != nil { // in case that the records were removed by force
		return err
	}
	if err := r.patchClaim(ctx, o.claim, func(claim *objectbucketv1.ObjectBucketClaim) {
		controllerutil.RemoveFinalizer(claim, objectbucketv1.Finalizer)
	}); err != nil {
		return err
	}
	ctrl.LoggerFrom(ctx).Info("let a claim be deleted")
	return nil
}

package cosi0

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"

	cosiv0 "github.com/albertofaria/pav/internal/api/cosi/proposal"
	"github.com/albertofaria/pav/internal/controller/bucketapi"
	"github.com/albertofaria/pav/internal/controller/rule"
)

// releaseAccess gives up the access of a Bucket that is gone or going.
func (r *Reconciler) releaseAccess(ctx context.Context, o observation, d rule.Decision) error {
	o, err := r.confirmed(ctx, o, d.Step)
	if err != nil {
		return err
	}
	if err := bucketapi.ReleaseAccess(ctx, r.Client, o.access); err != nil {
		return err
	}
	ctrl.LoggerFrom(ctx).Info("released the access of a Bucket")
	return nil
}

// releaseBucket gives up the bucket of a Bucket.
func (r *Reconciler) releaseBucket(ctx context.Context, o observation, d rule.Decision) error {
	o, err := r.confirmed(ctx, o, d.Step)
	if err != nil {
		return err
	}
	if o.content != nil {
		if err := r.setContentPhase(ctx, &o, cosiv0.ContentReleased); err != nil {
			return err
		}
	}
	if err := bucketapi.ReleaseBucket(ctx, r.Client, o.bucket); err != nil {
		return err
	}
	ctrl.LoggerFrom(ctx).Info("released the bucket of a Bucket")
	return nil
}

// deleteContent deletes the BucketContent of a Bucket that need not wait for PaV any more.
func (r *Reconciler) deleteContent(ctx context.Context, o observation, d rule.Decision) error {
	o, err := r.confirmed(ctx, o, d.Step)
	if err != nil {
		return err
	}
	return bucketapi.DeleteHeld(ctx, r.Client, o.content, cosiv0.Finalizer)
}

// letGo lets a Bucket be deleted that has no bucket any more.
func (r *Reconciler) letGo(ctx context.Context, o observation, d rule.Decision) error {
	o, err := r.confirmed(ctx, o, d.Step)
	if err != nil {
		return err
	}
	if err := bucketapi.LetGo(ctx, r.Client, o.object, cosiv0.Finalizer); err != nil {
		return err
	}
	ctrl.LoggerFrom(ctx).Info("let a Bucket be deleted")
	return nil
}

package cosi0

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

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

// deleteContent deletes the BucketContent of a Bucket that has no bucket any more. An agent that is killed between the two writes finds a
// BucketContent to delete again.
func (r *Reconciler) deleteContent(ctx context.Context, o observation, d rule.Decision) error {
	o, err := r.confirmed(ctx, o, d.Step)
	if err != nil {
		return err
	}
	free := o.content.DeepCopy()
	if controllerutil.RemoveFinalizer(free, cosiv0.Finalizer) {
		if err := bucketapi.Patch(ctx, r.Client, o.content, free); err != nil {
			return err
		}
	}
	if err := r.Client.Delete(ctx, free, client.Preconditions{UID: new(free.UID)}); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting BucketContent %q: %w", free.Name, err)
	}
	return nil
}

// letGo lets a Bucket be deleted of which nothing is left.
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

package cosi2

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cosiv2 "github.com/albertofaria/pav/internal/api/cosi/v1alpha2"
	"github.com/albertofaria/pav/internal/controller/bucketapi"
	"github.com/albertofaria/pav/internal/controller/rule"
)

// releaseClaim gives up the bucket of a claim that is gone or going.
func (r *Reconciler) releaseClaim(ctx context.Context, o claimObservation, d rule.Decision) error {
	o, err := r.confirmedClaim(ctx, o, d.Step)
	if err != nil {
		return err
	}
	if err := bucketapi.ReleaseBucket(ctx, r.Client, o.record); err != nil {
		return err
	}
	ctrl.LoggerFrom(ctx).Info("released the bucket of a claim")
	return nil
}

// showDeletionFailure shows in a claim that is being deleted why its bucket could not be deleted.
func (r *Reconciler) showDeletionFailure(ctx context.Context, o claimObservation, d rule.Decision) error {
	o, err := r.confirmedClaim(ctx, o, d.Step)
	if err != nil {
		return err
	}
	shown := o.claim.DeepCopy()
	shown.Status.Error = errorOf(o.record.Status.DeletionFailure)
	return bucketapi.PatchStatus(ctx, r.Client, o.claim, shown)
}

// letClaimGo lets a claim be deleted that has no bucket any more.
func (r *Reconciler) letClaimGo(ctx context.Context, o claimObservation, d rule.Decision) error {
	o, err := r.confirmedClaim(ctx, o, d.Step)
	if err != nil {
		return err
	}
	if err := bucketapi.LetGo(ctx, r.Client, o.claim, cosiv2.Finalizer); err != nil {
		return err
	}
	ctrl.LoggerFrom(ctx).Info("let a claim be deleted")
	return nil
}

// deleteBucket deletes the Bucket of a claim that has no bucket any more, which brings another pass that lets it go. A Bucket that stays is
// only let go: it stays bound to the claim that had it. An administrator may just have said that it stays.
func (r *Reconciler) deleteBucket(ctx context.Context, o claimObservation, d rule.Decision) error {
	o, err := r.confirmedClaim(ctx, o, d.Step)
	if err != nil {
		return err
	}
	b := o.bucket
	if !o.isBucketDeletable() || b.DeletionTimestamp != nil {
		return bucketapi.LetGo(ctx, r.Client, b, cosiv2.Finalizer)
	}
	if err := r.Client.Delete(ctx, b, client.Preconditions{UID: new(b.UID), ResourceVersion: new(b.ResourceVersion)}); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting Bucket %q: %w", b.Name, err)
	}
	return nil
}

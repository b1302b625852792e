package cosi1

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	cosiv1 "github.com/albertofaria/pav/internal/api/cosi/v1alpha1"
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

// letClaimGo lets a claim be deleted that has no bucket any more.
func (r *Reconciler) letClaimGo(ctx context.Context, o claimObservation, d rule.Decision) error {
	o, err := r.confirmedClaim(ctx, o, d.Step)
	if err != nil {
		return err
	}
	if err := bucketapi.LetGo(ctx, r.Client, o.claim, cosiv1.ClaimFinalizer); err != nil {
		return err
	}
	ctrl.LoggerFrom(ctx).Info("let a claim be deleted")
	return nil
}

// deleteBucket deletes the Bucket of a claim that has no bucket any more. That of an administrator is only let go: it stays bound to the
// claim that had it. An agent that is killed between the two writes finds a Bucket to delete again.
func (r *Reconciler) deleteBucket(ctx context.Context, o claimObservation, d rule.Decision) error {
	o, err := r.confirmedClaim(ctx, o, d.Step)
	if err != nil {
		return err
	}
	b, made := o.bucket, o.isMade()
	if free := released(b); free != nil {
		if err := bucketapi.Patch(ctx, r.Client, b, free); err != nil {
			return err
		}
		b = free
	}
	if !made {
		return nil
	}
	if err := r.Client.Delete(ctx, b, client.Preconditions{UID: new(b.UID)}); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting Bucket %q: %w", b.Name, err)
	}
	return nil
}

// released returns a Bucket without COSI's finalizers; nil if it has none.
func released(b *cosiv1.Bucket) *cosiv1.Bucket {
	free := b.DeepCopy()
	held := controllerutil.RemoveFinalizer(free, cosiv1.BucketFinalizer)
	if accessed := controllerutil.RemoveFinalizer(free, cosiv1.AccessedBucketFinalizer); !held && !accessed {
		return nil
	}
	return free
}

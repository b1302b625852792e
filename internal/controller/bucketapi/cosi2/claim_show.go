package cosi2

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	cosiv2 "github.com/albertofaria/pav/internal/api/cosi/v1alpha2"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/bucketapi"
	"github.com/albertofaria/pav/internal/controller/rule"
	"github.com/albertofaria/pav/internal/protocol"
	"github.com/albertofaria/pav/internal/reconcile"
)

// showClaim shows the bucket: in the Bucket, and then in the claim, whose status says that all the rest is there.
func (r *Reconciler) showClaim(ctx context.Context, o claimObservation, d rule.Decision) error {
	o, err := r.confirmedClaim(ctx, o, d.Step)
	if err != nil {
		return err
	}
	if err := r.showBucket(ctx, &o); err != nil {
		return err
	}
	held := o.claim.DeepCopy()
	if controllerutil.AddFinalizer(held, cosiv2.Finalizer) {
		if err := bucketapi.Patch(ctx, r.Client, o.claim, held); err != nil {
			return err
		}
	}
	shown := held.DeepCopy()
	shown.Status = o.claimStatus()
	if equality.Semantic.DeepEqual(held.Status, shown.Status) {
		return nil
	}
	if err := bucketapi.PatchStatus(ctx, r.Client, held, shown); err != nil {
		return err
	}
	if o.isReady() && !o.claim.Status.ReadyToUse {
		r.tellClaim(o, corev1.EventTypeNormal, protocol.BucketClaimBound, fmt.Sprintf("bucket %q is ready: a BucketAccess gives access to it", o.record.Status.BucketID))
		ctrl.LoggerFrom(ctx).Info("the bucket of a claim is ready", "bucketId", o.record.Status.BucketID)
	}
	return nil
}

// showBucket writes the Bucket of a claim, if it does not show what the record says.
func (r *Reconciler) showBucket(ctx context.Context, o *claimObservation) error {
	switch {
	case o.bucket == nil && o.isExisting():
		return nil // it was the administrator's
	case o.bucket == nil:
		created := newBucket(*o)
		if err := r.Client.Create(ctx, created); apierrors.IsAlreadyExists(err) {
			return reconcile.ErrStale
		} else if err != nil {
			return fmt.Errorf("creating Bucket %q: %w", created.Name, err)
		}
		o.bucket = created
	case o.needsFinalizer():
		held := o.bucket.DeepCopy()
		controllerutil.AddFinalizer(held, cosiv2.Finalizer)
		if err := bucketapi.Patch(ctx, r.Client, o.bucket, held); err != nil {
			return err
		}
		o.bucket = held
	}
	shown := o.bucket.DeepCopy()
	shown.Status = o.bucketStatus()
	if equality.Semantic.DeepEqual(o.bucket.Status, shown.Status) {
		return nil
	}
	return bucketapi.PatchStatus(ctx, r.Client, o.bucket, shown)
}

// newBucket returns the Bucket that is made for a claim.
func newBucket(o claimObservation) *cosiv2.Bucket {
	spec := &o.record.Spec
	return &cosiv2.Bucket{
		ObjectMeta: metav1.ObjectMeta{
			Name: spec.BucketName, Labels: map[string]string{pavv1.ProvisionerLabel: spec.Provisioner}, Finalizers: []string{cosiv2.Finalizer},
		},
		Spec: cosiv2.BucketSpec{
			DriverName: spec.Provisioner, DeletionPolicy: cosiv2.DeletionPolicy(spec.ReclaimPolicy), Parameters: spec.Parameters,
			Protocols: namesOf(spec.Protocols), BucketClaimRef: cosiv2.BucketClaimReference{Namespace: o.name.Namespace, Name: o.name.Name, UID: o.uid},
		},
	}
}

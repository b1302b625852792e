package cosi0

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"

	cosiv0 "github.com/albertofaria/pav/internal/api/cosi/proposal"
	"github.com/albertofaria/pav/internal/controller/bucketapi"
	"github.com/albertofaria/pav/internal/controller/rule"
	"github.com/albertofaria/pav/internal/protocol"
	"github.com/albertofaria/pav/internal/reconcile"
)

// show shows the bucket: in the BucketContent, and then in the Bucket, whose phase says that all the rest is there.
func (r *Reconciler) show(ctx context.Context, o observation, d rule.Decision) error {
	o, err := r.confirmed(ctx, o, d.Step)
	if err != nil {
		return err
	}
	if err := r.showContent(ctx, &o); err != nil {
		return err
	}
	if o.object.Status == o.boundStatus() {
		return nil
	}
	shown := o.object.DeepCopy()
	shown.Status = o.boundStatus()
	if err := bucketapi.PatchStatus(ctx, r.Client, o.object, shown); err != nil {
		return err
	}
	if o.object.Status.Phase != cosiv0.BucketBound {
		r.tell(o, corev1.EventTypeNormal, protocol.BucketClaimBound, fmt.Sprintf("bucket %q can be used: Secret %q tells how", o.bucket.Status.BucketID, o.access.Spec.Buckets[0].SecretName))
		ctrl.LoggerFrom(ctx).Info("a Bucket has its bucket", "bucketId", o.bucket.Status.BucketID)
	}
	return nil
}

// showContent writes the BucketContent of a Bucket, if it does not show what the records say.
func (r *Reconciler) showContent(ctx context.Context, o *observation) error {
	if o.content == nil {
		created := newContent(*o)
		if err := r.Client.Create(ctx, created); apierrors.IsAlreadyExists(err) {
			return reconcile.ErrStale
		} else if err != nil {
			return fmt.Errorf("creating BucketContent %q: %w", created.Name, err)
		}
		o.content = created
	}
	changed := o.content.DeepCopy()
	fill(changed, *o)
	if !equality.Semantic.DeepEqual(o.content, changed) {
		if err := bucketapi.Patch(ctx, r.Client, o.content, changed); err != nil {
			return err
		}
		o.content = changed
	}
	return r.setContentPhase(ctx, o, cosiv0.ContentBound)
}

// setContentPhase writes the phase of a BucketContent.
func (r *Reconciler) setContentPhase(ctx context.Context, o *observation, phase cosiv0.ContentPhase) error {
	if o.content.Status.Phase == phase {
		return nil
	}
	changed := o.content.DeepCopy()
	changed.Status = cosiv0.BucketContentStatus{Phase: phase}
	if err := bucketapi.PatchStatus(ctx, r.Client, o.content, changed); err != nil {
		return err
	}
	o.content = changed
	return nil
}

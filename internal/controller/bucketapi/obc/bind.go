package obc

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"

	objectbucketv1 "github.com/albertofaria/pav/internal/api/objectbucket/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/bucketapi"
	"github.com/albertofaria/pav/internal/controller/rule"
	"github.com/albertofaria/pav/internal/protocol"
	"github.com/albertofaria/pav/internal/reconcile"
)

// bind shows the bucket: in the ObjectBucket, then in the ConfigMap, and then in the claim, whose phase says that all the rest is there.
func (r *Reconciler) bind(ctx context.Context, o observation, d rule.Decision) error {
	o, err := r.confirmed(ctx, o, d.Step)
	if err != nil {
		return err
	}
	if err := r.showObjectBucket(ctx, &o); err != nil {
		return err
	}
	refused, err := r.writeConfigMap(ctx, o)
	if err != nil {
		return err
	}
	if refused != nil {
		return r.refuse(ctx, o, *refused)
	}
	if err := r.patchClaim(ctx, o.claim, func(claim *objectbucketv1.ObjectBucketClaim) {
		if claim.Spec.BucketName == "" {
			claim.Spec.BucketName = o.bucket.Spec.BucketName
		}
		if claim.Spec.ObjectBucketName == "" {
			claim.Spec.ObjectBucketName = o.objectBucket.Name
		}
	}); err != nil || o.claim.Status.Phase == objectbucketv1.ClaimBound {
		return err
	}
	if err := r.setPhase(ctx, o.claim, objectbucketv1.ClaimBound); err != nil {
		return err
	}
	r.tell(o, corev1.EventTypeNormal, protocol.BucketClaimBound,
		fmt.Sprintf("bucket %q can be used: Secret and ConfigMap %q tell how", o.bucket.Status.BucketID, o.name.Name))
	ctrl.LoggerFrom(ctx).Info("bound a claim to its bucket", "bucketId", o.bucket.Status.BucketID)
	return nil
}

// showObjectBucket writes the ObjectBucket of a claim, if it does not show what the record says.
func (r *Reconciler) showObjectBucket(ctx context.Context, o *observation) error {
	if o.objectBucket == nil {
		created := objectBucketOf(*o)
		if err := r.Client.Create(ctx, created); apierrors.IsAlreadyExists(err) {
			return reconcile.ErrStale
		} else if err != nil {
			return fmt.Errorf("creating ObjectBucket %q: %w", created.Name, err)
		}
		o.objectBucket = created
	}
	changed := o.objectBucket.DeepCopy()
	fill(changed, *o)
	if !equality.Semantic.DeepEqual(o.objectBucket, changed) {
		if err := bucketapi.Patch(ctx, r.Client, o.objectBucket, changed); err != nil {
			return err
		}
		o.objectBucket = changed
	}
	return r.setBucketPhase(ctx, o, objectbucketv1.BucketBound)
}

// setBucketPhase writes the phase of an ObjectBucket.
func (r *Reconciler) setBucketPhase(ctx context.Context, o *observation, phase objectbucketv1.BucketPhase) error {
	if o.objectBucket.Status.Phase == phase {
		return nil
	}
	changed := o.objectBucket.DeepCopy()
	changed.Status.Phase = phase
	if err := bucketapi.PatchStatus(ctx, r.Client, o.objectBucket, changed); err != nil {
		return err
	}
	o.objectBucket = changed
	return nil
}

package obc

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/bucketapi"
	"github.com/albertofaria/pav/internal/controller/rule"
	"github.com/albertofaria/pav/internal/podplan"
	"github.com/albertofaria/pav/internal/protocol"
	"github.com/albertofaria/pav/internal/reconcile"
)

// update writes into the PavBucket what the claim asks for now. Only additionalConfig can change, with the quota in it; whether the
// definition allows that is decided when the bucket is updated.
func (r *Reconciler) update(ctx context.Context, o observation, d rule.Decision) error {
	if since := o.now.Sub(o.memory.copied); since >= 0 && since < copyInterval {
		return &reconcile.Later{After: copyInterval - since}
	}
	r.memories.change(o.name, o.uid, func(m *memory) { m.copied = o.now })
	o, err := r.confirmed(ctx, o, d.Step)
	if err != nil {
		return err
	}
	claim, err := r.copyClaim(ctx, o)
	if podplan.IsRefusal(err) {
		return r.refuse(ctx, o, refuse(protocol.BucketClaimRefused, fmt.Sprintf("spec.additionalConfig: the change has no effect: %v", err)))
	}
	if err != nil {
		return err
	}
	// The record is as the API server has it, so that the difference replaces all of the former copy.
	changed := o.bucket.DeepCopy()
	changed.Spec.AdditionalConfig, changed.Spec.Claim = o.claim.Spec.AdditionalConfig, claim
	if err := bucketapi.Patch(ctx, r.Client, o.bucket, changed); err != nil {
		return err
	}
	ctrl.LoggerFrom(ctx).Info("the claim asks for another configuration of its bucket")
	return nil
}

// rotate passes a request for a new account on to the PavBucketAccess.
func (r *Reconciler) rotate(ctx context.Context, o observation, _ rule.Decision) error {
	changed := o.access.DeepCopy()
	metav1.SetMetaDataAnnotation(&changed.ObjectMeta, pavv1.RotateAnnotation, o.rotation().Requested)
	return bucketapi.Patch(ctx, r.Client, o.access, changed)
}

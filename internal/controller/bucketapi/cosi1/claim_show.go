package cosi1

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	cosiv1 "github.com/albertofaria/pav/internal/api/cosi/v1alpha1"
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
	if controllerutil.AddFinalizer(held, cosiv1.ClaimFinalizer) {
		if err := bucketapi.Patch(ctx, r.Client, o.claim, held); err != nil {
			return err
		}
	}
	status, was := o.claimStatus(), o.claim.Status
	if was == status {
		return nil
	}
	if err := r.patchClaimStatus(ctx, held, status); err != nil {
		return err
	}
	if status.BucketReady && !was.BucketReady {
		r.tellClaim(o, corev1.EventTypeNormal, protocol.BucketClaimBound, fmt.Sprintf("bucket %q is ready: a BucketAccess gives access to it", o.record.Status.BucketID))
		ctrl.LoggerFrom(ctx).Info("the bucket of a claim is ready", "bucketId", o.record.Status.BucketID)
	}
	return nil
}

// patchClaimStatus writes the status of a claim, unless the claim has changed since it was read. The patch has bucketReady also where it
// stays false: COSI demands it, and the claim may have no status yet.
func (r *Reconciler) patchClaimStatus(ctx context.Context, claim *cosiv1.BucketClaim, status cosiv1.BucketClaimStatus) error {
	raw, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": claim.ResourceVersion}, "status": status})
	if err != nil {
		return fmt.Errorf("encoding the status of claim %q: %w", claim.Name, err)
	}
	err = r.Client.Status().Patch(ctx, claim.DeepCopy(), client.RawPatch(types.MergePatchType, raw))
	return bucketapi.AboutPatch(claim, err)
}

// showBucket writes the Bucket of a claim, if it does not show what the record says.
func (r *Reconciler) showBucket(ctx context.Context, o *claimObservation) error {
	if o.bucket == nil {
		if o.isExisting() {
			return nil // it was the administrator's
		}
		created, err := newBucket(*o)
		if err != nil {
			return err
		}
		if err := r.Client.Create(ctx, created); apierrors.IsAlreadyExists(err) {
			return reconcile.ErrStale
		} else if err != nil {
			return fmt.Errorf("creating Bucket %q: %w", created.Name, err)
		}
		o.bucket = created
	}
	if changed := filled(*o); !equality.Semantic.DeepEqual(o.bucket, changed) {
		if err := bucketapi.Patch(ctx, r.Client, o.bucket, changed); err != nil {
			return err
		}
		o.bucket = changed
	}
	if o.bucket.Status == o.bucketStatus() {
		return nil
	}
	changed := o.bucket.DeepCopy()
	changed.Status = o.bucketStatus()
	return bucketapi.PatchStatus(ctx, r.Client, o.bucket, changed)
}

// newBucket returns the Bucket that is made for a claim, whose record is as the API server has it.
func newBucket(o claimObservation) (*cosiv1.Bucket, error) {
	spec, class := &o.record.Spec, &cosiv1.BucketClass{}
	if spec.Class != nil {
		if err := json.Unmarshal(spec.Class.Raw, class); err != nil {
			return nil, fmt.Errorf("spec.class of PavBucket %q: %w", o.record.Name, err)
		}
	}
	b := &cosiv1.Bucket{
		ObjectMeta: metav1.ObjectMeta{Name: spec.BucketName, Labels: map[string]string{pavv1.ProvisionerLabel: spec.Provisioner}},
		Spec: cosiv1.BucketSpec{
			DriverName: spec.Provisioner, BucketClassName: class.Name, BucketClaim: o.claimReference(corev1.ObjectReference{}),
			Protocols: namesOf(spec.Protocols), Parameters: spec.Parameters, DeletionPolicy: cosiv1.DeletionPolicy(spec.ReclaimPolicy),
		},
	}
	o.bucket = b
	return filled(o), nil
}

// filled returns the Bucket of a claim with the finalizers that it is to have. One that is being deleted gets none.
func filled(o claimObservation) *cosiv1.Bucket {
	b := o.bucket.DeepCopy()
	if b.DeletionTimestamp == nil {
		controllerutil.AddFinalizer(b, cosiv1.BucketFinalizer)
	}
	switch {
	case len(o.accesses) == 0:
		controllerutil.RemoveFinalizer(b, cosiv1.AccessedBucketFinalizer)
	case b.DeletionTimestamp == nil:
		controllerutil.AddFinalizer(b, cosiv1.AccessedBucketFinalizer)
	}
	return b
}

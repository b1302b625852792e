package cosi2

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	cosiv2 "github.com/albertofaria/pav/internal/api/cosi/v1alpha2"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/bucketapi"
	"github.com/albertofaria/pav/internal/controller/rule"
	"github.com/albertofaria/pav/internal/observability"
	"github.com/albertofaria/pav/internal/podplan"
	"github.com/albertofaria/pav/internal/protocol"
)

// recordClaim writes the record of a claim, which is the intent, before any effect: from then on, nothing depends on the class any more.
func (r *Reconciler) recordClaim(ctx context.Context, o claimObservation, d rule.Decision) error {
	o, err := r.confirmedClaim(ctx, o, d.Step)
	if err != nil {
		return err
	}
	record, err := r.newRecord(ctx, o)
	if err == nil && o.isExisting() {
		err = r.bind(ctx, &o)
	}
	if err == nil {
		err = bucketapi.CreateRecord(ctx, r.Client, record)
	}
	if podplan.IsRefusal(err) {
		return r.refuseClaim(ctx, o, bucketapi.Refuse(protocol.BucketClaimRefused, err.Error()))
	}
	if err != nil {
		return err
	}
	r.tellClaim(o, corev1.EventTypeNormal, protocol.Provisioning, fmt.Sprintf("PavProvisioner %q is providing a bucket for claim %q", record.Spec.Provisioner, o.name))
	ctrl.LoggerFrom(ctx).Info("recorded a request for a bucket", observability.Bucket, record.Name)
	return nil
}

// newRecord returns the PavBucket of a claim. The error is a refusal if none can be made from what there is. An existing bucket has no class.
func (r *Reconciler) newRecord(ctx context.Context, o claimObservation) (*pavv1.PavBucket, error) {
	claim, err := bucketapi.CopyRequest(ctx, r.Live, cosiv2.GroupVersion.WithKind(kindClaim), o.claim)
	if err != nil {
		return nil, err
	}
	asked, _ := protocolsOf(o.claim.Spec.Protocols)
	record := &pavv1.PavBucket{
		ObjectMeta: metav1.ObjectMeta{
			Name: o.recordName(), Finalizers: []string{pavv1.BucketFinalizer}, Labels: map[string]string{pavv1.ProvisionerLabel: o.provisioner.Name},
		},
		Spec: pavv1.PavBucketSpec{
			Provisioner: o.provisioner.Name, API: pavv1.BucketAPICOSI2,
			ClaimRef:   pavv1.ClaimReference{Namespace: o.name.Namespace, Name: o.name.Name, UID: o.uid},
			BucketName: o.bucketName(), Protocols: asked, Claim: claim,
		},
	}
	spec := &record.Spec
	if o.isExisting() {
		o.describeExisting(record)
	} else {
		spec.Parameters, spec.ReclaimPolicy = o.class.Spec.Parameters, known(reclaimPolicies, o.class.Spec.DeletionPolicy)
		if spec.Class, err = bucketapi.CopyClass(ctx, r.Live, cosiv2.GroupVersion.WithKind("BucketClass"), o.class); err != nil {
			return nil, err
		}
	}
	spec.Store, err = r.stores().Of(ctx, o.provisioner, record)
	return record, err
}

// stores evaluates in which stores buckets are.
func (r *Reconciler) stores() bucketapi.Stores {
	return bucketapi.Stores{Live: r.Live, Templates: r.Templates, Lookup: func(p *pavv1.PavProvisioner, message string, allowed bool) {
		if due, _ := r.repeats.Due("PavProvisioner "+p.Name, message, r.Now()); due {
			bucketapi.TellLookup(r.Events, p, message, allowed)
		}
	}}
}

// retainBucket writes into the record that the bucket is to be kept, as an administrator has written into the Bucket.
func (r *Reconciler) retainBucket(ctx context.Context, o claimObservation, d rule.Decision) error {
	o, err := r.confirmedClaim(ctx, o, d.Step)
	if err != nil {
		return err
	}
	retained := o.record.DeepCopy()
	retained.Spec.ReclaimPolicy = pavv1.BucketRetain
	if err := bucketapi.Patch(ctx, r.Client, o.record, retained); err != nil {
		return err
	}
	ctrl.LoggerFrom(ctx).Info("a bucket is to be retained, as its Bucket says")
	return nil
}

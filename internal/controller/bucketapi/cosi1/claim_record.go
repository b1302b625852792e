package cosi1

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	cosiv1 "github.com/albertofaria/pav/internal/api/cosi/v1alpha1"
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

// newRecord returns the PavBucket of a claim. The error is a refusal if none can be made from what there is.
func (r *Reconciler) newRecord(ctx context.Context, o claimObservation) (*pavv1.PavBucket, error) {
	claim, err := bucketapi.CopyRequest(ctx, r.Live, cosiv1.GroupVersion.WithKind(kindClaim), o.claim)
	if err != nil {
		return nil, err
	}
	class, err := r.copyClass(ctx, o)
	if err != nil {
		return nil, err
	}
	protocols, _ := protocolsOf(o.claim.Spec.Protocols)
	record := &pavv1.PavBucket{
		ObjectMeta: metav1.ObjectMeta{
			Name: o.recordName(), Finalizers: []string{pavv1.BucketFinalizer}, Labels: map[string]string{pavv1.ProvisionerLabel: o.provisioner.Name},
		},
		Spec: pavv1.PavBucketSpec{
			Provisioner: o.provisioner.Name, API: pavv1.BucketAPICOSI1,
			ClaimRef:   pavv1.ClaimReference{Namespace: o.name.Namespace, Name: o.name.Name, UID: o.uid},
			BucketName: o.bucketName(), Protocols: protocols, Claim: claim, Class: class,
		},
	}
	if o.isExisting() {
		describeExisting(record, o.bucket)
	} else {
		record.Spec.Parameters, record.Spec.ReclaimPolicy = o.class.Parameters, reclaimPolicy(o.class)
	}
	record.Spec.Store, err = r.stores().Of(ctx, o.provisioner, record)
	return record, err
}

// describeExisting writes into a record what the Bucket of an administrator says. Its bucket stays the administrator's, whatever the Bucket
// says about that.
func describeExisting(record *pavv1.PavBucket, b *cosiv1.Bucket) {
	spec := &record.Spec
	spec.ExistingBucketID, spec.Parameters, spec.ReclaimPolicy = b.Spec.ExistingBucketID, b.Spec.Parameters, pavv1.BucketRetain
	if len(spec.Protocols) == 0 {
		spec.Protocols, _ = protocolsOf(b.Spec.Protocols)
	}
}

// copyClass returns the copy of the class of a claim. That of an existing bucket is the one that its Bucket names, if it is of the same
// driver; there need not be one.
func (r *Reconciler) copyClass(ctx context.Context, o claimObservation) (*apiextensionsv1.JSON, error) {
	class := o.class
	if o.isExisting() {
		var err error
		if class, err = bucketapi.Named(ctx, r.Live, o.bucket.Spec.BucketClassName, &cosiv1.BucketClass{}); err != nil {
			return nil, err
		}
		if class == nil || class.DriverName != o.provisioner.Name {
			return nil, nil
		}
	}
	return bucketapi.CopyClass(ctx, r.Live, cosiv1.GroupVersion.WithKind("BucketClass"), class)
}

// stores evaluates in which stores buckets are.
func (r *Reconciler) stores() bucketapi.Stores {
	return bucketapi.Stores{Live: r.Live, Templates: r.Templates, Lookup: func(p *pavv1.PavProvisioner, message string, allowed bool) {
		if due, _ := r.repeats.Due("PavProvisioner "+p.Name, message, r.Now()); due {
			bucketapi.TellLookup(r.Events, p, message, allowed)
		}
	}}
}

package cosi2

import (
	"context"
	"fmt"
	"slices"

	ctrl "sigs.k8s.io/controller-runtime"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/bucketapi"
	"github.com/albertofaria/pav/internal/controller/rule"
	"github.com/albertofaria/pav/internal/protocol"
)

// refuseExisting returns why the claim cannot have the Bucket of an administrator that it asks for, or nil. The administrator chose the
// Bucket; the tenant only its name.
func (o claimObservation) refuseExisting() *rule.Decision {
	const reason = protocol.BucketClaimRefused
	b := o.bucket
	switch {
	case b == nil:
		d := bucketapi.Wait(protocol.BucketClaimWaiting, fmt.Sprintf("Bucket %q, which the claim asks for, does not exist: an administrator has to write it", o.bucketName()))
		return &d
	case b.DeletionTimestamp != nil:
		return bucketapi.Refused(reason, "Bucket %q is being deleted", b.Name)
	}
	if d := o.refuseBinding(); d != nil {
		return d
	}
	if b.Spec.ExistingBucketID == "" {
		return bucketapi.Refused(reason, "Bucket %q has no spec.existingBucketID, which names the bucket", b.Name)
	}
	if _, unknown := protocolsOf(b.Spec.Protocols); unknown != "" {
		return bucketapi.Refused(reason, "%s", unknownProtocol(unknown))
	}
	for _, asked := range o.claim.Spec.Protocols {
		if len(b.Spec.Protocols) > 0 && !slices.Contains(b.Spec.Protocols, asked) { // one that lists none has those of its provisioner
			return bucketapi.Refused(reason, "the claim asks for the protocol %s, which Bucket %q does not support", asked, b.Name)
		}
	}
	return nil
}

// refuseBinding returns why the Bucket cannot be bound to the claim, or nil. A Bucket is bound to the claim that it names, and never to
// another: anyone who may write claims could otherwise have any Bucket.
func (o claimObservation) refuseBinding() *rule.Decision {
	const reason = protocol.BucketBoundElsewhere
	b, ref := o.bucket, o.bucket.Spec.BucketClaimRef
	switch {
	case o.holder != "":
		return bucketapi.Refused(reason, "Bucket %q is that of claim %s, and can be bound to no other", b.Name, o.holder)
	case ref.Namespace != o.name.Namespace || ref.Name != o.name.Name:
		return bucketapi.Refused(reason, "Bucket %q is that of claim %q of namespace %q, and can be bound to no other", b.Name, ref.Name, ref.Namespace)
	case ref.UID != "" && ref.UID != o.uid:
		return bucketapi.Refused(reason, "Bucket %q is bound to a former claim of this name, for good. An administrator lets this one have the bucket by writing another Bucket for it", b.Name)
	default:
		return nil
	}
}

// describeExisting writes into a record what the Bucket of an administrator says. Its bucket stays the administrator's, whatever the Bucket
// says about that.
func (o claimObservation) describeExisting(record *pavv1.PavBucket) {
	b, spec := o.bucket, &record.Spec
	spec.ExistingBucketID, spec.Parameters, spec.ReclaimPolicy = b.Spec.ExistingBucketID, b.Spec.Parameters, pavv1.BucketRetain
	if len(spec.Protocols) == 0 {
		spec.Protocols, _ = protocolsOf(b.Spec.Protocols)
	}
}

// bind writes the claim's UID into the Bucket of an administrator, for good, unless someone else wrote the Bucket meanwhile. It comes before
// the record: of two claims, only one can have the Bucket.
func (r *Reconciler) bind(ctx context.Context, o *claimObservation) error {
	if o.isBound() {
		return nil
	}
	bound := o.bucket.DeepCopy()
	bound.Spec.BucketClaimRef.UID = o.uid
	if err := bucketapi.Patch(ctx, r.Client, o.bucket, bound); err != nil {
		return err
	}
	o.bucket = bound
	ctrl.LoggerFrom(ctx).Info("bound a Bucket to a claim", "bucket", bound.Name)
	return nil
}

package cosi1

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	cosiv1 "github.com/albertofaria/pav/internal/api/cosi/v1alpha1"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/bucketapi"
	"github.com/albertofaria/pav/internal/controller/rule"
	"github.com/albertofaria/pav/internal/protocol"
)

// mostID is how many bytes may identify a bucket in a PavBucket.
const mostID = 2048

// refuseExisting returns why the claim cannot have the Bucket of an administrator that it asks for, or nil. The administrator chose the
// Bucket; the tenant only its name.
func (o claimObservation) refuseExisting() *rule.Decision {
	b := o.bucket
	switch {
	case b == nil:
		d := bucketapi.Wait(protocol.BucketClaimWaiting, fmt.Sprintf("Bucket %q, which the claim asks for, does not exist: an administrator has to write it", o.bucketName()))
		return &d
	case b.DeletionTimestamp != nil:
		return bucketapi.Refused(protocol.BucketClaimRefused, "Bucket %q is being deleted", b.Name)
	}
	if d := o.refuseBinding(); d != nil {
		return d
	}
	if id := b.Spec.ExistingBucketID; id == "" || len(id) > mostID {
		return bucketapi.Refused(protocol.BucketClaimRefused, "spec.existingBucketID of Bucket %q has %d bytes: it must name the bucket, with %d bytes at most", b.Name, len(id), mostID)
	}
	asked, unknown := protocolsOf(o.claim.Spec.Protocols)
	if unknown == "" {
		_, unknown = protocolsOf(b.Spec.Protocols)
	}
	if unknown != "" {
		return bucketapi.Refused(protocol.BucketClaimRefused, "%s", unknownProtocol(unknown))
	}
	if missing := without(asked, b); missing != "" {
		return bucketapi.Refused(protocol.BucketClaimRefused, "the claim asks for the protocol %s, which Bucket %q does not support", missing, b.Name)
	}
	return nil
}

// without returns a protocol that is asked for and that a Bucket does not support, or "". One that lists none supports what its
// provisioner does.
func without(asked []pavv1.BucketProtocol, b *cosiv1.Bucket) string {
	has := map[cosiv1.Protocol]bool{}
	for _, p := range b.Spec.Protocols {
		has[p] = true
	}
	for _, name := range namesOf(asked) {
		if len(has) > 0 && !has[name] {
			return string(name)
		}
	}
	return ""
}

// refuseBinding returns why the Bucket cannot be bound to the claim, or nil. A Bucket is bound to the claim that it names, and never to
// another: anyone who may write claims could otherwise have any Bucket.
func (o claimObservation) refuseBinding() *rule.Decision {
	b, ref := o.bucket, reference(o.bucket)
	elsewhere := func(claim string) *rule.Decision {
		return bucketapi.Refused(protocol.BucketBoundElsewhere, "Bucket %q is that of claim %s, and can be bound to no other", b.Name, claim)
	}
	named := ref.Namespace == o.name.Namespace && ref.Name == o.name.Name
	switch {
	case o.holder != "":
		return elsewhere(o.holder)
	case named && (ref.UID == "" || ref.UID == o.uid):
		return nil
	case named:
		return bucketapi.Refused(protocol.BucketBoundElsewhere, "Bucket %q is bound to a former claim of this name. An administrator lets this one have it by removing spec.bucketClaim.uid of the Bucket", b.Name)
	case ref.Namespace != "" || ref.Name != "" || ref.UID != "":
		return elsewhere(fmt.Sprintf("%q of namespace %q", ref.Name, ref.Namespace))
	case o.unclaimed() == pavv1.UnclaimedFirstClaim:
		return nil
	default:
		return bucketapi.Refused(protocol.BucketUnclaimed, "Bucket %q names no claim. An administrator lets this one have it with: kubectl patch buckets.objectstorage.k8s.io %s --type=merge -p '{\"spec\":{\"bucketClaim\":{\"name\":\"%s\",\"namespace\":\"%s\"}}}'",
			b.Name, b.Name, o.name.Name, o.name.Namespace)
	}
}

// unclaimed returns what the provisioner does with Buckets that name no claim.
func (o claimObservation) unclaimed() pavv1.UnclaimedBuckets {
	if v := o.provisioner.Spec.BucketValidation; v != nil && v.UnclaimedBuckets != "" {
		return v.UnclaimedBuckets
	}
	return pavv1.UnclaimedRefuse
}

// claimReference returns what a Bucket has of the claim, with what it has besides.
func (o claimObservation) claimReference(ref corev1.ObjectReference) *corev1.ObjectReference {
	ref.APIVersion, ref.Kind = cosiv1.GroupVersion.String(), kindClaim
	ref.Namespace, ref.Name, ref.UID = o.name.Namespace, o.name.Name, o.uid
	return &ref
}

// bind writes the claim's UID into the Bucket of an administrator, for good, unless someone else wrote the Bucket meanwhile. It comes before
// the record: of two claims, only one can have the Bucket.
func (r *Reconciler) bind(ctx context.Context, o *claimObservation) error {
	if o.isBound() {
		return nil
	}
	bound := o.bucket.DeepCopy()
	bound.Spec.BucketClaim = o.claimReference(reference(o.bucket))
	if err := bucketapi.Patch(ctx, r.Client, o.bucket, bound); err != nil {
		return err
	}
	o.bucket = bound
	ctrl.LoggerFrom(ctx).Info("bound a Bucket to a claim", "bucket", bound.Name)
	return nil
}

package obc

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	objectbucketv1 "github.com/albertofaria/pav/internal/api/objectbucket/v1alpha1"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/bucketapi"
	"github.com/albertofaria/pav/internal/controller/rule"
	"github.com/albertofaria/pav/internal/observability"
	"github.com/albertofaria/pav/internal/podplan"
	"github.com/albertofaria/pav/internal/protocol"
)

// record writes the records of a claim, which are the intent, before any effect. The PavBucket is the first: all else of the request
// follows from it, so that nothing depends on the class any more.
func (r *Reconciler) record(ctx context.Context, o observation, d rule.Decision) error {
	o, err := r.confirmed(ctx, o, d.Step)
	if err != nil {
		return err
	}
	if o.bucket == nil {
		err = r.recordBucket(ctx, &o)
	}
	if err == nil && o.access == nil {
		err = bucketapi.CreateRecord(ctx, r.Client, newAccess(o.bucket))
	}
	if podplan.IsRefusal(err) {
		return r.refuse(ctx, o, refuse(protocol.BucketClaimRefused, err.Error()))
	}
	if err == nil {
		err = r.hold(ctx, o)
	}
	if err != nil {
		return err
	}
	return r.setPhase(ctx, o.claim, objectbucketv1.ClaimPending)
}

// recordBucket writes the PavBucket of a claim. The error is a refusal if none can be made from what there is.
func (r *Reconciler) recordBucket(ctx context.Context, o *observation) error {
	bucket, err := r.newBucket(ctx, *o)
	if err != nil {
		return err
	}
	if err := bucketapi.CreateRecord(ctx, r.Client, bucket); err != nil {
		return err
	}
	o.bucket = bucket
	r.tell(*o, corev1.EventTypeNormal, protocol.Provisioning, fmt.Sprintf("PavProvisioner %q is providing a bucket for claim %q", bucket.Spec.Provisioner, o.name))
	ctrl.LoggerFrom(ctx).Info("recorded a request for a bucket", observability.Bucket, bucket.Name)
	return nil
}

// holdAgain is hold for a claim whose record was written before.
func (r *Reconciler) holdAgain(ctx context.Context, o observation, d rule.Decision) error {
	o, err := r.confirmed(ctx, o, d.Step)
	if err != nil {
		return err
	}
	return r.hold(ctx, o)
}

// hold gives a claim what the protocol demands, unless it has changed since it was read. The claim has a record: with the finalizer alone, it
// would wait for a PavProvisioner that can be deleted.
func (r *Reconciler) hold(ctx context.Context, o observation) error {
	return r.patchClaim(ctx, o.claim, func(claim *objectbucketv1.ObjectBucketClaim) {
		controllerutil.AddFinalizer(claim, objectbucketv1.Finalizer)
		metav1.SetMetaDataLabel(&claim.ObjectMeta, objectbucketv1.ProvisionerLabel, o.label())
	})
}

// newBucket returns the PavBucket of a claim. The error is a refusal if none can be made from what there is.
func (r *Reconciler) newBucket(ctx context.Context, o observation) (*pavv1.PavBucket, error) {
	claim, err := r.copyClaim(ctx, o)
	if err != nil {
		return nil, err
	}
	class, err := bucketapi.CopyClass(ctx, r.Live, storagev1.SchemeGroupVersion.WithKind("StorageClass"), o.class)
	if err != nil {
		return nil, err
	}
	name := nameOf(o.claim, o.class.Parameters)
	bucket := &pavv1.PavBucket{
		ObjectMeta: metav1.ObjectMeta{
			Name: o.bucketRecord(), Finalizers: []string{pavv1.BucketFinalizer}, Labels: map[string]string{pavv1.ProvisionerLabel: o.provisioner.Name},
		},
		Spec: pavv1.PavBucketSpec{
			Provisioner: o.provisioner.Name, API: pavv1.BucketAPIClaim,
			ClaimRef:   pavv1.ClaimReference{Namespace: o.name.Namespace, Name: o.name.Name, UID: o.uid},
			BucketName: name.bucket, NameRequested: name.requested, ExistingBucketID: name.existing,
			Parameters: o.class.Parameters, AdditionalConfig: o.claim.Spec.AdditionalConfig,
			ReclaimPolicy: policies[reclaimPolicy(o.class)],
			Claim:         claim, Class: class,
		},
	}
	if name.existing != "" {
		bucket.Spec.ReclaimPolicy = pavv1.BucketRetain // it is the administrator's, whatever the class says
	}
	bucket.Spec.Store, err = r.stores().Of(ctx, o.provisioner, bucket)
	return bucket, err
}

// newAccess returns the PavBucketAccess of a claim, whose PavBucket is as the API server has it.
func newAccess(bucket *pavv1.PavBucket) *pavv1.PavBucketAccess {
	spec := &bucket.Spec
	return &pavv1.PavBucketAccess{
		ObjectMeta: metav1.ObjectMeta{
			Name: protocol.AccessRecord(spec.ClaimRef.UID), Finalizers: []string{pavv1.BucketFinalizer}, Labels: map[string]string{pavv1.ProvisionerLabel: spec.Provisioner},
		},
		Spec: pavv1.PavBucketAccessSpec{
			Provisioner: spec.Provisioner, API: pavv1.BucketAPIClaim,
			Requester: pavv1.AccessRequester{Kind: kind, Namespace: spec.ClaimRef.Namespace, Name: spec.ClaimRef.Name, UID: spec.ClaimRef.UID},
			Buckets:   []pavv1.AccessedBucket{{Bucket: bucket.Name, Mode: pavv1.AccessReadWrite, SecretName: spec.ClaimRef.Name}},
			Protocol:  pavv1.ProtocolS3, AuthenticationType: pavv1.AuthenticationKey,
			Parameters: spec.Parameters, Access: spec.Claim, Class: spec.Class,
		},
	}
}

// stores evaluates in which stores buckets are.
func (r *Reconciler) stores() bucketapi.Stores {
	return bucketapi.Stores{Live: r.Live, Templates: r.Templates, Lookup: func(p *pavv1.PavProvisioner, message string, allowed bool) {
		if due, _ := r.repeats.Due(p.Name, message, r.Now()); due {
			bucketapi.TellLookup(r.Events, p, message, allowed)
		}
	}}
}

// copyClaim returns the copy of a claim for its record. The error is a refusal if it is too large, and reconcile.ErrStale if the claim has
// changed since it was read.
func (r *Reconciler) copyClaim(ctx context.Context, o observation) (*apiextensionsv1.JSON, error) {
	return bucketapi.CopyRequest(ctx, r.Live, objectbucketv1.GroupVersion.WithKind(kind), o.claim)
}

package cosi0

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	cosiv0 "github.com/albertofaria/pav/internal/api/cosi/proposal"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/bucketapi"
	"github.com/albertofaria/pav/internal/controller/rule"
	"github.com/albertofaria/pav/internal/observability"
	"github.com/albertofaria/pav/internal/podplan"
	"github.com/albertofaria/pav/internal/protocol"
)

// record writes the records of a Bucket, which are the intent, before any effect. The PavBucket is the first: from then on, nothing depends on
// the class any more.
func (r *Reconciler) record(ctx context.Context, o observation, d rule.Decision) error {
	o, err := r.confirmed(ctx, o, d.Step)
	if err != nil {
		return err
	}
	if o.bucket == nil {
		err = r.recordBucket(ctx, &o)
	}
	if err == nil && o.access == nil {
		err = bucketapi.CreateRecord(ctx, r.Client, newAccess(o))
	}
	if podplan.IsRefusal(err) {
		return r.refuse(ctx, o, refuse("%s", err.Error()))
	}
	if err == nil {
		err = r.hold(ctx, &o)
	}
	if err != nil {
		return err
	}
	return r.setPhase(ctx, o.object, cosiv0.BucketPending)
}

// recordBucket writes the PavBucket of a Bucket. The error is a refusal if none can be made from what there is.
func (r *Reconciler) recordBucket(ctx context.Context, o *observation) error {
	bucket, err := r.newBucket(ctx, *o)
	if err != nil {
		return err
	}
	if err := bucketapi.CreateRecord(ctx, r.Client, bucket); err != nil {
		return err
	}
	o.bucket = bucket
	r.tell(*o, corev1.EventTypeNormal, protocol.Provisioning, fmt.Sprintf("PavProvisioner %q is providing a bucket for Bucket %q", bucket.Spec.Provisioner, o.name))
	ctrl.LoggerFrom(ctx).Info("recorded a request for a bucket", observability.Bucket, bucket.Name)
	return nil
}

// holdAgain is hold for a Bucket whose record was written before.
func (r *Reconciler) holdAgain(ctx context.Context, o observation, d rule.Decision) error {
	o, err := r.confirmed(ctx, o, d.Step)
	if err != nil {
		return err
	}
	return r.hold(ctx, &o)
}

// hold gives a Bucket what the proposal wants it to have, unless it has changed since it was read. The Bucket has a record: with the finalizer
// alone, it would wait for a PavProvisioner that can be deleted.
func (r *Reconciler) hold(ctx context.Context, o *observation) error {
	if o.isHeldAsPaVs() {
		return nil
	}
	held := o.object.DeepCopy()
	metav1.SetMetaDataLabel(&held.ObjectMeta, cosiv0.ProvisionerLabel, o.bucket.Spec.Provisioner)
	controllerutil.AddFinalizer(held, cosiv0.Finalizer)
	if err := bucketapi.Patch(ctx, r.Client, o.object, held); err != nil {
		return err
	}
	o.object = held
	return nil
}

// newBucket returns the PavBucket of a Bucket. The error is a refusal if none can be made from what there is.
func (r *Reconciler) newBucket(ctx context.Context, o observation) (*pavv1.PavBucket, error) {
	claim, err := bucketapi.CopyRequest(ctx, r.Live, cosiv0.GroupVersion.WithKind(kind), o.object)
	if err != nil {
		return nil, err
	}
	class, err := bucketapi.CopyClass(ctx, r.Live, cosiv0.GroupVersion.WithKind("BucketClass"), o.class)
	if err != nil {
		return nil, err
	}
	name := nameOf(o.object, o.class)
	bucket := &pavv1.PavBucket{
		ObjectMeta: metav1.ObjectMeta{
			Name: o.bucketRecord(), Finalizers: []string{pavv1.BucketFinalizer}, Labels: map[string]string{pavv1.ProvisionerLabel: o.provisioner.Name},
		},
		Spec: pavv1.PavBucketSpec{
			Provisioner: o.provisioner.Name, API: pavv1.BucketAPICOSI0,
			ClaimRef:   pavv1.ClaimReference{Namespace: o.name.Namespace, Name: o.name.Name, UID: o.uid},
			BucketName: name.bucket, ExistingBucketID: name.existing, Protocols: []pavv1.BucketProtocol{protocolOf(o.class, o.provisioner)},
			Parameters: o.class.Parameters, ReclaimPolicy: policies[o.class.ReleasePolicy], Claim: claim, Class: class,
		},
	}
	if name.existing != "" {
		bucket.Spec.ReclaimPolicy = pavv1.BucketRetain // it is the administrator's, whatever the class says
	}
	bucket.Spec.Store, err = r.stores().Of(ctx, o.provisioner, bucket)
	return bucket, err
}

// newAccess returns the PavBucketAccess of a Bucket, whose PavBucket is as the API server has it.
func newAccess(o observation) *pavv1.PavBucketAccess {
	spec := &o.bucket.Spec
	return &pavv1.PavBucketAccess{
		ObjectMeta: metav1.ObjectMeta{
			Name: o.accessRecord(), Finalizers: []string{pavv1.BucketFinalizer}, Labels: map[string]string{pavv1.ProvisionerLabel: spec.Provisioner},
		},
		Spec: pavv1.PavBucketAccessSpec{
			Provisioner: spec.Provisioner, API: pavv1.BucketAPICOSI0,
			Requester: pavv1.AccessRequester{Kind: kind, Namespace: o.name.Namespace, Name: o.name.Name, UID: o.uid},
			Buckets:   []pavv1.AccessedBucket{{Bucket: o.bucket.Name, Mode: accessModes[o.class.AccessMode], SecretName: o.object.Spec.SecretName}},
			Protocol:  slices.Concat(spec.Protocols, []pavv1.BucketProtocol{pavv1.ProtocolS3})[0], AuthenticationType: pavv1.AuthenticationKey,
			Parameters: spec.Parameters, Access: spec.Claim, Class: spec.Class,
		},
	}
}

// stores evaluates in which stores buckets are.
func (r *Reconciler) stores() bucketapi.Stores {
	return bucketapi.Stores{Live: r.Live, Templates: r.Templates, Lookup: func(p *pavv1.PavProvisioner, message string, allowed bool) {
		if due, _ := r.repeats.Due("PavProvisioner "+p.Name, message, r.Now()); due {
			bucketapi.TellLookup(r.Events, p, message, allowed)
		}
	}}
}

// rotate passes a request for a new account on to the PavBucketAccess.
func (r *Reconciler) rotate(ctx context.Context, o observation, _ rule.Decision) error {
	return bucketapi.Rotate(ctx, r.Client, o.access, o.rotation())
}

package cosi2

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	cosiv2 "github.com/albertofaria/pav/internal/api/cosi/v1alpha2"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/bucketapi"
	"github.com/albertofaria/pav/internal/controller/rule"
	"github.com/albertofaria/pav/internal/observability"
	"github.com/albertofaria/pav/internal/podplan"
	"github.com/albertofaria/pav/internal/protocol"
)

// recordAccess writes the record of an access, which is the intent, before any effect: from then on, nothing depends on the class any more.
func (r *Reconciler) recordAccess(ctx context.Context, o accessObservation, d rule.Decision) error {
	o, err := r.confirmedAccess(ctx, o, d.Step)
	if err != nil {
		return err
	}
	record, err := r.newAccess(ctx, o)
	if err == nil {
		err = bucketapi.CreateRecord(ctx, r.Client, record)
	}
	if podplan.IsRefusal(err) {
		return r.refuseAccess(ctx, o, bucketapi.Refuse(protocol.BucketAccessRefused, err.Error()))
	}
	if err != nil {
		return err
	}
	ctrl.LoggerFrom(ctx).Info("recorded a request for access to buckets", observability.Access, record.Name, "buckets", len(record.Spec.Buckets))
	return nil
}

// newAccess returns the PavBucketAccess of an access. The error is a refusal if none can be made from what there is.
func (r *Reconciler) newAccess(ctx context.Context, o accessObservation) (*pavv1.PavBucketAccess, error) {
	access, err := bucketapi.CopyRequest(ctx, r.Live, cosiv2.GroupVersion.WithKind(kindAccess), o.access)
	if err != nil {
		return nil, err
	}
	class, err := bucketapi.CopyClass(ctx, r.Live, cosiv2.GroupVersion.WithKind("BucketAccessClass"), o.class)
	if err != nil {
		return nil, err
	}
	record := &pavv1.PavBucketAccess{
		ObjectMeta: metav1.ObjectMeta{
			Name: o.recordName(), Finalizers: []string{pavv1.BucketFinalizer}, Labels: map[string]string{pavv1.ProvisionerLabel: o.provisioner.Name},
		},
		Spec: pavv1.PavBucketAccessSpec{
			Provisioner: o.provisioner.Name, API: pavv1.BucketAPICOSI2,
			Requester:  pavv1.AccessRequester{Kind: kindAccess, Namespace: o.name.Namespace, Name: o.name.Name, UID: o.uid},
			Protocol:   known(protocols, o.access.Spec.Protocol),
			Parameters: o.class.Spec.Parameters, Access: access, Class: class,
		},
	}
	spec := &record.Spec
	for _, c := range o.claims {
		spec.Buckets = append(spec.Buckets, pavv1.AccessedBucket{Bucket: c.bucket.Name, Mode: known(modes, c.AccessMode), SecretName: c.AccessSecretName})
	}
	spec.AuthenticationType = known(authenticationTypes, o.class.Spec.AuthenticationType)
	if spec.AuthenticationType == pavv1.AuthenticationServiceAccount { // it has no effect otherwise
		spec.ServiceAccountName = o.access.Spec.ServiceAccountName
	}
	return record, nil
}

// rotate passes a request for a new account on to the record.
func (r *Reconciler) rotate(ctx context.Context, o accessObservation, _ rule.Decision) error {
	return bucketapi.Rotate(ctx, r.Client, o.record, o.rotation())
}

// showAccess shows in an access what its record says.
func (r *Reconciler) showAccess(ctx context.Context, o accessObservation, d rule.Decision) error {
	o, err := r.confirmedAccess(ctx, o, d.Step)
	if err != nil {
		return err
	}
	held := o.access.DeepCopy()
	if controllerutil.AddFinalizer(held, cosiv2.Finalizer) {
		if err := bucketapi.Patch(ctx, r.Client, o.access, held); err != nil {
			return err
		}
	}
	shown := held.DeepCopy()
	shown.Status = o.status()
	if equality.Semantic.DeepEqual(held.Status, shown.Status) {
		return nil
	}
	return bucketapi.PatchStatus(ctx, r.Client, held, shown)
}

// releaseAccess gives up the accounts of an access that is gone or going.
func (r *Reconciler) releaseAccess(ctx context.Context, o accessObservation, d rule.Decision) error {
	o, err := r.confirmedAccess(ctx, o, d.Step)
	if err != nil {
		return err
	}
	if err := bucketapi.ReleaseAccess(ctx, r.Client, o.record); err != nil {
		return err
	}
	ctrl.LoggerFrom(ctx).Info("released an access")
	return nil
}

// showRevocationFailure shows in an access that is being deleted why its account could not be revoked.
func (r *Reconciler) showRevocationFailure(ctx context.Context, o accessObservation, d rule.Decision) error {
	o, err := r.confirmedAccess(ctx, o, d.Step)
	if err != nil {
		return err
	}
	shown := o.access.DeepCopy()
	shown.Status.Error = errorOf(o.record.Status.RevocationFailure)
	return bucketapi.PatchStatus(ctx, r.Client, o.access, shown)
}

// letAccessGo lets an access be deleted that has no account any more.
func (r *Reconciler) letAccessGo(ctx context.Context, o accessObservation, d rule.Decision) error {
	o, err := r.confirmedAccess(ctx, o, d.Step)
	if err != nil {
		return err
	}
	if err := bucketapi.LetGo(ctx, r.Client, o.access, cosiv2.Finalizer); err != nil {
		return err
	}
	ctrl.LoggerFrom(ctx).Info("let an access be deleted")
	return nil
}

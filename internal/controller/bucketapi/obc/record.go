package obc

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	objectbucketv1 "github.com/albertofaria/pav/internal/api/objectbucket/v1alpha1"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/rule"
	"github.com/albertofaria/pav/internal/observability"
	"github.com/albertofaria/pav/internal/podplan"
	"github.com/albertofaria/pav/internal/protocol"
	"github.com/albertofaria/pav/internal/reconcile"
	"github.com/albertofaria/pav/internal/template"
)

// record writes the records of a claim, which are the intent, before any effect. The PavBucket is the first: all else of the request
// follows from it, so that nothing depends on the class any more.
func (r *Reconciler) record(ctx context.Context, o observation, d rule.Decision) error {
	o, err := r.confirmed(ctx, o, d.Step)
	if err != nil {
		return err
	}
	bucket := o.bucket
	if bucket == nil {
		if bucket, err = r.newBucket(ctx, o); err == nil {
			err = r.hold(ctx, o)
		}
		if err == nil {
			err = r.create(ctx, bucket)
		}
		if podplan.IsRefusal(err) {
			return r.refuse(ctx, o, refuse(protocol.BucketClaimRefused, err.Error()))
		}
		if err != nil {
			return err
		}
		r.tell(o, corev1.EventTypeNormal, protocol.Provisioning, fmt.Sprintf("PavProvisioner %q is providing a bucket for claim %q", bucket.Spec.Provisioner, o.name))
		ctrl.LoggerFrom(ctx).Info("recorded a request for a bucket", observability.Bucket, bucket.Name)
	}
	if o.access == nil {
		if err := r.create(ctx, newAccess(bucket)); podplan.IsRefusal(err) {
			return r.refuse(ctx, o, refuse(protocol.BucketClaimRefused, err.Error()))
		} else if err != nil {
			return err
		}
	}
	return r.setPhase(ctx, o.claim, objectbucketv1.ClaimPending)
}

// hold gives a claim what the protocol demands, unless it has changed since it was read.
func (r *Reconciler) hold(ctx context.Context, o observation) error {
	return r.patchClaim(ctx, o.claim, func(claim *objectbucketv1.ObjectBucketClaim) {
		controllerutil.AddFinalizer(claim, objectbucketv1.Finalizer)
		metav1.SetMetaDataLabel(&claim.ObjectMeta, objectbucketv1.ProvisionerLabel, protocol.ObjectBucketProvisioner(o.provisioner.Name))
	})
}

// existsDelay is how long to wait for the cache to show a record that exists, at most.
const existsDelay = 10 * time.Second

// create writes a record. The error is a refusal if the API server does not take it: tenants chose parts of it.
func (r *Reconciler) create(ctx context.Context, record client.Object) error {
	err := r.Client.Create(ctx, record)
	switch {
	case apierrors.IsAlreadyExists(err):
		return &reconcile.Later{After: existsDelay}
	case apierrors.IsInvalid(err):
		return &podplan.Error{Err: fmt.Errorf("the API server does not accept what the claim asks for: %w", err)}
	case err != nil:
		return fmt.Errorf("creating %T %q: %w", record, record.GetName(), err)
	default:
		return nil
	}
}

// newBucket returns the PavBucket of a claim. The error is a refusal if none can be made from what there is.
func (r *Reconciler) newBucket(ctx context.Context, o observation) (*pavv1.PavBucket, error) {
	claim, err := r.copyClaim(ctx, o)
	if err != nil {
		return nil, err
	}
	class, err := r.read(ctx, storagev1.SchemeGroupVersion.WithKind("StorageClass"), types.NamespacedName{Name: o.class.Name}, o.class)
	if err != nil {
		return nil, err
	}
	rawClass, err := json.Marshal(class.Object)
	if err != nil {
		return nil, fmt.Errorf("encoding StorageClass %q: %w", o.class.Name, err)
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
			Claim:         claim, Class: &apiextensionsv1.JSON{Raw: rawClass},
		},
	}
	if name.existing != "" {
		bucket.Spec.ReclaimPolicy = pavv1.BucketRetain // it is the administrator's, whatever the class says
	}
	bucket.Spec.Store, err = r.storeOf(ctx, o, bucket)
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

// storeOf returns the store of a bucket that is to be recorded.
func (r *Reconciler) storeOf(ctx context.Context, o observation, bucket *pavv1.PavBucket) (string, error) {
	namespace, err := reconcile.ReadObject(ctx, r.Live, corev1.SchemeGroupVersion.WithKind("Namespace"), types.NamespacedName{Name: o.name.Namespace})
	if err != nil {
		return "", err
	}
	request := podplan.BucketRequest{
		BucketDefinition: podplan.BucketDefinition{
			Provisioner: o.provisioner.UID, Generation: o.provisioner.Generation, Spec: &o.provisioner.Spec,
			Templates: r.Templates, GetPVC: reconcile.GetPVC(r.Live),
			Foreign: func(_ context.Context, name, namespace string, allowed bool) {
				r.tellLookup(o, name, namespace, allowed)
			},
		},
		Record: bucket,
	}
	if namespace != nil {
		request.Namespace = namespace.Object
	}
	return request.Store(ctx)
}

// tellLookup reports to the administrator that a definition looks up claims of another namespace: a tenant may have chosen the namespace.
// There is no record yet that could have the event.
func (r *Reconciler) tellLookup(o observation, name, namespace string, allowed bool) {
	message := template.ForeignLookup(o.provisioner.Name, name, namespace, o.name.Namespace, allowed)
	if due, _ := r.repeats.Due(o.provisioner.Name, message, r.Now()); !due {
		return
	}
	eventType := corev1.EventTypeNormal
	if !allowed {
		eventType = corev1.EventTypeWarning
	}
	r.Events.Event(o.provisioner, eventType, protocol.ForeignClaim, observability.Clip(message, observability.MaxNote))
}

// copyClaim returns the copy of a claim for its record. The error is a refusal if it is too large, and reconcile.ErrStale if the claim has
// changed since it was read.
func (r *Reconciler) copyClaim(ctx context.Context, o observation) (*apiextensionsv1.JSON, error) {
	claim, err := r.read(ctx, objectbucketv1.GroupVersion.WithKind(kind), o.name, o.claim)
	if err != nil {
		return nil, err
	}
	return podplan.RecordClaim(claim.Object)
}

// read returns all fields of an object, without what other programs note in it. The error is reconcile.ErrStale if it has changed.
func (r *Reconciler) read(ctx context.Context, gvk schema.GroupVersionKind, name types.NamespacedName, as client.Object) (*unstructured.Unstructured, error) {
	object, err := reconcile.ReadObject(ctx, r.Live, gvk, name)
	if err != nil {
		return nil, err
	}
	if object == nil || object.GetUID() != as.GetUID() || object.GetResourceVersion() != as.GetResourceVersion() {
		return nil, reconcile.ErrStale
	}
	annotations := object.GetAnnotations()
	delete(annotations, corev1.LastAppliedConfigAnnotation)
	object.SetAnnotations(annotations)
	return object, nil
}

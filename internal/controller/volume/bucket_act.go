package volume

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/observability"
	"github.com/albertofaria/pav/internal/podplan"
	"github.com/albertofaria/pav/internal/protocol"
	"github.com/albertofaria/pav/internal/reconcile"
	"github.com/albertofaria/pav/internal/workflow"
)

// bucketPolicies are what the reclaim policies of volumes mean for buckets of their own.
var bucketPolicies = map[corev1.PersistentVolumeReclaimPolicy]pavv1.BucketReclaimPolicy{
	corev1.PersistentVolumeReclaimDelete: pavv1.BucketDelete,
	corev1.PersistentVolumeReclaimRetain: pavv1.BucketRetain,
}

// awaitBucket records that the request for a volume that is a bucket is valid, and waits for the bucket.
func (r *Reconciler) awaitBucket(ctx context.Context, o observation, request podplan.VolumeRequest, c *pavv1.VolumeCreation, begin change) error {
	handle := o.volume.Spec.BucketRef.BucketID
	creation, err := request.CreateBucketVolume(ctx, c, handle)
	if err == nil {
		err = r.checkStore(ctx, o)
	}
	if err == nil && handle != "" {
		err = r.reserve(ctx, o, "spec.dataSourceRef", handle)
	}
	if err != nil {
		return r.refuse(ctx, o, pavv1.WorkflowCreation, begin, err)
	}
	return r.patchStatus(ctx, o.volume, func(status *pavv1.PavVolumeStatus) {
		begin(status)
		status.Step, status.Pod, status.Plan = pavv1.StepGranting, nil, planned(creation)
		setCondition(o.volume, status, pavv1.VolumeProvisioned, string(pavv1.StepGranting), "the volume waits for its bucket, and for access to it")
	})
}

// checkStore returns a podplan.Error if a bucket that another object claimed is in another store than those of the StorageClass: staging
// pods would look for it there.
func (r *Reconciler) checkStore(ctx context.Context, o observation) error {
	if !o.volume.Spec.BucketRef.IsClaimed() || o.bucket.record == nil {
		return nil
	}
	own, err := r.newBucket(ctx, o)
	if err == nil && own.Spec.Store != o.bucket.record.Spec.Store {
		err = &podplan.Error{Err: fmt.Errorf("spec.dataSourceRef: the bucket is in the store %q, and the StorageClass is one of the store %q", o.bucket.record.Spec.Store, own.Spec.Store)}
	}
	return err
}

// newBucket returns the PavBucket that a volume has, or would have, if its bucket is its own.
func (r *Reconciler) newBucket(ctx context.Context, o observation) (*pavv1.PavBucket, error) {
	requested, parameters, err := requestedOf(o.volume)
	if err != nil {
		return nil, err
	}
	size := requested.Claim.Spec.Resources.Requests[corev1.ResourceStorage]
	record := &pavv1.PavBucket{
		ObjectMeta: metav1.ObjectMeta{
			Name: protocol.BucketRecord(o.volume.Spec.ClaimRef.UID), Finalizers: []string{pavv1.BucketFinalizer},
			Labels: map[string]string{pavv1.ProvisionerLabel: o.volume.Spec.Provisioner},
		},
		Spec: pavv1.PavBucketSpec{
			Provisioner: o.volume.Spec.Provisioner, API: pavv1.BucketAPIVolume, ClaimRef: o.volume.Spec.ClaimRef,
			BucketName: o.volume.Name, Parameters: parameters, Quota: pavv1.BucketQuota{Size: &size},
			ReclaimPolicy: bucketPolicies[o.volume.Spec.ReclaimPolicy], Claim: claimCopy(o.volume), Class: &o.volume.Spec.StorageClass,
		},
	}
	record.Spec.Store, err = r.storeOf(ctx, o, record)
	return record, err
}

// claimCopy returns the claim as it was validated.
func claimCopy(volume *pavv1.PavVolume) *apiextensionsv1.JSON {
	if volume.Status.ProvisionedClaim != nil {
		return volume.Status.ProvisionedClaim
	}
	return &volume.Spec.Claim
}

// storeOf evaluates in which store a bucket is.
func (r *Reconciler) storeOf(ctx context.Context, o observation, record *pavv1.PavBucket) (string, error) {
	request, err := r.requestOf(o, nil)
	if err != nil {
		return "", err
	}
	namespace, err := reconcile.ReadObject(ctx, r.Live, corev1.SchemeGroupVersion.WithKind("Namespace"), types.NamespacedName{Name: record.Spec.ClaimRef.Namespace})
	if err != nil {
		return "", err
	}
	bucket := podplan.BucketRequest{
		BucketDefinition: podplan.BucketDefinition{
			Provisioner: o.provisioner.UID, Generation: o.provisioner.Generation, Spec: &o.provisioner.Spec,
			Templates: r.Templates, GetPVC: request.GetPVC, Foreign: request.Foreign,
		},
		Record: record,
	}
	if namespace != nil {
		bucket.Namespace = namespace.Object
	}
	return bucket.Store(ctx)
}

// recordBucket writes the PavBucket of a volume that has a bucket of its own, before there is a bucket.
func (r *Reconciler) recordBucket(ctx context.Context, o observation, d decision) error {
	o, err := r.confirmed(ctx, o, d)
	if err != nil {
		return err
	}
	record, err := r.newBucket(ctx, o)
	if err != nil {
		return r.refuse(ctx, o, pavv1.WorkflowCreation, nothing, err)
	}
	return r.createRecord(ctx, o, record)
}

// recordAccess writes the PavBucketAccess of a volume, before there is an account.
func (r *Reconciler) recordAccess(ctx context.Context, o observation, d decision) error {
	o, err := r.confirmed(ctx, o, d)
	if err != nil {
		return err
	}
	access, err := r.newAccess(ctx, o)
	if err != nil {
		return r.refuseAccess(ctx, o, err)
	}
	return r.createRecord(ctx, o, access)
}

// refuseAccess reports why the volume gets no access. One that is in use is tried again when the provisioner or the bucket changes.
func (r *Reconciler) refuseAccess(ctx context.Context, o observation, err error) error {
	if o.pending() {
		return r.refuse(ctx, o, pavv1.WorkflowCreation, nothing, err)
	}
	if podplan.IsRefusal(err) {
		r.tellClaimOnce(o.volume, err.Error())
		return nil
	}
	return err
}

// createRecord writes a record. One that exists was written by an earlier pass, and the cache will show it.
func (r *Reconciler) createRecord(ctx context.Context, o observation, record client.Object) error {
	err := r.Client.Create(ctx, record)
	switch {
	case apierrors.IsAlreadyExists(err):
		return reconcile.ErrStale
	case apierrors.IsInvalid(err): // tenants chose parts of it
		return r.refuseAccess(ctx, o, &podplan.Error{Err: fmt.Errorf("the API server does not accept what is asked for: %w", err)})
	case err != nil:
		return fmt.Errorf("creating %T %q: %w", record, record.GetName(), err)
	default:
		return nil // its creation is an event, and brings the next pass
	}
}

// newAccess returns the PavBucketAccess of a volume.
func (r *Reconciler) newAccess(ctx context.Context, o observation) (*pavv1.PavBucketAccess, error) {
	requested, parameters, err := requestedOf(o.volume)
	if err != nil {
		return nil, err
	}
	if o.provisioner == nil {
		return nil, reconcile.ErrStale
	}
	namespace, err := podplan.SecretNamespace(&o.provisioner.Spec)
	if err == nil {
		err = r.Runner.CheckNamespace(ctx, namespace)
	}
	if errors.Is(err, workflow.ErrRefused) {
		err = &podplan.Error{Err: err}
	}
	if err != nil {
		return nil, err
	}
	ref := o.volume.Spec.ClaimRef
	return &pavv1.PavBucketAccess{
		ObjectMeta: metav1.ObjectMeta{
			Name: accessRecord(o.volume), Finalizers: []string{pavv1.BucketFinalizer}, Labels: map[string]string{pavv1.ProvisionerLabel: o.volume.Spec.Provisioner},
		},
		Spec: pavv1.PavBucketAccessSpec{
			Provisioner: o.volume.Spec.Provisioner, API: pavv1.BucketAPIVolume,
			Requester:       pavv1.AccessRequester{Kind: protocol.KindClaim, Namespace: ref.Namespace, Name: ref.Name, UID: ref.UID},
			Buckets:         []pavv1.AccessedBucket{{Bucket: o.bucket.record.Name, Mode: podplan.BucketAccessMode(requested.Claim.Spec.AccessModes), SecretName: o.volume.Name}},
			SecretNamespace: namespace, Protocol: podplan.BucketProtocol(&o.provisioner.Spec, o.bucket.record), AuthenticationType: pavv1.AuthenticationKey,
			Parameters: parameters, Access: claimCopy(o.volume), Class: &o.volume.Spec.StorageClass,
		},
	}, nil
}

// recordGranted records the volume's handle, which is the identifier of the bucket, and its capacity.
func (r *Reconciler) recordGranted(ctx context.Context, o observation, d decision) error {
	o, err := r.confirmed(ctx, o, d)
	if err != nil {
		return err
	}
	handle, plan := o.bucket.record.Status.BucketID, o.volume.Status.Plan
	if plan == nil || plan.Capacity == nil {
		return r.refuse(ctx, o, pavv1.WorkflowCreation, nothing, &podplan.Error{Err: errors.New("status.plan: has no capacity")})
	}
	if err = workflow.CheckHandle(handle); err != nil {
		err = &podplan.Error{Err: fmt.Errorf("the identifier of the bucket cannot be the handle of a volume: %w", err)}
	} else {
		err = r.reserve(ctx, o, "the identifier of the bucket", handle)
	}
	if err != nil {
		return r.refuse(ctx, o, pavv1.WorkflowCreation, nothing, err)
	}
	if err := r.patchStatus(ctx, o.volume, func(status *pavv1.PavVolumeStatus) {
		made := podplan.VolumeOutcome{Handle: handle, Capacity: plan.Capacity.Value()}
		setMade(status, made, plan.AccessibleTopology)
		status.Plan = nil // there is no creation pod that is to be reverted
		o.showBucket(status)
	}); err != nil {
		return err
	}
	return r.goOn(ctx, o.volume)
}

// recordBucketShown records what staging needs to know of the bucket, as it is now.
func (r *Reconciler) recordBucketShown(ctx context.Context, o observation, d decision) error {
	o, err := r.confirmed(ctx, o, d)
	if err != nil {
		return err
	}
	return r.patchStatus(ctx, o.volume, o.showBucket)
}

// recordBucketHidden records that no node may begin to stage the volume any more. Nodes ask for that after they have written their PavStages,
// and PaV asks for PavStages after this, so that one of the two sees the other.
func (r *Reconciler) recordBucketHidden(ctx context.Context, o observation, d decision) error {
	if err := r.confirm(ctx, o, d); err != nil {
		return err
	}
	return r.patchStatus(ctx, o.volume, hideBucket)
}

// releaseAccess gives up the access of a volume that nobody can use any more.
func (r *Reconciler) releaseAccess(ctx context.Context, o observation, d decision) error {
	live, err := r.confirmed(ctx, o, d)
	if err != nil {
		return err
	}
	staged, err := r.isStaged(ctx, o.volume.Name)
	if err == nil && staged {
		err = reconcile.ErrStale
	}
	if err != nil {
		return err
	}
	if err := r.giveUpAccess(ctx, live.bucket.access); err != nil {
		return err
	}
	ctrl.LoggerFrom(ctx).Info("released the access of a volume", observability.Access, live.bucket.access.Name)
	return nil
}

// isStaged asks the API server whether nodes have the volume of a PersistentVolume staged.
func (r *Reconciler) isStaged(ctx context.Context, name string) (bool, error) {
	stages := &pavv1.PavStageList{}
	if err := r.Live.List(ctx, stages, client.MatchingLabels{pavv1.VolumeLabel: workflow.Hash(name)}); err != nil {
		return false, fmt.Errorf("asking where volume %q is staged: %w", name, err)
	}
	for i := range stages.Items {
		if stage := &stages.Items[i]; stage.Spec.VolumeName == name && reconcile.HoldsVolume(stage) {
			return true, nil
		}
	}
	return false, nil
}

func (r *Reconciler) giveUpAccess(ctx context.Context, access *pavv1.PavBucketAccess) error {
	released := access.DeepCopy()
	released.Spec.Released = true
	return r.patch(ctx, access, released)
}

// releaseBucket gives up the bucket of a volume that has no access any more. One that was never a volume is deleted, whatever the policy.
func (r *Reconciler) releaseBucket(ctx context.Context, o observation, d decision) error {
	live, err := r.confirmed(ctx, o, d)
	if err != nil {
		return err
	}
	policy := corev1.PersistentVolumeReclaimRetain
	if !live.retainsBucket() {
		policy = corev1.PersistentVolumeReclaimDelete
		if err := r.checkBucketUnused(ctx, live); err != nil {
			return err
		}
	}
	if err := r.giveUpBucket(ctx, live.bucket.record, policy); err != nil {
		return err
	}
	ctrl.LoggerFrom(ctx).Info("released the bucket of a volume", observability.Bucket, live.bucket.record.Name)
	return nil
}

// checkBucketUnused asks the API server whether no other object has the bucket as its storage. An administrator can write a PersistentVolume
// of any handle.
func (r *Reconciler) checkBucketUnused(ctx context.Context, o observation) error {
	id := o.bucketID()
	if id == "" {
		return nil // no PersistentVolume can name a bucket that nobody knows of
	}
	others, err := r.liveOthers(ctx, o, id)
	if err == nil && len(o.bucketUsers(others)) > 0 {
		err = reconcile.ErrStale
	}
	return err
}

// giveUpBucket writes that a bucket is to be deleted or retained.
func (r *Reconciler) giveUpBucket(ctx context.Context, record *pavv1.PavBucket, policy corev1.PersistentVolumeReclaimPolicy) error {
	released := record.DeepCopy()
	released.Spec.Released, released.Spec.ReclaimPolicy = true, bucketPolicies[policy]
	return r.patch(ctx, record, released)
}

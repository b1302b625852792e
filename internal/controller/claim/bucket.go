package claim

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/podplan"
	"github.com/albertofaria/pav/internal/protocol"
	"github.com/albertofaria/pav/internal/reconcile"
	"github.com/albertofaria/pav/internal/workflow"
)

// bucketSource is the bucket that a volume is to be, as another object claimed it.
type bucketSource struct {
	// record is the PavBucket of the object; nil if it has none.
	record *pavv1.PavBucket

	// unreadable says that the controller agent may not read the object.
	unreadable bool
}

// namesBucket reports whether the claim names the claim of a bucket as its source, and the provisioner has buckets. Where it has none, the
// source is that of a volume populator.
func (o snapshot) namesBucket() bool {
	source := protocol.Source(o.claim)
	return source != nil && len(protocol.BucketAPIsOf(source)) > 0 && o.provisioner.Spec.HasBuckets()
}

// refuseBucket returns why the volume cannot be the bucket that the claim names, or a bucket of its own, or "".
func refuseBucket(o snapshot) string {
	if !o.namesBucket() && !o.provisioner.Spec.MakesBucketVolumes() {
		return ""
	}
	if o.provisioner.Spec.BucketAccessGrant == nil {
		return fmt.Sprintf("PavProvisioner %q has no bucketAccessGrant, so that no volume gets access to its bucket", o.provisioner.Name)
	}
	if !o.namesBucket() {
		return ""
	}
	ref := protocol.Source(o.claim)
	if protocol.SourceNamespace(o.claim, ref) != o.claim.Namespace {
		return "spec.dataSourceRef.namespace: a volume can only be a bucket of the claim's own namespace"
	}
	if problem := o.bucket.problem(o); problem != "" {
		return fmt.Sprintf("spec.dataSourceRef: %s %s", podplan.SourceName(o.claim), problem)
	}
	return ""
}

// problem returns why the volume cannot be the bucket, or "". It continues the name of the object that claimed the bucket.
func (b *bucketSource) problem(o snapshot) string {
	switch {
	case b != nil && b.unreadable:
		return "cannot be read: the controller agent has the right to it only where deployment-buckets.yaml is applied"
	case b == nil || b.record == nil:
		return "does not exist, or has no bucket yet"
	case b.record.Spec.Provisioner != o.provisioner.Name:
		return fmt.Sprintf("has a bucket of PavProvisioner %q, and not of %q, whose StorageClass %q the claim names", b.record.Spec.Provisioner, o.provisioner.Name, o.class.Name)
	case b.record.Spec.Released || b.record.DeletionTimestamp != nil:
		return "is being deleted"
	case b.record.Status.Phase != pavv1.BucketReady:
		return "has a bucket that is not ready yet"
	}
	if err := workflow.CheckHandle(b.record.Status.BucketID); err != nil {
		return fmt.Sprintf("has a bucket whose identifier cannot be the handle of a volume: %s", err)
	}
	return ""
}

// bucketRef returns the bucket that the volume will be, as it is recorded in the PavVolume; nil if it will be none.
func (o snapshot) bucketRef() *pavv1.VolumeBucketReference {
	switch {
	case o.namesBucket():
		record, ref := o.bucket.record, protocol.Source(o.claim)
		return &pavv1.VolumeBucketReference{
			Name: record.Name, BucketID: record.Status.BucketID,
			Claim: &pavv1.BucketClaimReference{Kind: ref.Kind, Namespace: record.Spec.ClaimRef.Namespace, Name: record.Spec.ClaimRef.Name, UID: record.Spec.ClaimRef.UID},
		}
	case protocol.Source(o.claim) == nil && o.provisioner.Spec.MakesBucketVolumes():
		return &pavv1.VolumeBucketReference{Name: protocol.BucketRecord(o.claim.UID)}
	default:
		return nil
	}
}

// cachedBucket returns what the cache shows of the bucket that a claim names as its source; nil if it names none.
func (r *Reconciler) cachedBucket(ctx context.Context, claim *corev1.PersistentVolumeClaim) (*bucketSource, error) {
	ref := protocol.Source(claim)
	if ref == nil || len(protocol.BucketAPIsOf(ref)) == 0 {
		return nil, nil
	}
	found := &bucketSource{}
	for _, api := range protocol.BucketAPIsOf(ref) {
		records, err := reconcile.BucketsClaimedBy(ctx, r.Client, api, types.NamespacedName{Namespace: claim.Namespace, Name: ref.Name})
		if err != nil {
			return nil, err
		}
		for i := range records {
			// Those of former claims of the name are released.
			if found.record == nil || found.record.Spec.Released {
				found.record = &records[i]
			}
		}
	}
	return found, nil
}

// readBucket reads the object that claimed the bucket which a claim names as its source, and its PavBucket, from the API server: tenants
// write both claims, and choose whose bucket the volume is. An object that was created again under its name is another one.
func (r *Reconciler) readBucket(ctx context.Context, claim *corev1.PersistentVolumeClaim) (*bucketSource, error) {
	ref := protocol.Source(claim)
	if ref == nil || len(protocol.BucketAPIsOf(ref)) == 0 {
		return nil, nil
	}
	found := &bucketSource{}
	for _, api := range protocol.BucketAPIsOf(ref) {
		record, err := r.readBucketOf(ctx, api, types.NamespacedName{Namespace: claim.Namespace, Name: ref.Name})
		switch {
		case apierrors.IsForbidden(err):
			found.unreadable = true
		case err != nil:
			return nil, err
		case record != nil:
			return &bucketSource{record: record}, nil
		}
	}
	return found, nil
}

// readBucketOf reads the object of a name that claimed a bucket by an API, and returns its PavBucket; nil if there is none.
func (r *Reconciler) readBucketOf(ctx context.Context, api pavv1.BucketAPI, key types.NamespacedName) (*pavv1.PavBucket, error) {
	object, err := reconcile.ReadObject(ctx, r.Live, protocol.BucketClaimKind(api), key)
	if meta.IsNoMatchError(err) || err == nil && object == nil {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	record, err := reconcile.Optional(ctx, r.Live, client.ObjectKey{Name: protocol.BucketRecord(object.GetUID())}, &pavv1.PavBucket{})
	if err != nil || record == nil {
		return nil, err
	}
	of := record.Spec.ClaimRef
	if record.Spec.API != api || of.UID != object.GetUID() || of.Namespace != key.Namespace || of.Name != key.Name || object.GetDeletionTimestamp() != nil {
		return nil, nil
	}
	return record, nil
}

// ofBucket maps a PavBucket to the claims that wait for a volume and name the object that claimed the bucket as their source.
func (r *Reconciler) ofBucket(ctx context.Context, object client.Object) []ctrl.Request {
	record, ok := object.(*pavv1.PavBucket)
	if !ok {
		return nil
	}
	ref := record.Spec.ClaimRef
	return r.waitingFor(ctx, protocol.KeyOfSource(protocol.BucketClaimKind(record.Spec.API).Kind, ref.Namespace, ref.Name), protocol.SourceKey)
}

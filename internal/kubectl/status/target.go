package status

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/workflow"
)

// Target is what workflow pods work for: a volume, a snapshot, a bucket or an access to buckets.
type Target struct {
	// Volume is the name of the PersistentVolume. It is empty for a snapshot for which an administrator wrote the
	// VolumeSnapshotContent.
	Volume string

	// Snapshot is the PavSnapshot; nil for a volume.
	Snapshot *pavv1.PavSnapshot

	// Bucket is the PavBucket, and Access the PavBucketAccess; at most one of them is not nil.
	Bucket *pavv1.PavBucket
	Access *pavv1.PavBucketAccess
}

// Name identifies the target.
func (t Target) Name() string {
	switch {
	case t.Snapshot != nil:
		return "pavsnapshot/" + t.Snapshot.Name
	case t.Bucket != nil:
		return "pavbucket/" + t.Bucket.Name
	case t.Access != nil:
		return "pavbucketaccess/" + t.Access.Name
	}
	return t.Volume
}

// Labels select the target's pods, and others.
func (t Target) Labels() client.MatchingLabels {
	switch {
	case t.Bucket != nil:
		return client.MatchingLabels{pavv1.ProvisionerLabel: t.Bucket.Spec.Provisioner}
	case t.Access != nil:
		return client.MatchingLabels{pavv1.ProvisionerLabel: t.Access.Spec.Provisioner}
	case t.Volume == "":
		// Nothing creates such a snapshot.
		return client.MatchingLabels{pavv1.ProvisionerLabel: t.Snapshot.Spec.Provisioner, pavv1.WorkflowLabel: pavv1.WorkflowSnapshotDeletion}
	}
	return client.MatchingLabels{pavv1.VolumeLabel: workflow.Hash(t.Volume)}
}

// Has reports whether a pod that the labels select works for the target. Pods of a volume's snapshots work for both.
func (t Target) Has(pod *corev1.Pod) bool {
	switch {
	case t.Snapshot != nil:
		return pod.Annotations[pavv1.SnapshotAnnotation] == t.Snapshot.Name
	case t.Bucket != nil:
		return pod.Annotations[pavv1.BucketAnnotation] == t.Bucket.Name
	case t.Access != nil:
		return pod.Annotations[pavv1.AccessAnnotation] == t.Access.Name
	}
	return pod.Annotations[pavv1.VolumeAnnotation] == t.Volume
}

// IsGone reports whether no more pods can come for the target: a volume has neither a PersistentVolume nor a PavVolume any more, a
// snapshot no PavSnapshot, a bucket no PavBucket, and an access no PavBucketAccess.
func (t Target) IsGone(ctx context.Context, reader client.Reader) (bool, error) {
	name, objects := t.Volume, []client.Object{&corev1.PersistentVolume{}, &pavv1.PavVolume{}}
	switch {
	case t.Snapshot != nil:
		name, objects = t.Snapshot.Name, []client.Object{&pavv1.PavSnapshot{}}
	case t.Bucket != nil:
		name, objects = t.Bucket.Name, []client.Object{&pavv1.PavBucket{}}
	case t.Access != nil:
		name, objects = t.Access.Name, []client.Object{&pavv1.PavBucketAccess{}}
	}
	for _, object := range objects {
		err := reader.Get(ctx, client.ObjectKey{Name: name}, object)
		if err == nil {
			return false, nil
		}
		if !apierrors.IsNotFound(err) {
			return false, fmt.Errorf("getting %s: %w", t.Name(), err)
		}
	}
	return true, nil
}

// TargetsOf returns the targets that belong to an object: all volumes of a pod, including those of other drivers; the one of a claim,
// even if the claim is gone; a PersistentVolume itself; a snapshot; or a bucket and its accesses.
func TargetsOf(ctx context.Context, reader client.Reader, ref Ref) ([]Target, error) {
	switch {
	case ref.Kind == PV:
		return []Target{{Volume: ref.Name}}, nil
	case ref.isSnapshot():
		record, err := SnapshotOf(ctx, reader, ref)
		if err != nil {
			return nil, err
		}
		return []Target{{Volume: record.Spec.VolumeName, Snapshot: record}}, nil
	case ref.isBucket():
		return bucketTargets(ctx, reader, ref)
	case ref.Kind == Pod:
		return targetsOfPod(ctx, reader, ref)
	}
	claim := &corev1.PersistentVolumeClaim{}
	err := reader.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, claim)
	if err == nil {
		return []Target{{Volume: VolumeName(claim)}}, nil
	}
	if apierrors.IsNotFound(err) {
		if former, left := FormerVolume(ctx, reader, ref); left == nil && former != nil {
			return []Target{{Volume: former.Name}}, nil
		}
	}
	return nil, fmt.Errorf("getting the claim: %w", err)
}

// bucketTargets returns the bucket of a claim, and the access of an ObjectBucketClaim or a BucketAccess.
func bucketTargets(ctx context.Context, reader client.Reader, ref Ref) ([]Target, error) {
	record, access, err := BucketRecords(ctx, reader, ref)
	if err != nil {
		return nil, err
	}
	if access == nil {
		return []Target{{Bucket: record}}, nil
	}
	return targetsOfBucket(record, []pavv1.PavBucketAccess{*access}), nil
}

func targetsOfPod(ctx context.Context, reader client.Reader, ref Ref) ([]Target, error) {
	pod := &corev1.Pod{}
	if err := reader.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, pod); err != nil {
		return nil, fmt.Errorf("getting the pod: %w", err)
	}
	var targets []Target
	for _, claim := range ClaimsOf(pod) {
		found, err := TargetsOf(ctx, reader, Ref{Kind: Claim, Namespace: ref.Namespace, Name: claim})
		if err != nil {
			return nil, err
		}
		targets = append(targets, found...)
	}
	return targets, nil
}

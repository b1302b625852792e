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

// Target is what workflow pods work for: a volume or a snapshot.
type Target struct {
	// Volume is the name of the PersistentVolume. It is empty for a snapshot for which an administrator wrote the
	// VolumeSnapshotContent.
	Volume string

	// Snapshot is the PavSnapshot; nil for a volume.
	Snapshot *pavv1.PavSnapshot
}

// Name identifies the target.
func (t Target) Name() string {
	if t.Snapshot != nil {
		return "pavsnapshot/" + t.Snapshot.Name
	}
	return t.Volume
}

// Labels select the target's pods, and others.
func (t Target) Labels() client.MatchingLabels {
	if t.Volume == "" {
		// Nothing creates such a snapshot.
		return client.MatchingLabels{pavv1.ProvisionerLabel: t.Snapshot.Spec.Provisioner, pavv1.WorkflowLabel: pavv1.WorkflowSnapshotDeletion}
	}
	return client.MatchingLabels{pavv1.VolumeLabel: workflow.Hash(t.Volume)}
}

// Has reports whether a pod that the labels select works for the target. Pods of a volume's snapshots work for both.
func (t Target) Has(pod *corev1.Pod) bool {
	if t.Snapshot != nil {
		return pod.Annotations[pavv1.SnapshotAnnotation] == t.Snapshot.Name
	}
	return pod.Annotations[pavv1.VolumeAnnotation] == t.Volume
}

// IsGone reports whether no more pods can come for the target: a volume has neither a PersistentVolume nor a PavVolume any more, a
// snapshot no PavSnapshot.
func (t Target) IsGone(ctx context.Context, reader client.Reader) (bool, error) {
	name, objects := t.Volume, []client.Object{&corev1.PersistentVolume{}, &pavv1.PavVolume{}}
	if t.Snapshot != nil {
		name, objects = t.Snapshot.Name, []client.Object{&pavv1.PavSnapshot{}}
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
// even if the claim is gone; a PersistentVolume itself; or a snapshot.
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

package status

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/protocol"
)

// VolumeName returns the name of the PersistentVolume that the claim is bound to, or that PaV creates for it.
func VolumeName(claim *corev1.PersistentVolumeClaim) string {
	if claim.Spec.VolumeName != "" {
		return claim.Spec.VolumeName
	}
	return protocol.VolumeName(claim.UID)
}

// page is the page size of lists without a selector.
const page = 500

// FormerVolume returns the newest PavVolume that was created for a claim with this name that is gone, or nil. No
// label contains the claim's name, so this lists all PavVolumes. It is only for a claim that does not exist.
func FormerVolume(ctx context.Context, reader client.Reader, claim Ref) (*pavv1.PavVolume, error) {
	var found *pavv1.PavVolume
	list := &pavv1.PavVolumeList{}
	for {
		if err := reader.List(ctx, list, client.Limit(page), client.Continue(list.Continue)); err != nil {
			return nil, fmt.Errorf("listing PavVolumes: %w", err)
		}
		for i := range list.Items {
			v := &list.Items[i]
			if v.Spec.ClaimRef.Namespace != claim.Namespace || v.Spec.ClaimRef.Name != claim.Name {
				continue
			}
			if found == nil || found.CreationTimestamp.Before(&v.CreationTimestamp) {
				found = v.DeepCopy()
			}
		}
		if list.Continue == "" {
			return found, nil
		}
	}
}

// VolumesOf returns the names of the PersistentVolumes that belong to an object: all volumes of a pod, including
// those of other drivers; or the one of a claim, even if the claim is gone; or a PersistentVolume itself.
func VolumesOf(ctx context.Context, reader client.Reader, ref Ref) ([]string, error) {
	switch ref.Kind {
	case PV:
		return []string{ref.Name}, nil
	case Pod:
		pod := &corev1.Pod{}
		if err := reader.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, pod); err != nil {
			return nil, fmt.Errorf("getting the pod: %w", err)
		}
		var names []string
		for _, claim := range ClaimsOf(pod) {
			found, err := VolumesOf(ctx, reader, Ref{Kind: Claim, Namespace: ref.Namespace, Name: claim})
			if err != nil {
				return nil, err
			}
			names = append(names, found...)
		}
		return names, nil
	default:
	}
	claim := &corev1.PersistentVolumeClaim{}
	err := reader.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, claim)
	if err == nil {
		return []string{VolumeName(claim)}, nil
	}
	if apierrors.IsNotFound(err) {
		if former, left := FormerVolume(ctx, reader, ref); left == nil && former != nil {
			return []string{former.Name}, nil
		}
	}
	return nil, fmt.Errorf("getting the claim: %w", err)
}

// IsGone reports whether a volume has neither a PersistentVolume nor a PavVolume any more.
func IsGone(ctx context.Context, reader client.Reader, name string) (bool, error) {
	for _, object := range []client.Object{&corev1.PersistentVolume{}, &pavv1.PavVolume{}} {
		err := reader.Get(ctx, client.ObjectKey{Name: name}, object)
		if err == nil {
			return false, nil
		}
		if !apierrors.IsNotFound(err) {
			return false, fmt.Errorf("getting volume %q: %w", name, err)
		}
	}
	return true, nil
}

package status

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
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
			if v.Spec.Static || v.Spec.ClaimRef.Namespace != claim.Namespace || v.Spec.ClaimRef.Name != claim.Name {
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

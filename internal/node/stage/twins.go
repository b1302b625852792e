package stage

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/albertofaria/pav/internal/observe"
)

// volumeNameIn returns the name of the persistent volume for which kubelet made a target, or nothing where
// the path is of another form: <pods>/<uid>/volumes/kubernetes.io~csi/<name>/mount for file systems, and
// <plugins>/kubernetes.io/csi/volumeDevices/publish/<name>/<pod uid> for devices.
func volumeNameIn(target string) string {
	holder := filepath.Dir(target)
	above := filepath.Dir(holder)
	switch {
	case filepath.Base(target) == "mount" && filepath.Base(above) == "kubernetes.io~csi":
		return filepath.Base(holder)
	case filepath.Base(above) == "publish" && filepath.Base(filepath.Dir(above)) == "volumeDevices":
		return filepath.Base(holder)
	}
	return ""
}

// refuseTwins refuses a volume that several persistent volumes stand for: what one of them promises, as
// that one node or one pod has it, another breaks. All their claims hear of it.
func (s *Stager) refuseTwins(ctx context.Context, v Volume, names []string) error {
	names = slices.Sorted(slices.Values(names))
	refusal := fmt.Errorf("persistent volumes %q have the same driver %q and handle; a volume can have but one: delete the others", names, v.Driver)
	for _, name := range names {
		volume := &corev1.PersistentVolume{}
		// This is for telling only, and must not keep anyone from the refusal.
		if _, err := s.read(ctx, "PersistentVolume", client.ObjectKey{Name: name}, volume); err == nil {
			s.tellClaimOf(volume, refusal)
		}
	}
	return fmt.Errorf("%w: %w", ErrRefused, refusal)
}

// tellClaimOf tells the user of the claim that the volume is bound to, if it is, why it is not staged.
func (s *Stager) tellClaimOf(volume *corev1.PersistentVolume, reason error) {
	ref := volume.Spec.ClaimRef
	if ref == nil {
		return
	}
	claim := &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: ref.Namespace, Name: ref.Name, UID: ref.UID}
	s.events.Event(claim, corev1.EventTypeWarning, "FailedMount", observe.Clip(reason.Error(), observe.MaxNote))
}

package stage

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/observability"
)

// volumeNameIn returns the name of the PersistentVolume for which kubelet created a target, or "" if the path has
// another form: <pods>/<uid>/volumes/kubernetes.io~csi/<name>/mount for file systems, and
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

// rejectDuplicatePVs rejects a volume for which several PersistentVolumes exist: they could not keep the promise of
// access modes such as ReadWriteOncePod. It reports that on all their claims.
func (s *Stager) rejectDuplicatePVs(ctx context.Context, v Volume, names []string) error {
	names = slices.Sorted(slices.Values(names))
	refusal := fmt.Errorf("PersistentVolumes %q have the same driver %q and handle; a volume can have only one: delete the others", names, v.Driver)
	for _, name := range names {
		volume := &corev1.PersistentVolume{}
		// This is only for the report, and must not prevent the rejection.
		if _, err := s.read(ctx, "PersistentVolume", client.ObjectKey{Name: name}, volume); err == nil {
			s.reportToClaimOf(volume, refusal)
		}
	}
	return fmt.Errorf("%w: %w", ErrRefused, refusal)
}

// errOutlived means that a volume is staged for a PersistentVolume that is gone, and another one has the same handle.
var errOutlived = errors.New("it is staged for a PersistentVolume that is gone")

// rejectDuplicatePV rejects a volume that is staged for one PersistentVolume, and requested for another; with
// errOutlived if the first is gone.
func (s *Stager) rejectDuplicatePV(ctx context.Context, v Volume, staged, asked string) error {
	there, err := s.volumeNow(ctx, v, staged)
	if err == nil && there == nil {
		return fmt.Errorf("%w: %w: %q, and requested for %q", ErrBusy, errOutlived, staged, asked)
	}
	return s.rejectDuplicatePVs(ctx, v, []string{staged, asked})
}

// volumeNow returns the PersistentVolume of that name if it exists and has the driver and handle.
func (s *Stager) volumeNow(ctx context.Context, v Volume, name string) (*corev1.PersistentVolume, error) {
	volume := &corev1.PersistentVolume{}
	_, err := s.read(ctx, "PersistentVolume", client.ObjectKey{Name: name}, volume)
	if apierrors.IsNotFound(err) || err == nil && !isOf(volume, v) {
		return nil, nil
	}
	return volume, err
}

// observeVolume gathers whether a volume that is already staged now has another PersistentVolume: the stage has the
// parameters of the former one, such as read-only. A new PersistentVolume with the same name counts as the former
// one.
func (t *task) observeVolume(ctx context.Context, o *observation) error {
	asked := t.asked
	t.asked = false
	if !asked || o.phase != pavv1.StageStaged || o.restaging {
		return nil
	}
	name, err := t.successor(ctx)
	if err != nil || name == "" {
		return err
	}
	if o.occupied, err = t.anyMounted(ctx, t.published); err != nil {
		return err
	}
	if o.claimOnly && !o.occupied {
		clients, err := t.clientTargets(ctx, t.Volume)
		if err != nil {
			return err
		}
		o.occupied = len(clients) > 0
	}
	o.pvReplaced = !o.occupied || name != t.stage.Spec.VolumeName
	return nil
}

// successor returns the name of the PersistentVolume that has replaced the stage's; "" if that still exists, or none
// has replaced it.
func (t *task) successor(ctx context.Context) (string, error) {
	names, err := t.catalogue.VolumeNames(ctx, t.Driver, t.Handle)
	if err != nil || len(names) != 1 {
		return "", err
	}
	copied, err := object(t.stage.Spec.Volume)
	if err != nil {
		return "", err
	}
	former, err := t.volumeNow(ctx, t.Volume, t.stage.Spec.VolumeName)
	if err != nil || former != nil && string(former.UID) == uid(copied) {
		return "", err
	}
	if names[0] == t.stage.Spec.VolumeName {
		if former == nil {
			return "", nil
		}
		return names[0], nil
	}
	next, err := t.volumeNow(ctx, t.Volume, names[0])
	if err != nil || next == nil {
		return "", err
	}
	return names[0], nil
}

// pvReplaced ends the call because clients have the volume of a PersistentVolume that is gone.
func (t *task) pvReplaced(context.Context) error {
	return fmt.Errorf("%w: %w: %q, and pods of this node still have it; delete them first", ErrBusy, errOutlived, t.stage.Spec.VolumeName)
}

// reportToClaimOf reports on the claim that the volume is bound to, if any, why it is not staged. As kubelet repeats
// its call, the event is limited by observability.Repeats.
func (s *Stager) reportToClaimOf(volume *corev1.PersistentVolume, reason error) {
	ref := volume.Spec.ClaimRef
	if ref == nil {
		return
	}
	if due, _ := s.repeats.Due(string(ref.UID), reason.Error(), s.now()); !due {
		return
	}
	s.events.Event(claimNamed(ref.Namespace, ref.Name, ref.UID), corev1.EventTypeWarning, "FailedMount", observability.Clip(reason.Error(), observability.MaxNote))
}

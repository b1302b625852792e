package volume

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/index"
	"github.com/albertofaria/pav/internal/controller/protocol"
	"github.com/albertofaria/pav/internal/controller/retry"
	"github.com/albertofaria/pav/internal/template"
)

// provision checks the request, works out handle and capacity, and records them. They are recorded
// before the PersistentVolume is written, so that a repeated pass writes the same one even if the
// definition was edited in between.
func (r *Reconciler) provision(ctx context.Context, o observed) error {
	claim, err := r.readClaim(ctx, claimKey(o.volume))
	if err != nil {
		return err
	}
	if claim == nil || claim.GetUID() != o.volume.Spec.ClaimRef.UID || claim.GetDeletionTimestamp() != nil {
		return retry.ErrStale
	}
	p, err := r.plan(ctx, o, claim.Object)
	if err != nil {
		return r.fail(ctx, o, failed("Refused", fmt.Sprintf("PavProvisioner %q: %s", o.volume.Spec.Provisioner, err)))
	}
	if holder, err := r.holderOf(ctx, o.volume, p.handle); err != nil {
		return err
	} else if holder != "" {
		return r.fail(ctx, o, failed("HandleInUse", fmt.Sprintf("PavProvisioner %q: spec.volumeCreation.handle: the handle %q is that of %s already", o.volume.Spec.Provisioner, p.handle, holder)))
	}
	return r.patchStatus(ctx, o.volume, func(status *pavv1.PavVolumeStatus) {
		status.Phase = pavv1.VolumePending
		status.Handle = p.handle
		status.Capacity = resource.NewQuantity(p.capacity, resource.BinarySI)
	})
}

func (r *Reconciler) plan(ctx context.Context, o observed, claim map[string]any) (plan, error) {
	s, err := sourceOf(o.volume)
	if err != nil {
		return plan{}, err
	}
	if _, _, err := parameters(&s.class); err != nil {
		return plan{}, err
	}
	value, err := template.Decode(o.volume.Spec.StorageClass)
	if err != nil {
		return plan{}, fmt.Errorf("spec.storageClass of PavVolume %q: %w", o.volume.Name, err)
	}
	class, _ := value.(map[string]any)
	return makePlan(ctx, request{provisioner: o.provisioner, claim: claim, class: class, templates: r.Templates, getPVC: r.getPVC})
}

// getPVC is the template function of that name.
func (r *Reconciler) getPVC(ctx context.Context, name, namespace string) (map[string]any, error) {
	claim, err := r.readClaim(ctx, types.NamespacedName{Namespace: namespace, Name: name})
	if err != nil {
		return nil, err
	}
	if claim == nil {
		return nil, template.ErrNoClaim
	}
	return claim.Object, nil
}

// readClaim returns a claim as the API server has it, or nil where there is none.
func (r *Reconciler) readClaim(ctx context.Context, key types.NamespacedName) (*unstructured.Unstructured, error) {
	claim := &unstructured.Unstructured{}
	claim.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"))
	claim, err := optional(ctx, r.Live, key, claim)
	if claim != nil {
		claim.SetManagedFields(nil)
	}
	return claim, err
}

// holderOf returns the name of another volume that has the handle, or reserves the handle and
// returns "". One handle in two volumes would be one storage under two names.
func (r *Reconciler) holderOf(ctx context.Context, volume *pavv1.PavVolume, handle string) (string, error) {
	key := index.Handle(volume.Spec.Provisioner, handle)
	if holder := r.handles.take(key, volume.Name); holder != volume.Name {
		return fmt.Sprintf("PersistentVolume %q", holder), nil
	}
	pvs := &corev1.PersistentVolumeList{}
	if err := r.Client.List(ctx, pvs, client.MatchingFields{index.PVsByHandle: key}); err != nil {
		return "", fmt.Errorf("looking up PersistentVolumes: %w", err)
	}
	for i := range pvs.Items {
		if name := pvs.Items[i].Name; name != volume.Name {
			r.handles.release(volume.Name)
			return fmt.Sprintf("PersistentVolume %q", name), nil
		}
	}
	volumes := &pavv1.PavVolumeList{}
	if err := r.Client.List(ctx, volumes, client.MatchingFields{index.VolumesByHandle: key}); err != nil {
		return "", fmt.Errorf("looking up PavVolumes: %w", err)
	}
	for i := range volumes.Items {
		if name := volumes.Items[i].Name; name != volume.Name {
			r.handles.release(volume.Name)
			return fmt.Sprintf("PavVolume %q", name), nil
		}
	}
	return "", nil
}

// writePV writes the PersistentVolume. One of its name that exists is an earlier pass's, or a
// conflict that the next decision reports.
func (r *Reconciler) writePV(ctx context.Context, o observed) error {
	pv, err := persistentVolume(o.volume)
	if err != nil {
		return r.fail(ctx, o, failed("Refused", err.Error()))
	}
	switch err := r.Client.Create(ctx, pv); {
	case apierrors.IsAlreadyExists(err):
		return retry.ErrStale
	case apierrors.IsInvalid(err), apierrors.IsForbidden(err):
		return r.fail(ctx, o, failed("Refused", fmt.Sprintf("writing PersistentVolume %q: %s", pv.Name, err)))
	case err != nil:
		return fmt.Errorf("writing PersistentVolume %q: %w", pv.Name, err)
	}
	return nil
}

// markReady records that the PersistentVolume exists, and what it says.
func (r *Reconciler) markReady(ctx context.Context, o observed) error {
	pv := o.ownPV()
	capacity := pv.Spec.Capacity[corev1.ResourceStorage]
	err := r.patchStatus(ctx, o.volume, func(status *pavv1.PavVolumeStatus) {
		status.Phase = pavv1.VolumeReady
		status.Handle = pv.Spec.CSI.VolumeHandle
		status.Capacity = &capacity
		meta.SetStatusCondition(&status.Conditions, metav1.Condition{Type: pavv1.VolumeProvisioned, Status: metav1.ConditionTrue,
			Reason: "Provisioned", Message: "the PersistentVolume exists", ObservedGeneration: o.volume.Generation})
		meta.RemoveStatusCondition(&status.Conditions, pavv1.VolumeDeleted)
	})
	if err == nil && o.pending() {
		r.Events.Eventf(claimObject(o.volume), corev1.EventTypeNormal, protocol.ProvisioningSucceeded, "Successfully provisioned volume %s", o.volume.Name)
		ctrl.LoggerFrom(ctx).Info("provisioned a volume", "provisioner", o.volume.Spec.Provisioner, "claim", claimKey(o.volume))
	}
	return err
}

// fail reports a failed attempt and returns it, so that it is repeated with backoff.
func (r *Reconciler) fail(ctx context.Context, o observed, d decision) error {
	if err := r.patchCondition(ctx, o.volume, pavv1.VolumeProvisioned, d); err != nil {
		return err
	}
	r.Events.Event(claimObject(o.volume), corev1.EventTypeWarning, protocol.ProvisioningFailed, d.message)
	return errors.New(d.message)
}

// claimObject stands for the volume's claim in events.
func claimObject(volume *pavv1.PavVolume) *corev1.PersistentVolumeClaim {
	ref := volume.Spec.ClaimRef
	return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: ref.Namespace, Name: ref.Name, UID: ref.UID}}
}

package volume

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/observability"
	"github.com/albertofaria/pav/internal/protocol"
	"github.com/albertofaria/pav/internal/reconcile"
)

// ofAttributesClass maps a VolumeAttributesClass to the volumes whose claims name it and that are not known to have its attributes.
func (r *Reconciler) ofAttributesClass(ctx context.Context, object client.Object) []ctrl.Request {
	claims := &corev1.PersistentVolumeClaimList{}
	if err := r.Client.List(ctx, claims, client.MatchingFields{reconcile.ClaimsByAttributesClass: object.GetName()}, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "cannot look claims up", observability.AttributesClass, object.GetName())
		return nil
	}
	var requests []ctrl.Request
	for i := range claims.Items {
		requests = append(requests, ofClaim(ctx, &claims.Items[i])...)
	}
	return requests
}

// ofClaim maps a claim to the volume that is made for it, and to the one that it names.
func ofClaim(_ context.Context, object client.Object) []ctrl.Request {
	requests := named(protocol.VolumeName(object.GetUID()))
	if claim, ok := object.(*corev1.PersistentVolumeClaim); ok && claim.Spec.VolumeName != "" && claim.Spec.VolumeName != requests[0].Name {
		requests = append(requests, named(claim.Spec.VolumeName)...)
	}
	return requests
}

// concerned maps an object that uses storage to the other volumes that use it or wait for it.
func (r *Reconciler) concerned(ctx context.Context, object client.Object) []ctrl.Request {
	var requests []ctrl.Request
	for _, storage := range reconcile.StoragesOf(object) {
		names, err := reconcile.Concerned(ctx, r.Client, storage)
		if err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "cannot look volumes up", "storage", storage)
		}
		for _, name := range names {
			requests = append(requests, named(name)...)
		}
	}
	return requests
}

// unsettled maps a PavProvisioner or its CSIDriver to the volumes that may wait for it.
func (r *Reconciler) unsettled(ctx context.Context, object client.Object) []ctrl.Request {
	volumes := &pavv1.PavVolumeList{}
	if err := r.Client.List(ctx, volumes, client.MatchingFields{reconcile.VolumesByProvisioner: object.GetName()}, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "cannot look volumes up", observability.Provisioner, object.GetName())
		return nil
	}
	refused := r.infeasibleOnNodes(ctx)
	var requests []ctrl.Request
	for i := range volumes.Items {
		status := &volumes.Items[i].Status
		// The record of a static volume goes with its provisioner.
		settled := !volumes.Items[i].Spec.Static && (status.Phase == pavv1.VolumeReady || status.Phase == pavv1.VolumeRetained) && meta.FindStatusCondition(status.Conditions, pavv1.VolumeExpanded) == nil &&
			meta.FindStatusCondition(status.Conditions, pavv1.VolumeModified) == nil && meta.FindStatusCondition(status.Conditions, pavv1.VolumeDeleted) == nil
		if !settled || refused[volumes.Items[i].Name] {
			requests = append(requests, named(volumes.Items[i].Name)...)
		}
	}
	requests = append(requests, r.staticOf(ctx, object)...)
	return append(requests, r.orphansOf(ctx, object.GetName())...)
}

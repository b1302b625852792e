package volume

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/rule"
	"github.com/albertofaria/pav/internal/observability"
	"github.com/albertofaria/pav/internal/protocol"
	"github.com/albertofaria/pav/internal/reconcile"
)

// gatherUser reads the claim that is bound to the PersistentVolume. A volume populator may have given the volume to another
// claim than the one that it was made for. Claim is the latter, or nil. It reads the VolumeAttributesClass, too, if the
// volume is to get its attributes.
func (o *observation) gatherUser(ctx context.Context, reader client.Reader, claim *corev1.PersistentVolumeClaim) error {
	o.user, o.attributesClass = nil, nil
	if o.pv == nil || o.pv.Spec.ClaimRef == nil || o.pv.Status.Phase != corev1.VolumeBound {
		return nil
	}
	ref := o.pv.Spec.ClaimRef
	if claim == nil || claim.UID != ref.UID {
		var err error
		if claim, err = reconcile.Optional(ctx, reader, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, &corev1.PersistentVolumeClaim{}); err != nil {
			return err
		}
	}
	if claim != nil && claim.UID == ref.UID && claim.Spec.VolumeName == o.volume.Name && claim.Status.Phase == corev1.ClaimBound {
		o.user = claim
	}
	if !o.wantsAttributes() {
		return nil
	}
	var err error
	o.attributesClass, err = reconcile.AttributesClass(ctx, reader, o.attributesClassWanted())
	return err
}

// infeasibleOnNodes returns the names of the volumes whose expansion kubelet has called infeasible on a node: nodes are asked again when
// the definition has changed.
func (r *Reconciler) infeasibleOnNodes(ctx context.Context) map[string]bool {
	claims := &corev1.PersistentVolumeClaimList{}
	if err := r.Client.List(ctx, claims, client.MatchingFields{reconcile.ClaimsInfeasible: "true"}, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "cannot look claims up")
		return nil
	}
	volumes := map[string]bool{}
	for i := range claims.Items {
		volumes[claims.Items[i].Spec.VolumeName] = true
	}
	return volumes
}

// view is what the status of a claim says of its volume.
type view struct {
	size       size
	attributes attributes
}

// viewOf returns what the claim of a volume is to show, and viewShown what a claim shows.
func viewOf(o observation) view { return view{sizeOf(o), attributesOf(o)} }

func viewShown(claim *corev1.PersistentVolumeClaim) view {
	return view{sizeShown(claim), attributesShown(claim)}
}

// show changes the status of a claim so that it shows a volume.
func (v view) show(status *corev1.PersistentVolumeClaimStatus, now metav1.Time) {
	v.size.show(status, now)
	v.attributes.show(status, now)
}

// showClaim writes to the status of the claim how large the volume is, what attributes it has, and that this changes. The claim is read
// from the API server, as the cache does not have all of its status.
func (r *Reconciler) showClaim(ctx context.Context, o observation, _ decision) error {
	claim, err := reconcile.Optional(ctx, r.Live, client.ObjectKeyFromObject(o.user), &corev1.PersistentVolumeClaim{})
	if err != nil {
		return err
	}
	if claim == nil || claim.UID != o.user.UID || claim.Status.Phase != corev1.ClaimBound || claim.Spec.VolumeName != o.volume.Name {
		return reconcile.ErrStale
	}
	class := o.attributesClassWanted()
	o.user = claim
	if class != o.attributesClassWanted() {
		return reconcile.ErrStale
	}
	before, after := viewShown(claim), viewOf(o)
	if before == after {
		return reconcile.ErrStale // an earlier pass wrote it
	}
	if before.size.resize == corev1.PersistentVolumeClaimNodeResizeInfeasible && after.size.resize != before.size.resize && o.expansion() == nil {
		// Nodes are asked again, once for each definition and after each delay.
		if err := r.patchStatus(ctx, o.volume, func(status *pavv1.PavVolumeStatus) {
			status.ProvisionerGeneration, status.NodesAskedTime = o.provisioner.Generation, new(metav1.NewTime(r.Now()))
		}); err != nil {
			return err
		}
	}
	got, err := r.writeView(ctx, claim, after)
	if isRefused(err) && after.size != o.lesserSize(before.size, after.size) {
		after.size = o.lesserSize(before.size, after.size)
		got, err = r.writeView(ctx, claim, after)
	}
	if isRefused(err) {
		return r.reportUnshown(ctx, o, err)
	}
	if err != nil {
		return err
	}
	r.rejections.Forget(o.volume.Name)
	r.announceSize(o, before.size, after.size)
	r.announceAttributes(o, before.attributes, got.attributes)
	// Nothing of PaV depends on what the API server drops.
	if got.size.allocated != after.size.allocated || got.size.resize != after.size.resize {
		r.dropsSizes.Store(true)
		return reconcile.ErrStale
	}
	if got.attributes != after.attributes {
		r.dropsAttributes.Store(true)
		return reconcile.ErrStale
	}
	return nil
}

// writeView writes what a claim, as the API server has it, is to show of its volume. It returns what it shows now.
func (r *Reconciler) writeView(ctx context.Context, claim *corev1.PersistentVolumeClaim, is view) (view, error) {
	changed := claim.DeepCopy()
	is.show(&changed.Status, metav1.NewTime(r.Now()))
	patch := client.MergeFromWithOptions(claim, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Status().Patch(ctx, changed, patch); client.IgnoreNotFound(err) != nil {
		return view{}, fmt.Errorf("updating the status of claim %s: %w", observability.Name(claim.Namespace, claim.Name), err)
	}
	return viewShown(changed), nil
}

// isRefused reports whether the API server has refused a write for what it says.
func isRefused(err error) bool { return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) }

// reasonUnshown is the reason of the condition of a volume whose claim cannot show what the volume has.
const reasonUnshown = "ClaimStatusRefused"

// reportUnshown reports that the API server refuses what a claim is to show. It is tried again with backoff, as PaV does not watch
// ResourceQuotas.
func (r *Reconciler) reportUnshown(ctx context.Context, o observation, refusal error) error {
	d := rule.Waiting(pavv1.VolumeExpanded, reasonUnshown, fmt.Sprintf("the volume has %s, which its claim cannot show: %s; the volume does not change before that: if a ResourceQuota is used up, raise it, or delete claims",
		o.volume.Status.Capacity, refusal), true)
	if err := r.patchCondition(ctx, o.volume, d); err != nil {
		return err
	}
	if due, _ := r.repeats.Due(o.volume.Name, d.Message, r.Now()); due {
		r.announce(o, d)
	}
	return &reconcile.Later{After: r.rejections.When(o.volume.Name)}
}

// announceSize records an event about the size that the claim shows now.
func (r *Reconciler) announceSize(o observation, before, after size) {
	switch {
	case after.onNode && !before.onNode:
		r.tellUser(o, corev1.EventTypeNormal, protocol.FileSystemResizeRequired, fmt.Sprintf("the volume has grown to %s; a node has to make the new capacity available", o.volume.Status.Capacity))
	case after.capacity != before.capacity:
		r.tellUser(o, corev1.EventTypeNormal, protocol.VolumeResizeSuccessful, fmt.Sprintf("the volume has grown from %s to %s", before.capacity, after.capacity))
	case after.resizing && !before.resizing:
		r.tellUser(o, corev1.EventTypeNormal, protocol.VolumeResizing, fmt.Sprintf("PavProvisioner %q is expanding the volume to %s", o.volume.Spec.Provisioner, after.allocated))
	}
}

// announceAttributes records an event about the attributes that the claim shows now.
func (r *Reconciler) announceAttributes(o observation, before, after attributes) {
	switch {
	case after.current != before.current && o.volume.Status.Attributes != nil:
		r.tellUser(o, corev1.EventTypeNormal, protocol.VolumeModifySuccessful, fmt.Sprintf("the volume has the attributes of VolumeAttributesClass %q", after.current))
	case after.modifying && !before.modifying:
		r.tellUser(o, corev1.EventTypeNormal, protocol.VolumeModify, fmt.Sprintf("PavProvisioner %q is modifying the volume to VolumeAttributesClass %q", o.volume.Spec.Provisioner, after.target))
	}
}

// tellUser records an event on the claim that is bound to the volume or, if there is none, on the PavVolume.
func (r *Reconciler) tellUser(o observation, eventType, reason, message string) {
	message = observability.Clip(message, observability.MaxNote)
	if o.user == nil {
		r.Events.Event(o.volume, eventType, reason, message)
		return
	}
	r.Events.Event(&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: o.user.Namespace, Name: o.user.Name, UID: o.user.UID}}, eventType, reason, message)
}

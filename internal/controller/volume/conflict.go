package volume

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/attempt"
	"github.com/albertofaria/pav/internal/controller/rule"
	"github.com/albertofaria/pav/internal/observability"
	"github.com/albertofaria/pav/internal/protocol"
	"github.com/albertofaria/pav/internal/reconcile"
	"github.com/albertofaria/pav/internal/workflow"
)

// reasonConflict is the reason of a condition about storage that another object uses.
const reasonConflict = string(pavv1.FailureHandleInUse)

// conflictText says which object uses the storage that a creation pod named, and what to do.
func conflictText(provisioner, handle string, holder reconcile.Holder) string {
	return fmt.Sprintf("PavProvisioner %q: the creation pod wrote %q to /pav/handle, which is the storage of %s; nothing is created or reverted while that exists, as reverting would delete its data: "+
		"let the creation pod write a unique handle, such as defaultHandle, and create the claim again", provisioner, handle, describe(holder))
}

// describe names a holder.
func describe(h reconcile.Holder) string {
	text := fmt.Sprintf("%s %q", h.Kind, h.Name)
	switch {
	case h.Kind == reconcile.KindStage:
		text += fmt.Sprintf(" on node %q", h.Node)
	case h.Kind == reconcile.KindVolume && h.Phase != "":
		text += fmt.Sprintf(" (%s)", h.Phase)
	}
	return text
}

// inConflict reports whether the last attempt ended because its creation pod named storage that another object used.
func (o observation) inConflict() bool {
	status := &o.volume.Status
	return status.Conflict != nil && status.Step == "" && status.Failure != nil && status.Failure.Reason == pavv1.FailureHandleInUse
}

// conflicts reports whether the last creation pod named storage that another object still uses. Nothing is done until that
// object is deleted, the definition changes, or a retry is requested.
func (o observation) conflicts() bool {
	return o.inConflict() && len(o.others) > 0 && !o.edited() && !o.retry.After(o.volume.Status.Failure.Time.Time)
}

func reportConflict(o observation) decision {
	return rule.Waiting(pavv1.VolumeProvisioned, reasonConflict,
		conflictText(o.volume.Spec.Provisioner, o.volume.Status.Conflict.Handle, o.others[0]), true)
}

// goesFirst reports whether all others that use the storage of a created volume will fail. If two pending volumes report the
// same handle at the same time, the one whose name sorts first waits until the other has failed, or has got its
// PersistentVolume because it did not see this one.
func (o observation) goesFirst() bool {
	return !slices.ContainsFunc(o.others, func(other reconcile.Holder) bool {
		pending := other.Kind == reconcile.KindVolume && (other.Phase == "" || other.Phase == pavv1.VolumePending)
		return !pending || other.Name < o.volume.Name
	})
}

func waitForOther(o observation) decision {
	return rule.Waiting(pavv1.VolumeProvisioned, reasonConflict, fmt.Sprintf("the handle %q is also that of %s, which is not provisioned yet and will fail",
		o.volume.Status.Handle, describe(o.others[0])), true)
}

// recordConflict records that the creation pod named storage that another object uses. The creation is never reverted:
// a deletion pod would delete the other object's data.
func (r *Reconciler) recordConflict(ctx context.Context, o observation, _ decision) error {
	handle, _ := o.identity()
	others, err := r.liveOthers(ctx, o, handle)
	if err != nil {
		return err
	}
	if len(others) == 0 {
		return reconcile.ErrStale
	}
	if err := r.checkNotCreated(ctx, o); err != nil {
		return err
	}
	r.reportEarlier(o, handle)
	text := conflictText(o.volume.Spec.Provisioner, handle, others[0])
	failure := o.unreverted(pavv1.FailureHandleInUse, text)
	failure.Time = metav1.NewTime(r.Now()) // there is no further attempt before the other object is gone
	r.handles.Release(o.volume.Name)
	if err := r.patchStatus(ctx, o.volume, func(status *pavv1.PavVolumeStatus) {
		clearMade(status)
		status.Failure = failure
		status.Conflict = &pavv1.StorageConflict{Handle: handle, Kind: others[0].Kind, Name: others[0].Name}
		setCondition(o.volume, status, pavv1.VolumeProvisioned, reasonConflict, text)
	}); err != nil {
		return err
	}
	r.slots.Release(o.volume.Name)
	r.tellClaim(o.volume, corev1.EventTypeWarning, protocol.ProvisioningFailed, text)
	r.Events.Event(o.volume, corev1.EventTypeWarning, protocol.ProvisioningFailed, observability.Clip(text, observability.MaxNote))
	return nil
}

// unreverted returns the failure of an attempt that is not reverted.
func (o observation) unreverted(reason pavv1.FailureReason, message string) *pavv1.WorkflowFailure {
	failure := &pavv1.WorkflowFailure{Workflow: pavv1.WorkflowCreation, Reason: reason, Message: observability.Clip(message, observability.MaxCondition)}
	if f := o.volume.Status.Failure; o.volume.Status.Step == pavv1.StepReverting && f != nil {
		failure.PodNamespace, failure.PodName, failure.ExitCode = f.PodNamespace, f.PodName, f.ExitCode
	} else if ref := o.volume.Status.Pod; ref != nil && o.volume.Status.Step == pavv1.StepCreating {
		failure.PodNamespace, failure.PodName = ref.Namespace, ref.Name
	}
	return failure
}

// clearMade removes the results and the plan of an attempt that is over.
func clearMade(status *pavv1.PavVolumeStatus) {
	clearDeletion(status)
	status.Plan, status.Handle, status.Capacity, status.AccessibleTopology = nil, "", nil, nil
}

// abandon leaves the storage that a creation pod may have made, because its handle cannot be known: it may be another
// volume's. If there is a next attempt, it finds the storage as it is.
func (r *Reconciler) abandon(ctx context.Context, o observation, _ decision) error {
	if err := r.checkUntold(ctx, o); err != nil {
		return err
	}
	if err := r.checkNotCreated(ctx, o); err != nil {
		return err
	}
	failure := o.volume.Status.Failure.DeepCopy()
	if failure != nil && o.volume.Status.Step != pavv1.StepCreating {
		failure.Reason = pavv1.FailureHandleUnknown
	} else {
		failure = r.at(o.unreverted(pavv1.FailureHandleUnknown, "the creation pod is gone before it was known which handle it chose"), o.volume.Status.Attempt)
	}
	text := fmt.Sprintf("PavProvisioner %q: it is not known which handle the creation pod%s chose for PavVolume %q, so that no deletion pod is run, which could delete another volume's data; "+
		"what the creation pod made may be left: look for it, and give the definition a volumeCreation.handle, which makes it known in advance",
		o.volume.Spec.Provisioner, podOf(failure), o.volume.Name)
	r.reportLeft(o, text) // before the record loses it: better twice than never
	if err := r.patchStatus(ctx, o.volume, func(status *pavv1.PavVolumeStatus) {
		clearMade(status)
		status.Failure = failure
		setCondition(o.volume, status, pavv1.VolumeProvisioned, string(pavv1.FailureHandleUnknown), text)
	}); err != nil {
		return err
	}
	r.slots.Release(o.volume.Name)
	return nil
}

func podOf(f *pavv1.WorkflowFailure) string {
	if f.PodName == "" {
		return ""
	}
	return fmt.Sprintf(" %s/%s", f.PodNamespace, f.PodName)
}

// checkUntold asks the API server whether the files of a creation pod cannot be reported any more, because the pod or its
// node is gone.
func (r *Reconciler) checkUntold(ctx context.Context, o observation) error {
	pod := o.creationPod()
	if f := o.volume.Status.Failure; pod == nil && o.reverting() && f != nil && f.Workflow == pavv1.WorkflowCreation && f.PodName != "" {
		return attempt.CheckAbsent(ctx, r.Runner, &pavv1.PodReference{Namespace: f.PodNamespace, Name: f.PodName}, o.volume.UID)
	}
	if pod == nil {
		return r.checkVanished(ctx, o)
	}
	if workflow.IsReported(pod) {
		return nil // and has no valid handle
	}
	node, err := reconcile.Optional(ctx, r.Live, types.NamespacedName{Name: pod.Spec.NodeName}, &corev1.Node{})
	if err != nil {
		return err
	}
	if !reconcile.IsNodeGone(node) && attempt.UnreportedFor(r.Now(), pod) < attempt.LongDelay {
		return reconcile.ErrStale
	}
	return nil
}

// reportLeft records an event about storage that may be left on every object where people may look for it. The
// PavProvisioner is the first, as claim and PavVolume may be gone by then. The step that follows may be repeated while the
// cache is behind, so the event is limited by observability.Repeats.
func (r *Reconciler) reportLeft(o observation, text string) {
	text = observability.Clip(text, observability.MaxNote)
	if due, _ := r.left.Due(o.volume.Name, text, r.Now()); !due {
		return
	}
	if o.provisioner != nil {
		r.Events.Event(o.provisioner, corev1.EventTypeWarning, protocol.VolumeFailedDelete, text)
	}
	r.Events.Event(o.volume, corev1.EventTypeWarning, protocol.VolumeFailedDelete, text)
	r.Events.Event(claimObject(o.volume), corev1.EventTypeWarning, protocol.VolumeFailedDelete, text)
}

// reportEarlier reports that storage may be left of an earlier attempt, whose creation pod named a handle that another object
// used at that time, if the volume has another handle now. As long as the record has the conflict, nothing is lost.
func (r *Reconciler) reportEarlier(o observation, handle string) {
	c := o.volume.Status.Conflict
	if c == nil || c.Handle == handle {
		return
	}
	r.reportLeft(o, fmt.Sprintf("an earlier creation pod of PavVolume %q named the handle %q, which was the storage of %s %q at that time, and the volume has the handle %q now: "+
		"what the earlier pod made may be left; look for it, and delete it by hand if nobody uses it", o.volume.Name, c.Handle, c.Kind, c.Name, handle))
}

// reportConflictLeft reports, when the record of a volume is deleted, that its creation pod may have changed the storage of another object.
func (r *Reconciler) reportConflictLeft(ctx context.Context, o observation) {
	c := o.volume.Status.Conflict
	if c == nil {
		return
	}
	ctrl.LoggerFrom(ctx).Info("no deletion pod was run, as the handle is another object's", "handle", c.Handle, "holder", c.Kind+"/"+c.Name)
	r.reportLeft(o, fmt.Sprintf("PavVolume %q is deleted without a deletion pod, as its creation pod named the handle %q, which is the storage of %s %q: "+
		"the creation pod may have changed that storage, and nothing is reverted; check it", o.volume.Name, c.Handle, c.Kind, c.Name))
}

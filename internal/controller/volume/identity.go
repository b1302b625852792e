package volume

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/attempt"
	"github.com/albertofaria/pav/internal/reconcile"
	"github.com/albertofaria/pav/internal/workflow"
)

// knowledge says whether the handle of a volume that is not provisioned yet is known.
type knowledge int

const (
	// handleKnown: it is from the definition, from the creation pod, or the default.
	handleKnown knowledge = iota

	// handleUntold: the creation pod may have chosen one, and its node has yet to report it.
	handleUntold

	// handleUnknown: the creation pod may have chosen one, and no node will ever report it.
	handleUnknown
)

// identity returns the handle of the storage that the volume has or would have or, if the last attempt ended in a conflict,
// the handle of that conflict. A deletion pod deletes only storage whose handle is known here: storage is identified by its
// handle, and by nothing else.
func (o observation) identity() (string, knowledge) {
	status := &o.volume.Status
	switch {
	case status.Handle != "":
		return status.Handle, handleKnown
	case o.ownPV() != nil:
		return o.ownPV().Spec.CSI.VolumeHandle, handleKnown
	case status.Plan != nil && status.Plan.Handle != "":
		return status.Plan.Handle, handleKnown
	case o.bucketID() != "":
		return o.bucketID(), handleKnown
	case o.inConflict():
		return status.Conflict.Handle, handleKnown
	case o.creationOver():
		return o.chosen()
	default:
		return o.volume.Name, handleKnown
	}
}

// creationOver reports whether a creation pod has ended, is gone, or has created /pav/ready, and it is not decided yet what
// becomes of its storage.
func (o observation) creationOver() bool {
	switch o.volume.Status.Step {
	case pavv1.StepCreating:
		p := o.progress()
		return p == attempt.Ready || p == attempt.Reporting || p == attempt.Succeeded || p == attempt.Failed || p == attempt.Vanished
	case pavv1.StepReverting:
		return o.pending()
	default:
		return false
	}
}

// creationPod returns the creation pod of the storage that creationOver speaks of, or nil.
func (o observation) creationPod() *corev1.Pod {
	status := &o.volume.Status
	if status.Step == pavv1.StepCreating {
		return o.pod()
	}
	if f := status.Failure; f != nil && f.Workflow == pavv1.WorkflowCreation {
		return attempt.PodNamed(o.pods, f.PodNamespace, f.PodName)
	}
	return nil
}

// chosen returns the handle that the creation pod has chosen. If it cannot be read, or is invalid, it may mean any storage.
func (o observation) chosen() (string, knowledge) {
	pod := o.creationPod()
	if pod == nil {
		return "", handleUnknown
	}
	result, err := workflow.ResultOf(pod)
	switch {
	case err != nil:
		return "", handleUnknown
	case result != nil:
		return handleOf(result, o.volume.Name)
	case attempt.CertainlyNeverRan(pod, o.nodeGone):
		return o.volume.Name, handleKnown
	case o.nodeGone && !attempt.HasEndedWithin(o.now, pod, attempt.ResultDelay), attempt.UnreportedFor(o.now, pod) >= attempt.LongDelay:
		return "", handleUnknown
	default:
		return "", handleUntold
	}
}

func handleOf(result *workflow.Result, byDefault string) (string, knowledge) {
	_, unreadable := result.Unreadable[workflow.HandleFile]
	switch {
	case unreadable:
		return "", handleUnknown
	case result.Handle == "":
		return byDefault, handleKnown
	case workflow.CheckHandle(result.Handle) != nil:
		return "", handleUnknown
	default:
		return result.Handle, handleKnown
	}
}

// awaited reports whether the result of a pod that is over is still needed.
func (o observation) awaited(pod *corev1.Pod) bool {
	if o.volume.Status.Step != pavv1.StepReverting || o.creationPod() != pod {
		return false
	}
	_, known := o.identity()
	return known == handleUntold || o.volume.Status.Handle == "" // until it is recorded
}

// gatherOthers looks up the other objects that use the volume's storage.
func (r *Reconciler) gatherOthers(ctx context.Context, o *observation) error {
	pod := o.creationPod()
	if o.changing() {
		pod = o.pod()
	}
	if pod != nil && pod.Spec.NodeName != "" {
		node, err := reconcile.Optional(ctx, r.Client, types.NamespacedName{Name: pod.Spec.NodeName}, &corev1.Node{})
		if err != nil {
			return err
		}
		o.nodeGone = reconcile.IsNodeGone(node)
	}
	handle, _ := o.identity()
	holders, err := reconcile.Holders(ctx, r.Client, o.storage(handle))
	o.others = o.besides(handle, holders)
	return err
}

func (o observation) storage(handle string) reconcile.StorageKey {
	return reconcile.StorageKey{Driver: o.volume.Spec.Provisioner, Handle: handle, Name: o.volume.Name}
}

// besides returns the holders of the storage of a handle without the volume itself.
func (o observation) besides(handle string, holders []reconcile.Holder) []reconcile.Holder {
	unstageable := o.unstageable(handle, holders)
	if holder := o.sourceWith(handle); holder != nil && !slices.ContainsFunc(holders, func(h reconcile.Holder) bool { return h.Kind == holder.Kind && h.Name == holder.Name }) {
		holders = append(slices.Clone(holders), *holder)
	}
	return slices.DeleteFunc(holders, func(h reconcile.Holder) bool {
		return h.Kind == reconcile.KindStage && unstageable ||
			h.Name == o.volume.Name && (h.Kind == reconcile.KindVolume || h.Kind == reconcile.KindPV && o.ownPV() != nil)
	})
}

// sourceWith returns the source of a volume that is not provisioned as a holder, if it has the handle; nil if it has not. A creation pod
// that names the handle of its source has made nothing of its own, and a deletion pod would delete the source. Snapshots and volumes may
// have the same handles, which the definition then chooses itself.
func (o observation) sourceWith(handle string) *reconcile.Holder {
	of := o.volume.Spec.Source
	if of == nil || !o.pending() || of.Handle != handle {
		return nil
	}
	if of.Kind == pavv1.DataSourceClaim {
		return &reconcile.Holder{Kind: reconcile.KindPV, Name: of.VolumeName}
	}
	if plan := o.volume.Status.Plan; plan != nil && plan.Handle != "" {
		return nil
	}
	return &reconcile.Holder{Kind: reconcile.KindSnapshot, Name: of.SnapshotName}
}

// unstageable reports whether no node can have staged the storage of a handle. The default handle is the volume's name,
// which contains the claim's UID, and no pod can use it before its PersistentVolume exists. PavStages are ignored then: an
// attacker with the token of one node agent could write PavStages with any handle for that node, and so stop all provisioning.
func (o observation) unstageable(handle string, holders []reconcile.Holder) bool {
	return o.pending() && !o.wasBound && !o.unwanted() && o.claim != claimBound && handle == o.volume.Name && o.pv == nil &&
		!slices.ContainsFunc(holders, func(h reconcile.Holder) bool { return h.Kind == reconcile.KindPV })
}

// liveOthers is gatherOthers with the objects that the API server has, before a step that cannot be undone. If a
// PersistentVolume has the name of the volume and the cache does not have it yet, the error is reconcile.ErrStale: it may be
// the volume's own, and then so is the storage that others seem to use.
func (r *Reconciler) liveOthers(ctx context.Context, o observation, handle string) ([]reconcile.Holder, error) {
	holders, err := r.holders.Holders(ctx, o.storage(handle))
	if err == nil && o.pv == nil && slices.ContainsFunc(holders, func(h reconcile.Holder) bool { return h.Kind == reconcile.KindPV && h.Name == o.volume.Name }) {
		return nil, reconcile.ErrStale
	}
	return o.besides(handle, holders), err
}

// checkAlone asks the API server whether no other object uses the volume's storage.
func (r *Reconciler) checkAlone(ctx context.Context, o observation) error {
	handle, _ := o.identity()
	others, err := r.liveOthers(ctx, o, handle)
	if err == nil && len(others) > 0 {
		return reconcile.ErrStale
	}
	return err
}

// checkUnstaged asks the API server whether the volume is still staged: the cache alone is not enough to delete data.
func (r *Reconciler) checkUnstaged(ctx context.Context, o observation) error {
	handle, _ := o.identity()
	others, err := r.liveOthers(ctx, o, handle)
	if err == nil && len(reconcile.StagedOn(others)) > 0 {
		return reconcile.ErrStale
	}
	return err
}

// checkNewHolders reads the cache once more. After checkAlone, the template was evaluated and the pod was recorded, and an
// administrator may have created a PersistentVolume of the storage since.
func (r *Reconciler) checkNewHolders(ctx context.Context, o observation) error {
	if err := r.gatherOthers(ctx, &o); err != nil {
		return err
	}
	if len(o.others) > 0 {
		return reconcile.ErrStale
	}
	return nil
}

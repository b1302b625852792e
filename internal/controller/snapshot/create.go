package snapshot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/reading"
	"github.com/albertofaria/pav/internal/controller/rule"
	"github.com/albertofaria/pav/internal/observability"
	"github.com/albertofaria/pav/internal/podplan"
	"github.com/albertofaria/pav/internal/podplan/topology"
	"github.com/albertofaria/pav/internal/reconcile"
	"github.com/albertofaria/pav/internal/workflow"
)

// begin begins an attempt to create the snapshot, or to process one that is cut.
func (r *Reconciler) begin(ctx context.Context, o observation, d rule.Decision) error {
	o, err := r.confirmed(ctx, o, d.Step)
	if err != nil {
		return err
	}
	if _, known := o.reachable(); !known && o.pending() {
		return r.refuse(ctx, o, pavv1.WorkflowSnapshotCreation, r.beginning(o, nil), refuse("the nodeAffinity of PersistentVolume %q: only the operator In is supported for snapshots", o.pv.Name))
	}
	plan, err := r.plan(ctx, o)
	if err == nil && o.pending() {
		err = r.reserve(ctx, o, cmp.Or(plan.Handle, o.record.Name))
	}
	if err != nil {
		return r.refuse(ctx, o, pavv1.WorkflowSnapshotCreation, r.beginning(o, nil), err)
	}
	if o.pending() {
		if err := r.readers().Enter(ctx, o.reading()); err != nil {
			return err
		}
	}
	return r.intend(ctx, o, intent{
		step: pavv1.SnapshotCreating, pod: plan.Pod, change: r.beginning(o, plan),
	})
}

// errInUse is wrapped by errors about handles that other objects have.
var errInUse = errors.New("already in use")

// reserve reserves a handle for the snapshot, before a pod writes to the storage of that name. A handle that another object has is a
// podplan.Error, and errInUse.
func (r *Reconciler) reserve(ctx context.Context, o observation, handle string) error {
	if r.handles.Reserve(reconcile.Storage(o.record.Spec.Provisioner, handle), o.record.Name) != o.record.Name {
		return reconcile.ErrStale // the cache will show whose it is, or that it is free
	}
	others, err := r.holders(ctx, o.record, handle)
	if err == nil && len(others) > 0 {
		err = refuse("the snapshot handle %q is %w by %s", handle, errInUse, others[0])
	}
	if err != nil {
		r.handles.Release(o.record.Name)
	}
	return err
}

// plan evaluates the definition of the snapshot.
func (r *Reconciler) plan(ctx context.Context, o observation) (*podplan.SnapshotPlan, error) {
	return r.requestOf(o).Create(ctx, o.provisioner.Spec.SnapshotCreation, o.record.Status.Handle)
}

// beginning records a new attempt. Plan is nil if it fails before a pod is recorded.
func (r *Reconciler) beginning(o observation, plan *podplan.SnapshotPlan) change {
	return func(status *pavv1.PavSnapshotStatus) {
		if status.Phase == "" {
			status.Phase, status.RecordUID = pavv1.SnapshotPending, o.record.UID
		}
		status.Attempt++
		status.LastHandledRetry = o.record.Annotations[pavv1.RetryAnnotation]
		status.ProvisionerGeneration = o.provisioner.Generation
		status.SyncRequestTime = nil
		if !o.pending() {
			return // what is cut stays where it is, also if its volume is gone
		}
		if reading.WhileStaged(o.provisioner) == pavv1.SnapshotSync {
			status.SyncRequestTime = new(o.reading().NextSync(r.Now()))
		}
		status.AccessibleTopology, _ = o.reachable()
		status.DependsOnVolume = o.provisioner.Spec.SnapshotCreation.DependsOnVolume
		if plan != nil {
			status.PlannedHandle = plan.Handle
		}
	}
}

// reachable returns the nodes from which the storage of the volume can be reached, and so that of the snapshot; and whether PaV can tell.
// Of a volume that PaV has not provisioned, the PersistentVolume must be as the API server has it.
func (o observation) reachable() ([]pavv1.TopologyLabels, bool) {
	switch {
	case o.volume != nil:
		return o.volume.Status.AccessibleTopology, true
	case o.pv != nil:
		return topology.OfAffinity(o.pv.Spec.NodeAffinity)
	default:
		return nil, true
	}
}

// takeOver records a snapshot that exists: an administrator wrote its VolumeSnapshotContent, or its record was lost.
func (r *Reconciler) takeOver(ctx context.Context, o observation, d rule.Decision) error {
	o, err := r.confirmed(ctx, o, d.Step) // the cache does not have where the volume is
	if err != nil {
		return err
	}
	earlier, err := r.earlier(ctx, o.record, o.existing())
	if err != nil {
		return err
	}
	return r.patchStatus(ctx, o.record, func(status *pavv1.PavSnapshotStatus) {
		status.RecordUID, status.Handle = o.record.UID, o.existing()
		status.AccessibleTopology, _ = o.reachable()
		if earlier != nil && o.volume == nil && o.pv == nil {
			status.AccessibleTopology, status.Size = earlier.Status.AccessibleTopology, earlier.Status.Size
		}
		if setReady(o.record, status); o.isTakenOverCut() {
			status.Phase = pavv1.SnapshotCut
			setCondition(o.record, status, pavv1.SnapshotCreated, "Processing", "the snapshot is cut, and a pod is to process it once more")
		}
		if shown := o.content.Status; shown != nil {
			if shown.RestoreSize != nil {
				status.Size = resource.NewQuantity(*shown.RestoreSize, resource.BinarySI)
			}
			if shown.CreationTime != nil {
				status.CreationTime = new(metav1.NewMicroTime(time.Unix(0, *shown.CreationTime)))
			}
		}
		if status.CreationTime == nil {
			status.CreationTime = new(metav1.NewMicroTime(r.Now())) // as csi-snapshotter says of a driver that cannot list snapshots
		}
	})
}

// recordCut records the handle and size of a snapshot that is cut. If they are invalid, the creation is reverted; if another object has
// the handle, it is not, as that would delete the other snapshot.
func (r *Reconciler) recordCut(ctx context.Context, o observation, _ rule.Decision) error {
	pod := o.pod()
	outcome, err := r.outcome(ctx, o, pod)
	if podplan.IsRefusal(err) {
		return r.failCreation(ctx, o, outputInvalid(pod, err), nothing, true)
	}
	if err != nil {
		return err
	}
	if err := r.reserve(ctx, o, outcome.Handle); errors.Is(err, errInUse) {
		failure := outputInvalid(pod, err)
		failure.Reason = pavv1.FailureHandleInUse
		return r.failCreation(ctx, o, failure, nothing, false)
	} else if err != nil {
		return err
	}
	size := resource.NewQuantity(outcome.Size, resource.BinarySI)
	if outcome.Size == 0 && o.pv != nil {
		size = new(o.pv.Spec.Capacity[corev1.ResourceStorage]) // it has no more data than the volume
		if o.volume != nil && o.volume.Status.LargestCapacity() != nil {
			size = o.volume.Status.LargestCapacity()
		}
	}
	if err := r.patchStatus(ctx, o.record, func(status *pavv1.PavSnapshotStatus) {
		status.Handle, status.Size, status.SyncRequestTime = outcome.Handle, size, nil
		status.CreationTime = new(o.cutTime())
		if o.isUnprocessed() {
			status.Phase = pavv1.SnapshotCut
			setCondition(o.record, status, pavv1.SnapshotCreated, "Processing", fmt.Sprintf("the snapshot is cut, and pod %s/%s processes it", pod.Namespace, pod.Name))
			return
		}
		setReady(o.record, status)
	}); err != nil {
		return err
	}
	ctrl.LoggerFrom(ctx).Info("cut a snapshot", observability.Duration, r.since(o.record.CreationTimestamp))
	return nil
}

// outcome returns what the pod has made. The error is a podplan.Error if it is no snapshot of the volume, or invalid.
func (r *Reconciler) outcome(ctx context.Context, o observation, pod *corev1.Pod) (podplan.SnapshotOutcome, error) {
	if err := r.checkOwner(ctx, o); err != nil {
		return podplan.SnapshotOutcome{}, err
	}
	result, err := workflow.ResultOf(pod)
	if err != nil {
		return podplan.SnapshotOutcome{}, &podplan.Error{Err: err}
	}
	return podplan.OutcomeOf(o.record, result)
}

// checkOwner asks the API server, after a pod has read the volume, whether it was the claim's all the time. If not, the error is a
// podplan.Error: the pod may have captured the data of another tenant.
func (r *Reconciler) checkOwner(ctx context.Context, o observation) error {
	if o.record.Spec.ClaimUID == "" {
		return nil
	}
	live := o
	var err error
	live.pv, err = reconcile.Optional(ctx, r.Live, client.ObjectKey{Name: o.record.Spec.VolumeName}, &corev1.PersistentVolume{})
	if err == nil && live.givenAway() {
		err = refuse("PersistentVolume %q was given to another claim while it was read", o.record.Spec.VolumeName)
	}
	return err
}

func outputInvalid(pod *corev1.Pod, err error) *pavv1.WorkflowFailure {
	failure := workflow.FailureWithoutPod(pavv1.WorkflowSnapshotCreation, err)
	failure.Reason, failure.PodNamespace, failure.PodName = pavv1.FailureOutputInvalid, pod.Namespace, pod.Name
	return failure
}

// markReady records that the pod of a snapshot that was cut has completed.
func (r *Reconciler) markReady(ctx context.Context, o observation, _ rule.Decision) error {
	return r.patchStatus(ctx, o.record, func(status *pavv1.PavSnapshotStatus) { setReady(o.record, status) })
}

// setReady records that the snapshot can be used.
func setReady(record *pavv1.PavSnapshot, status *pavv1.PavSnapshotStatus) {
	status.Phase, status.Step, status.Pod, status.Failure, status.PlannedHandle = pavv1.SnapshotReady, "", nil, nil, ""
	meta.RemoveStatusCondition(&status.Conditions, pavv1.SnapshotCreated) // so that the new condition has the time of this write
	meta.SetStatusCondition(&status.Conditions, metav1.Condition{Type: pavv1.SnapshotCreated, Status: metav1.ConditionTrue,
		Reason: "Created", Message: "the snapshot can be used", ObservedGeneration: record.Generation})
}

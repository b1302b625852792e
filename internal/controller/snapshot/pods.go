package snapshot

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/attempt"
	"github.com/albertofaria/pav/internal/controller/rule"
	"github.com/albertofaria/pav/internal/podplan"
	"github.com/albertofaria/pav/internal/reconcile"
	"github.com/albertofaria/pav/internal/workflow"
)

// intent is a pod that is about to be run.
type intent struct {
	step pavv1.SnapshotStep

	// pod is the evaluated template.
	pod map[string]any

	// change is recorded together with the pod.
	change change
}

// intend records a pod. Before it is created, the VolumeSnapshotContent says that something may run.
func (r *Reconciler) intend(ctx context.Context, o observation, i intent) error {
	number := o.record.Status.Pods + 1
	pod, err := r.build(o, i.step, i.pod, number)
	if err != nil {
		return r.refuse(ctx, o, workflows[i.step], i.change, err)
	}
	return r.runs.Intend(ctx, o.record, pod, func(record *pavv1.PavSnapshot) {
		i.change(&record.Status)
		record.Status.Step = i.step
	})
}

// build returns the pod of a step with its PodPolicy. Its name is unique among the pods of the snapshot.
func (r *Reconciler) build(o observation, step pavv1.SnapshotStep, rendered map[string]any, number int32) (*corev1.Pod, error) {
	placement := podplan.Placement{Within: podplan.SnapshotWithinReach(o.record), Avoid: r.slots.Avoid(o.record.Spec.Provisioner, r.Now())}
	return podplan.SnapshotPod(o.record, workflows[step], rendered, placement, r.PodDefaults, number)
}

// owner returns the owner of a snapshot's slot.
func owner(record *pavv1.PavSnapshot) attempt.Owner {
	return attempt.Owner{Name: record.Name, Provisioner: record.Spec.Provisioner, Namespace: record.Spec.SnapshotRef.Namespace}
}

// requestOf returns the request that the current definition serves.
func (r *Reconciler) requestOf(o observation) podplan.SnapshotRequest {
	return podplan.SnapshotRequest{
		Provisioner: o.provisioner.UID, Generation: o.provisioner.Generation, Record: o.record, Templates: r.Templates,
		GetPVC: reconcile.GetPVC(r.Live), Allowed: o.provisioner.Spec.AllowedClaimNamespaces,
		Foreign: func(_ context.Context, name, namespace string, allowed bool) {
			r.tellLookup(o.record, name, namespace, allowed)
		},
	}
}

// runPod creates the recorded pod when it has a slot, or after an agent was killed before that.
func (r *Reconciler) runPod(ctx context.Context, o observation, d rule.Decision) error {
	if !r.slots.Acquire(owner(o.record)) {
		if d.Message == "" {
			return nil // its slot brings the next pass
		}
		return r.wait(ctx, o, d)
	}
	pod, err := r.preparePod(ctx, o, d)
	if err != nil || pod == nil {
		r.slots.Release(o.record.Name) // other pods may be created meanwhile
		return err
	}
	return r.start(ctx, o, pod)
}

// preparePod builds the recorded pod again. It is nil if that is not to run any more, which is recorded.
func (r *Reconciler) preparePod(ctx context.Context, o observation, d rule.Decision) (*corev1.Pod, error) {
	if err := r.checkNotCreated(ctx, o); err != nil {
		return nil, err
	}
	o, err := r.confirmed(ctx, o, d.Step)
	if err != nil {
		return nil, err
	}
	step, kind := o.record.Status.Step, workflows[o.record.Status.Step]
	var rendered map[string]any
	if kind == pavv1.WorkflowSnapshotCreation {
		if unready, err := r.isUnready(ctx, o); err != nil {
			return nil, err
		} else if unready {
			return nil, r.dropPod(ctx, o, d)
		}
		var plan *podplan.SnapshotPlan
		if plan, err = r.plan(ctx, o); err == nil {
			rendered, err = plan.Pod, checkHandle(o.record, plan)
		}
	} else if rendered, err = r.requestOf(o).Delete(ctx, o.provisioner.Spec.SnapshotDeletion, o.record.Status.Handle); err == nil && rendered == nil {
		return nil, r.finish(ctx, o)
	}
	var pod *corev1.Pod
	if err == nil {
		pod, err = r.build(o, step, rendered, o.record.Status.Pods)
	}
	if err != nil {
		return nil, r.refuse(ctx, o, kind, nothing, err)
	}
	pod.Namespace = o.record.Status.Pod.Namespace
	return pod, nil
}

// checkHandle checks that the definition still has the handle that is recorded: one that differs at each evaluation names no snapshot.
func checkHandle(record *pavv1.PavSnapshot, plan *podplan.SnapshotPlan) error {
	if record.Status.Handle != "" || plan.Handle == record.Status.PlannedHandle {
		return nil
	}
	return refuse("spec.snapshotCreation.handle: is %q now, and was %q when the attempt began", plan.Handle, record.Status.PlannedHandle)
}

// isUnready reports whether the recorded creation pod cannot run as it was recorded. The observation has what the API server has.
func (r *Reconciler) isUnready(ctx context.Context, o observation) (bool, error) {
	if !o.pending() {
		return false, nil
	}
	return r.readers().IsUnready(ctx, o.reading())
}

// start creates a recorded pod that has a slot, and records its UID.
func (r *Reconciler) start(ctx context.Context, o observation, pod *corev1.Pod) error {
	var last func(context.Context) error
	if workflows[o.record.Status.Step] == pavv1.WorkflowSnapshotDeletion {
		last = func(ctx context.Context) error { return r.checkAlone(ctx, o.record) }
	}
	err := r.runs.Create(ctx, o.record, pod, o.generation(), last)
	switch {
	case errors.Is(err, workflow.ErrUnjudged):
		return r.unjudged(ctx, o, err)
	case podplan.IsRefusal(err):
		return r.refuse(ctx, o, workflows[o.record.Status.Step], nothing, err)
	default:
		return err
	}
}

// generation returns that of the definition; 0 if there is none.
func (o observation) generation() int64 {
	if o.provisioner == nil {
		return 0
	}
	return o.provisioner.Generation
}

// recordPod records the UID of the pod.
func (r *Reconciler) recordPod(ctx context.Context, o observation, _ rule.Decision) error {
	return r.runs.Created(ctx, o.record, o.pod(), o.generation())
}

// stopPod deletes the recorded pod.
func (r *Reconciler) stopPod(ctx context.Context, o observation, d rule.Decision) error {
	if err := r.confirm(ctx, o, d.Step); err != nil {
		return err
	}
	if err := r.Runner.StopAsSeen(ctx, o.pod()); err != nil {
		return err
	}
	if d.Message != "" {
		r.announce(o, d)
	}
	return nil
}

// dropPod removes a pod from the record that was never created, and ends its attempt.
func (r *Reconciler) dropPod(ctx context.Context, o observation, d rule.Decision) error {
	if err := r.confirm(ctx, o, d.Step); err != nil {
		return err
	}
	if err := r.checkNotCreated(ctx, o); err != nil {
		return err
	}
	return r.patchStatus(ctx, o.record, func(status *pavv1.PavSnapshotStatus) {
		status.Step, status.Pod, status.PlannedHandle, status.SyncRequestTime = "", nil, "", nil
	})
}

// all returns all records.
func (r *Reconciler) all(ctx context.Context) ([]*pavv1.PavSnapshot, error) {
	records := &pavv1.PavSnapshotList{}
	if err := r.Client.List(ctx, records); err != nil {
		return nil, fmt.Errorf("looking up PavSnapshots: %w", err)
	}
	all := make([]*pavv1.PavSnapshot, len(records.Items))
	for i := range records.Items {
		all[i] = &records.Items[i]
	}
	return all, nil
}

// unjudgedDelay is how long a pod waits that the webhook could not check.
const unjudgedDelay = 2 * time.Second

// unjudged reports that a pod cannot be created until the webhook answers, and tries again soon.
func (r *Reconciler) unjudged(ctx context.Context, o observation, reason error) error {
	ctrl.LoggerFrom(ctx).Error(reason, "a pod waits for the webhook")
	pod := o.record.Status.Pod
	d := rule.Waiting(conditionOf(workflows[o.record.Status.Step]), "PodNotAdmitted",
		fmt.Sprintf("pod %s/%s has rights on its node, and waits until PaV's webhook admits it; the webhook does not answer", pod.Namespace, pod.Name), true)
	if err := r.wait(ctx, o, d); err != nil {
		return err
	}
	return &reconcile.Later{After: unjudgedDelay}
}

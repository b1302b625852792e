package stage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/mount"
	"github.com/albertofaria/pav/internal/node/pavdir"
	"github.com/albertofaria/pav/internal/observability"
	"github.com/albertofaria/pav/internal/podplan"
	"github.com/albertofaria/pav/internal/template"
	"github.com/albertofaria/pav/internal/workflow"
)

// steps returns the methods that take each step.
func steps() map[step]func(*task, context.Context) error {
	return map[step]func(*task, context.Context) error{
		stepYield:          (*task).yield,
		stepOccupied:       (*task).occupied,
		stepInUse:          (*task).inUse,
		stepPVReplaced:     (*task).pvReplaced,
		stepRefuse:         (*task).refuse,
		stepSweep:          (*task).sweep,
		stepReport:         (*task).reportObstacle,
		stepRecord:         func(t *task, ctx context.Context) error { return t.record(ctx, 1) },
		stepBegin:          func(t *task, ctx context.Context) error { return t.begin(ctx, 1) },
		stepReplace:        (*task).replace,
		stepRunValidation:  (*task).runValidation,
		stepAdmit:          (*task).admit,
		stepReject:         (*task).reject,
		stepRunStaging:     (*task).runStaging,
		stepAttach:         (*task).attach,
		stepBlockOnClients: (*task).blockOnClients,
		stepOverMount:      (*task).overMount,
		stepConfirm:        (*task).confirm,
		stepLeave:          (*task).leave,
		stepFailStopped:    (*task).failStopped,
		stepFail:           (*task).fail,
		stepRevert:         (*task).revert,
		stepUnstageClients: (*task).unstageClients,
		stepUnpublish:      (*task).unpublishAll,
		stepDetach:         (*task).detach,
		stepStop:           (*task).stop,
		stepRunUnstaging:   (*task).runUnstaging,
		stepGiveUp:         (*task).giveUp,
		stepRetry:          (*task).retryUnstaging,
		stepRenew:          (*task).renew,
		stepClean:          (*task).clean,
		stepForget:         (*task).forget,

		stepGiveWay:         (*task).giveWay,
		stepNotHere:         func(t *task, ctx context.Context) error { return t.notHere(ctx, t.Volume) },
		stepNotNow:          (*task).notNow,
		stepRunExpansion:    (*task).runExpansion,
		stepRecordExpansion: (*task).recordExpansion,
		stepFailExpansion:   (*task).failExpansion,
		stepStopExpansion:   func(t *task, ctx context.Context) error { return t.runner.Stop(ctx, t.expansionPod) },
		stepEndExpansion:    (*task).endExpansion,
	}
}

// yield ends the call because a PavStage that is being deleted is in the way of a new one.
func (t *task) yield(context.Context) error {
	return fmt.Errorf("%w: PavStage %q is being deleted, and still has the finalizers %q", ErrBusy, t.stage.Name, t.stage.Finalizers)
}

// occupied ends the call because clients have a volume whose PavStage is gone.
func (t *task) occupied(context.Context) error {
	var targets []string
	for i := range t.published {
		targets = append(targets, t.published[i].Target)
	}
	return fmt.Errorf("%w: provisioner %q, handle %q: the PavStage was removed by force while pods of this node had the volume, at %q; delete these pods first",
		ErrBusy, t.Driver, t.Handle, targets)
}

// refuse ends the call because the volume is staged with other parameters than the call has.
func (t *task) refuse(context.Context) error {
	spec := &t.stage.Spec
	return fmt.Errorf("%w: volume %q is staged with the mode %s, read-only %t", ErrMismatch, spec.VolumeName, spec.VolumeMode, spec.ReadOnly)
}

// sweep removes what a deleted PavStage has left on the node, so that it is not taken for that of a new one: for
// example, after a node that was given up has come back.
func (t *task) sweep(ctx context.Context) error {
	for _, name := range t.namesOf(t.Subject) {
		if err := t.dirs.Remove(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// replace replaces the record of a failed attempt by a new PavStage.
func (t *task) replace(ctx context.Context) error {
	attempt := t.stage.Status.Attempt
	if err := t.client.Delete(ctx, t.stage, client.Preconditions{UID: &t.stage.UID}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting PavStage %q of a failed attempt: %w", t.stage.Name, err)
	}
	return t.record(ctx, attempt+1)
}

// runStaging records the staging pod, then creates it.
func (t *task) runStaging(ctx context.Context) error {
	first := t.stage.Status.StagingPod == nil
	pod, grown, err := t.buildStaging(ctx)
	if err == nil {
		err = t.runner.CheckNamespace(ctx, pod.Namespace)
	}
	if isDefinition(err) {
		return t.failWithoutPod(ctx, pavv1.WorkflowStaging, err, first)
	}
	if err != nil {
		return err
	}
	_, judged := pod.Annotations[pavv1.AdmitAnnotation]
	if judged && t.ahead {
		return fmt.Errorf("%w: pod %s/%s is only admitted for a volume that a pod on the node uses", ErrPending, pod.Namespace, pod.Name)
	}
	account, err := t.bucketAccount(ctx)
	if err != nil {
		return err
	}
	if err := t.makeDirectory(ctx, first); err != nil {
		return err
	}
	if err := t.update(ctx, func(status *pavv1.PavStageStatus) {
		status.Phase = pavv1.StageStaging
		if first || status.BucketAccount == nil { // the pod that is recorded may have the credentials of an earlier account
			status.BucketAccount = account
		}
		t.noteBoot(status)
		t.handleRetry(status)
		status.StagingPod = &pavv1.PodReference{Namespace: pod.Namespace, Name: pod.Name, Judged: judged && (first || status.StagingPod.Judged)}
		if first || grown == nil { // an earlier definition may have made the pod that is recorded
			status.StagedCapacity = grown
		}
		t.setReady(t.stage, metav1.ConditionFalse, "Staging", fmt.Sprintf("pod %s/%s is staging the volume", pod.Namespace, pod.Name))
	}); err != nil {
		return err
	}
	err = t.runner.Create(ctx, pod)
	t.written = err == nil
	return t.created(ctx, pavv1.WorkflowStaging, err, first)
}

// makeDirectory creates /pav for a pod. It is empty for the first pod of its kind in an attempt: files of an earlier
// pod, such as /pav/ready, must not be taken for this pod's.
func (t *task) makeDirectory(ctx context.Context, first bool) error {
	if err := t.keepRecord(ctx, t.stage); err != nil {
		return err
	}
	if first {
		return t.dirs.Reset(ctx, t.stage.Name)
	}
	return t.dirs.Prepare(ctx, t.stage.Name)
}

// buildStaging returns the staging pod, and the capacity that it makes available if the definition says so.
func (t *task) buildStaging(ctx context.Context) (*corev1.Pod, *resource.Quantity, error) {
	provisioner, objects, bound, err := t.current(ctx)
	if err != nil {
		return nil, nil, err
	}
	// The PavStage exists by now, and protects the volume from here on; the deletion of the volume may have begun
	// before that. A volume that is being restaged was protected all the time.
	if !bound && !t.stage.Status.Restaging {
		return nil, nil, refused("persistent volume %q and claim %s/%s are no longer bound to each other",
			t.stage.Spec.VolumeName, t.stage.Spec.ClaimRef.Namespace, t.stage.Spec.ClaimRef.Name)
	}
	pod, err := t.definition(provisioner, objects.Volume).Staging(ctx, t.stage, objects)
	if err != nil || !provisioner.Spec.VolumeStaging.GrowsVolumes || t.stage.Spec.ReadOnly {
		return pod, nil, refusal(err)
	}
	grown, err := resource.ParseQuantity(podplan.TextAt(objects.Volume, "spec", "capacity", "storage"))
	if err != nil {
		return nil, nil, fmt.Errorf("reading the capacity of persistent volume %q: %w", t.stage.Spec.VolumeName, err)
	}
	return pod, &grown, nil
}

// refusal turns an error about a definition into an ErrRefused.
func refusal(err error) error {
	if wrong, ok := errors.AsType[*podplan.Error](err); ok {
		return fmt.Errorf("%w: %w", ErrRefused, wrong)
	}
	return err
}

// liveProvisioner reads the provisioner from the API server after the PavStage was written. If the provisioner is
// gone by then, its controller has not seen the PavStage, and no further call would remove it.
func (t *task) liveProvisioner(ctx context.Context) (*pavv1.PavProvisioner, error) {
	provisioner := &pavv1.PavProvisioner{}
	err := t.client.Get(ctx, client.ObjectKey{Name: t.stage.Spec.Provisioner}, provisioner)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("getting PavProvisioner %q: %w", t.stage.Spec.Provisioner, err)
	}
	if err != nil || provisioner.DeletionTimestamp != nil && !slices.Contains(provisioner.Finalizers, pavv1.ProvisionerFinalizer) {
		return nil, refused("PavProvisioner %q does not exist", t.stage.Spec.Provisioner)
	}
	return provisioner, nil
}

// isDefinition reports whether the author of the definition must fix err, so that a retry alone does not help.
func isDefinition(err error) bool {
	var templateError *template.Error
	return errors.As(err, &templateError) || errors.Is(err, workflow.ErrRefused) || errors.Is(err, ErrRefused)
}

// attach makes the volume at /pav/volume available to clients.
func (t *task) attach(ctx context.Context) error {
	err := t.attachVolume(ctx)
	if errors.Is(err, pavdir.ErrNoVolume) {
		return t.failPod(ctx, pavv1.FailureOutputInvalid, err.Error())
	}
	return err
}

func (t *task) attachVolume(ctx context.Context) error {
	volume := &corev1.PersistentVolume{}
	if err := json.Unmarshal(t.stage.Spec.Volume.Raw, volume); err != nil {
		return fmt.Errorf("reading the persistent volume of PavStage %q: %w", t.stage.Name, err)
	}
	return t.dirs.Attach(ctx, t.stage.Name, pavdir.Attachment{
		Mode:     mount.VolumeMode(t.stage.Spec.VolumeMode),
		ReadOnly: t.stage.Spec.ReadOnly,
		Capacity: volume.Spec.Capacity.Storage().Value(),
	})
}

// verify reports whether the attached volume is still the one at /pav/volume. If it is not, the staging pod has
// unmounted it, as a daemon does when it ends, or has mounted another one: then the pod has failed.
func (t *task) verify(ctx context.Context) (bool, error) {
	err := t.attachVolume(ctx) // If it is attached, this does nothing.
	if !errors.Is(err, mount.ErrOccupied) && !errors.Is(err, pavdir.ErrNoVolume) {
		return err == nil, err
	}
	words := ExchangedMessage
	if errors.Is(err, pavdir.ErrNoVolume) {
		words = fmt.Sprintf("/pav/volume has changed after the staging pod created /pav/ready%s: %v", tooEarly, err)
	}
	t.settling.forget(t.stage.Name)
	if err := t.dirs.Detach(ctx, t.stage.Name); err != nil {
		return false, err
	}
	return false, t.failPod(ctx, pavv1.FailureOutputInvalid, words)
}

// blockOnClients ends the call because the volume was unmounted while clients have it. They may still write to it, so
// it is not unstaged, and nothing else is mounted in its place.
func (t *task) blockOnClients(context.Context) error {
	var targets []string
	for i := range t.published {
		targets = append(targets, t.published[i].Target)
	}
	return fmt.Errorf("%w: provisioner %q: volume %q is not mounted for pods any more: it was unmounted by hand; it is staged again when the pods that have it are gone: delete those of %q",
		ErrBusy, t.Driver, t.stage.Spec.VolumeName, targets)
}

// confirm records that the volume is available, or claimed.
func (t *task) confirm(ctx context.Context) error {
	if t.attached != "" && t.stage.Status.Phase != pavv1.StageStaged {
		if attached, err := t.verify(ctx); err != nil || !attached {
			return err
		}
	}
	return t.available(ctx)
}

func (t *task) available(ctx context.Context) error {
	isNew := t.stage.Status.Phase != pavv1.StageStaged
	message := "the volume is available on the node"
	if t.stage.Spec.Scope == pavv1.StagingScopePod && t.stage.Spec.Client == nil {
		message = "the volume is this node's; each client pod has a stage of its own"
	}
	if err := t.update(ctx, func(status *pavv1.PavStageStatus) {
		status.Phase = pavv1.StageStaged
		t.noteSeen(status)
		if status.Restaging {
			status.Restaging, status.StagingFailure = false, nil
			t.setCondition(t.stage, pavv1.StageDegraded, metav1.ConditionFalse, "Restaged", "the volume was staged again")
		}
		t.setReady(t.stage, metav1.ConditionTrue, "Staged", message)
	}); err != nil {
		return err
	}
	t.written = true
	t.attempts.forget(t.stage.Name)
	t.settling.forget(t.stage.Name)
	if isNew && workflow.Judge(t.stagingPod) == workflow.Succeeded {
		t.reportError(ctx)
	}
	// A pod that still runs keeps its finalizer: unstaging must wait until its containers have ended. If the pod has
	// failed, the monitor reports that first.
	if workflow.Observe(t.stagingPod) != workflow.Succeeded {
		return nil
	}
	return t.runner.Release(ctx, t.stagingPod)
}

// reportError reports a staging pod that wrote a text to /pav/error, although it succeeded.
func (t *task) reportError(ctx context.Context) {
	if text := strings.TrimSpace(t.podError(ctx, t.stagingPod)); text != "" {
		t.eventf(ctx, corev1.EventTypeWarning, "SucceededWithError", "staging on node %s: provisioner %q: %s", t.node, t.stage.Spec.Provisioner, workflow.UnexpectedError(t.stagingPod, text))
	}
}

// fail records the failure of the staging pod. From here on, staging is reverted.
func (t *task) fail(ctx context.Context) error {
	if t.stagingPod == nil {
		ref := t.stage.Status.StagingPod
		return t.recordFailure(ctx, &pavv1.WorkflowFailure{
			Workflow: pavv1.WorkflowStaging, Reason: pavv1.FailurePodRemoved, PodNamespace: ref.Namespace, PodName: ref.Name,
			Message: fmt.Sprintf("pod %s/%s was removed by force while it was staging the volume", ref.Namespace, ref.Name),
		}, false)
	}
	return t.failPod(ctx, pavv1.FailurePodFailed, t.podError(ctx, t.stagingPod))
}

// failPod records that the staging pod, if it still exists, has failed for a reason.
func (t *task) failPod(ctx context.Context, reason pavv1.FailureReason, words string) error {
	failure := &pavv1.WorkflowFailure{Workflow: pavv1.WorkflowStaging, Message: words}
	if t.stagingPod != nil {
		failure = workflow.Failure(pavv1.WorkflowStaging, t.stagingPod, words)
	}
	failure.Reason = reason
	return t.recordFailure(ctx, failure, false)
}

// failWithoutPod records that the pod of a workflow could not be created. If it would have been the first pod, no
// unstaging pod has to revert anything.
func (t *task) failWithoutPod(ctx context.Context, kind string, reason error, first bool) error {
	if t.ahead {
		return t.leaveToCall(ctx, kind, reason, first)
	}
	return t.recordFailure(ctx, workflow.FailureWithoutPod(kind, reason), first)
}

func (t *task) recordFailure(ctx context.Context, failure *pavv1.WorkflowFailure, nothingRan bool) error {
	failure.Message = observability.Clip(failure.Message, observability.MaxCondition)
	again := t.stage.Status.Restaging
	if again {
		workflow.Date(failure, t.attempts.failures(t.stage.Name)+1, t.clusterTime())
	} else {
		failure.Time = metav1.NewTime(t.clusterTime()) // kubelet decides when to retry
	}
	what, reason := staging, "StagingFailed"
	if failure.Workflow == pavv1.WorkflowValidation {
		what, reason = validating, "ValidationFailed"
	}
	if err := t.update(ctx, func(status *pavv1.PavStageStatus) {
		status.Phase = pavv1.StageUnstaging
		status.StagingFailure = failure
		t.noteSeen(status)
		t.handleRetry(status)
		forgetPod(status, failure.Workflow, nothingRan)
		t.setReady(t.stage, metav1.ConditionFalse, reason, failure.Message)
	}); err != nil {
		return err
	}
	if again {
		t.attempts.change(t.stage.Name, func(known *attemptProblems) { known.failures++ })
		what += " again"
	}
	t.reportFailure(ctx, "FailedMount", what+" on node "+t.node+" failed", failure)
	return nil
}

// podError returns the text that a pod, which has ended, wrote to /pav/error.
func (t *task) podError(ctx context.Context, pod *corev1.Pod) string {
	return t.dirs.PodError(ctx, t.stage.Name, began(pod))
}

// began returns when a pod began at the latest, so that no file that it wrote is older.
func began(pod *corev1.Pod) time.Time {
	if pod.Status.StartTime != nil {
		return pod.Status.StartTime.Time // by the clock of the node
	}
	return pod.CreationTimestamp.Time
}

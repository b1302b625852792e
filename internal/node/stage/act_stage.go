package stage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
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

// steps returns the way to take each step that is something to do.
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
		stepReplace:        (*task).replace,
		stepRunValidation:  (*task).runValidation,
		stepAdmit:          (*task).admit,
		stepReject:         (*task).reject,
		stepRunStaging:     (*task).runStaging,
		stepAttach:         (*task).attach,
		stepBlockOnClients: (*task).blockOnClients,
		stepOverMount:      (*task).overMount,
		stepConfirm:        (*task).confirm,
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
	}
}

// yield ends the call where a PavStage that is on its way out is in the way of a new one.
func (t *task) yield(context.Context) error {
	return fmt.Errorf("%w: PavStage %q is being deleted, and is kept by finalizers %q", ErrBusy, t.stage.Name, t.stage.Finalizers)
}

// occupied ends the call where clients have a volume whose PavStage is gone.
func (t *task) occupied(context.Context) error {
	var targets []string
	for i := range t.published {
		targets = append(targets, t.published[i].Target)
	}
	return fmt.Errorf("%w: provisioner %q, handle %q: the PavStage was forced away while pods of this node had the volume, at %q; delete them first",
		ErrBusy, t.Driver, t.Handle, targets)
}

// refuse ends the call where the volume is staged in another way than is asked for.
func (t *task) refuse(context.Context) error {
	spec := &t.stage.Spec
	return fmt.Errorf("%w: volume %q is staged with the mode %s, read-only %t", ErrMismatch, spec.VolumeName, spec.VolumeMode, spec.ReadOnly)
}

// sweep removes what a PavStage that is gone has left on the node, so that nobody takes it for a new
// one's: for example, a volume whose node was given up, and came back.
func (t *task) sweep(ctx context.Context) error {
	for _, name := range t.namesOf(t.Subject) {
		if err := t.dirs.Remove(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// replace makes room for a new attempt where the record of a failed one is.
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
	pod, err := t.buildStaging(ctx)
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
	if err := t.makeDirectory(ctx, first); err != nil {
		return err
	}
	if err := t.update(ctx, func(status *pavv1.PavStageStatus) {
		status.Phase = pavv1.StageStaging
		t.noteBoot(status)
		t.handleRetry(status)
		status.StagingPod = &pavv1.PodReference{Namespace: pod.Namespace, Name: pod.Name, Judged: judged && (first || status.StagingPod.Judged)}
		t.setReady(t.stage, metav1.ConditionFalse, "Staging", fmt.Sprintf("pod %s/%s is staging the volume", pod.Namespace, pod.Name))
	}); err != nil {
		return err
	}
	return t.created(ctx, pavv1.WorkflowStaging, t.runner.Create(ctx, pod), first)
}

// makeDirectory makes /pav for a pod. For the first one of its kind in an attempt it is empty: what a pod
// before it has left, such as /pav/ready, must not be taken for this one's.
func (t *task) makeDirectory(ctx context.Context, first bool) error {
	if err := t.keepRecord(ctx, t.stage); err != nil {
		return err
	}
	if first {
		return t.dirs.Reset(ctx, t.stage.Name)
	}
	return t.dirs.Prepare(ctx, t.stage.Name)
}

func (t *task) buildStaging(ctx context.Context) (*corev1.Pod, error) {
	provisioner, err := t.liveProvisioner(ctx)
	if err != nil {
		return nil, err
	}
	objects, bound, err := t.objects(ctx)
	if err != nil {
		return nil, err
	}
	// The PavStage, which is in the ledger by now, holds the volume from here on; its deletion may have begun
	// before that. A volume that is staged anew under its clients was held all the time.
	if !bound && !t.stage.Status.Restaging {
		return nil, refused("persistent volume %q and claim %s/%s are no longer bound to each other",
			t.stage.Spec.VolumeName, t.stage.Spec.ClaimRef.Namespace, t.stage.Spec.ClaimRef.Name)
	}
	pod, err := t.definition(provisioner, objects.Volume).Staging(ctx, t.stage, objects)
	return pod, refusal(err)
}

// refusal makes an error about a definition an ErrRefused.
func refusal(err error) error {
	if wrong, ok := errors.AsType[*podplan.Error](err); ok {
		return fmt.Errorf("%w: %w", ErrRefused, wrong)
	}
	return err
}

// liveProvisioner returns the provisioner as the API server has it, after the PavStage was written: one
// that is let go now has not seen the PavStage, and nobody would call again to take that away.
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

// isDefinition reports whether err is for the author of a definition to fix, so that trying again alone does not help.
func isDefinition(err error) bool {
	var templateError *template.Error
	return errors.As(err, &templateError) || errors.Is(err, workflow.ErrRefused) || errors.Is(err, ErrRefused)
}

// attach makes what the staging pod left at /pav/volume available to clients.
func (t *task) attach(ctx context.Context) error {
	err := t.attachVolume(ctx)
	if errors.Is(err, pavdir.ErrNoVolume) {
		return t.failPod(ctx, t.stagingPod, err.Error())
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

// verify reports whether what is attached is still what is at /pav/volume. If not, the staging pod has taken
// it away meanwhile, as a daemon does that ends, or put another in its place: that is a failure of the pod.
func (t *task) verify(ctx context.Context) (bool, error) {
	err := t.attachVolume(ctx) // Attaching what is attached does nothing.
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
	return false, t.failPod(ctx, t.stagingPod, words)
}

// blockOnClients ends the call where somebody has unmounted the volume while clients have it. What they have may
// still be written to, so it is neither unstaged under them, nor is anything else mounted in its place.
func (t *task) blockOnClients(context.Context) error {
	var targets []string
	for i := range t.published {
		targets = append(targets, t.published[i].Target)
	}
	return fmt.Errorf("%w: provisioner %q: volume %q is not mounted for pods any more: somebody has unmounted it; it is staged anew when the pods that have it are gone: delete those of %q",
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
	message := "the volume is available on the node"
	if t.stage.Spec.Scope == pavv1.StagingScopePod && t.stage.Spec.Client == nil {
		message = "the volume is this node's; each client pod has a stage of its own"
	}
	if err := t.update(ctx, func(status *pavv1.PavStageStatus) {
		status.Phase = pavv1.StageStaged
		t.noteSeen(status)
		if status.Restaging {
			status.Restaging, status.StagingFailure = false, nil
			t.setCondition(t.stage, pavv1.StageDegraded, metav1.ConditionFalse, "Restaged", "the volume was staged anew")
		}
		t.setReady(t.stage, metav1.ConditionTrue, "Staged", message)
	}); err != nil {
		return err
	}
	t.attempts.forget(t.stage.Name)
	t.settling.forget(t.stage.Name)
	// One that goes on running keeps its finalizer: unstaging must not take it for ended before its containers
	// are. That of one that has failed is for the monitor to tell first.
	if workflow.Observe(t.stagingPod) != workflow.Succeeded {
		return nil
	}
	return t.runner.Release(ctx, t.stagingPod)
}

// fail records the failure of the staging pod; from here on, what it did is reverted.
func (t *task) fail(ctx context.Context) error {
	if t.stagingPod == nil {
		ref := t.stage.Status.StagingPod
		return t.recordFailure(ctx, &pavv1.WorkflowFailure{
			Workflow: pavv1.WorkflowStaging, PodNamespace: ref.Namespace, PodName: ref.Name,
			Message: fmt.Sprintf("pod %s/%s was removed by force while it was staging the volume", ref.Namespace, ref.Name),
		}, false)
	}
	return t.failPod(ctx, t.stagingPod, t.podError(ctx, t.stagingPod))
}

func (t *task) failPod(ctx context.Context, pod *corev1.Pod, words string) error {
	failure := &pavv1.WorkflowFailure{Workflow: pavv1.WorkflowStaging, Message: words}
	if pod != nil {
		failure = workflow.Failure(pavv1.WorkflowStaging, pod, words)
	}
	return t.recordFailure(ctx, failure, false)
}

// failWithoutPod records that no pod of the workflow could be made. If it would have been the first, nothing is
// to be reverted by an unstaging pod.
func (t *task) failWithoutPod(ctx context.Context, kind string, reason error, first bool) error {
	return t.recordFailure(ctx, &pavv1.WorkflowFailure{Workflow: kind, Message: reason.Error()}, first)
}

func (t *task) recordFailure(ctx context.Context, failure *pavv1.WorkflowFailure, nothingRan bool) error {
	failure.Message, failure.Time = observability.Clip(failure.Message, observability.MaxCondition), metav1.NewTime(t.clusterTime())
	what, reason := staging, "StagingFailed"
	if failure.Workflow == pavv1.WorkflowValidation {
		what, reason = validating, "ValidationFailed"
	}
	again := t.stage.Status.Restaging
	if err := t.update(ctx, func(status *pavv1.PavStageStatus) {
		status.Phase = pavv1.StageUnstaging
		status.StagingFailure = failure
		t.noteSeen(status)
		t.handleRetry(status)
		if nothingRan && failure.Workflow == pavv1.WorkflowStaging {
			status.StagingPod = nil
		}
		if nothingRan && failure.Workflow == pavv1.WorkflowValidation {
			status.ValidationPod = nil
		}
		t.setReady(t.stage, metav1.ConditionFalse, reason, failure.Message)
	}); err != nil {
		return err
	}
	if again {
		t.attempts.change(t.stage.Name, func(known *attemptProblems) { known.failures++ })
		what += " anew"
	}
	t.eventf(ctx, corev1.EventTypeWarning, "FailedMount", "%s on node %s failed: provisioner %q: %s", what, t.node, t.stage.Spec.Provisioner, failure.Message)
	return nil
}

// podError returns what the pod, which has ended, wrote to /pav/error.
func (t *task) podError(ctx context.Context, pod *corev1.Pod) string {
	began := pod.CreationTimestamp
	if pod.Status.StartTime != nil {
		began = *pod.Status.StartTime // by the node's own clock
	}
	return t.dirs.PodError(ctx, t.stage.Name, began.Time)
}

package stage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/observability"
	"github.com/albertofaria/pav/internal/protocol"
	"github.com/albertofaria/pav/internal/workflow"
)

// Expand makes a capacity, in bytes, of a volume available on the node, where the volume stays staged. It may be repeated, and
// continues the work of an earlier call:
//
//  1. the node expansion pod is recorded in the PavStage, then created, with the /pav of the staging pod;
//  2. when it has succeeded, the capacity is recorded.
//
// With scope Pod, there is one for the PavStage of each client pod. It does nothing if the definition has no such pod. If the pod
// fails, the error is ErrExpansion or, if it says that another would fail, too, ErrInfeasible; kubelet decides when to repeat the
// call.
func (s *Stager) Expand(ctx context.Context, v Volume, capacity int64) error {
	of := Subject{Volume: v}
	stage, err := s.stageOf(ctx, of)
	if err != nil {
		return err
	}
	if stage == nil || holdsNothing(stage) {
		return s.notHere(ctx, v)
	}
	wanted, err := s.wantsExpansion(ctx, v.Driver)
	if err != nil || !wanted && stage.Status.ExpansionPod() == nil {
		return err
	}
	s.inflight.interrupt(ctx, v.key())
	release, err := s.Lock(of)
	if err != nil {
		return err
	}
	defer release()
	defer s.tell(s.namesOf(of)...)
	subjects, err := s.expandable(ctx, of)
	if err != nil {
		return err
	}
	var failures []error
	for _, of := range subjects {
		t := s.newTask(of, "")
		t.newCapacity = capacity
		failures = append(failures, t.run(ctx, expansionTable))
	}
	return errors.Join(failures...)
}

// wantsExpansion reports whether the current definition has a node expansion pod. Without its PavProvisioner, a volume is not
// expanded.
func (s *Stager) wantsExpansion(ctx context.Context, driver string) (bool, error) {
	provisioner := &pavv1.PavProvisioner{}
	if err := s.client.Get(ctx, client.ObjectKey{Name: driver}, provisioner); err != nil {
		return false, fmt.Errorf("getting PavProvisioner %q: %w", driver, err)
	}
	return provisioner.Spec.VolumeExpansion != nil && provisioner.Spec.VolumeExpansion.NodePodTemplate != nil, nil
}

// expandable returns the subject or, if its stage only reserves the volume for the node, those of its client pods that are not
// being unstaged.
func (s *Stager) expandable(ctx context.Context, of Subject) ([]Subject, error) {
	stage, err := s.stageOf(ctx, of)
	if err != nil {
		return nil, err
	}
	if stage == nil || stage.Spec.Scope != pavv1.StagingScopePod {
		return []Subject{of}, nil
	}
	targets, err := s.clientTargets(ctx, of.Volume)
	if err != nil {
		return nil, err
	}
	var clients []Subject
	for _, target := range targets {
		client := Subject{Volume: of.Volume, Target: target}
		if stage, err = s.stageOf(ctx, client); err != nil {
			return nil, err
		}
		// One that is made later is made of the volume as it is then; of one that is being unstaged, nobody needs the capacity.
		if stage != nil && !holdsNothing(stage) && stage.Status.Phase != pavv1.StageUnstaging {
			clients = append(clients, client)
		}
	}
	return clients, nil
}

// observeExpansion gathers whether a node expansion pod that the API server does not have may still run.
func (t *task) observeExpansion(ctx context.Context, o *observation) error {
	if t.newCapacity == 0 || !o.expansionIntended || o.expansionPod != workflow.Absent {
		return nil
	}
	users, err := t.dirs.Users(ctx, t.stage.Name)
	if err != nil {
		return err
	}
	o.otherHasPav = slices.ContainsFunc(users, func(path string) bool {
		return t.stagingPod == nil || !strings.Contains(path, "/"+string(t.stagingPod.UID)+"/")
	})
	return nil
}

// notHere returns why a volume cannot be expanded that has no PavStage: there is no such volume, or its PavStage was removed by
// force, or is not written yet.
func (s *Stager) notHere(ctx context.Context, v Volume) error {
	names, err := s.catalogue.VolumeNames(ctx, v.Driver, v.Handle)
	if err != nil {
		return err
	}
	kind := ErrNotHere
	if len(names) == 0 {
		kind = ErrUnknownVolume
	}
	return fmt.Errorf("%w: provisioner %q, handle %q", kind, v.Driver, v.Handle)
}

func (t *task) notNow(context.Context) error {
	return fmt.Errorf("%w: volume %q is not available on the node at the moment: its PavStage %q is in the phase %q",
		ErrBusy, t.stage.Spec.VolumeName, t.stage.Name, t.stage.Status.Phase)
}

// runExpansion records the node expansion pod, then creates it. One that was recorded is created with the name that it has there.
func (t *task) runExpansion(ctx context.Context) error {
	last := t.stage.Status.Expansion
	attempt := int32(1)
	if last != nil {
		attempt = last.Attempt
	}
	// A pod of another capacity may still come to be, and must not be taken for the next one.
	if last != nil && (t.stage.Status.ExpansionPod() == nil || last.Target.Value() != t.newCapacity) {
		attempt++
	}
	pod, err := t.buildExpansion(ctx, attempt)
	if err == nil && pod == nil {
		return t.setCapacity(ctx, t.newCapacity)
	}
	if err == nil {
		err = t.runner.CheckNamespace(ctx, pod.Namespace)
	}
	if err == nil {
		err = t.createExpansion(ctx, pod, attempt)
	}
	switch {
	case errors.Is(err, workflow.ErrUnjudged):
		return fmt.Errorf("%w: provisioner %q: expanding volume %q: %w", ErrPending, t.Driver, t.stage.Spec.VolumeName, err)
	case errors.Is(err, workflow.ErrForeign):
		return t.update(ctx, func(status *pavv1.PavStageStatus) { status.Expansion.Recorded = true }) // The next has another name.
	case isDefinition(err):
		return t.expansionFailed(ctx, attempt, workflow.FailureWithoutPod(pavv1.WorkflowNodeExpansion, err))
	default:
		return err
	}
}

func (t *task) buildExpansion(ctx context.Context, attempt int32) (*corev1.Pod, error) {
	provisioner, objects, _, err := t.current(ctx)
	if err != nil {
		return nil, err
	}
	pod, err := t.definition(provisioner, objects.Volume).NodeExpansion(ctx, t.stage, objects, attempt, t.newCapacity)
	return pod, refusal(err)
}

func (t *task) createExpansion(ctx context.Context, pod *corev1.Pod, attempt int32) error {
	if err := t.removeLast(ctx, pod.Name); err != nil {
		return err
	}
	if err := t.update(ctx, func(status *pavv1.PavStageStatus) {
		status.Expansion = &pavv1.StageExpansion{
			Target: *resource.NewQuantity(t.newCapacity, resource.BinarySI), Attempt: attempt,
			Pod:   &pavv1.PodReference{Namespace: pod.Namespace, Name: pod.Name},
			Began: new(metav1.NewMicroTime(t.now())), Failure: expansionFailure(status), // until this attempt has ended
		}
	}); err != nil {
		return err
	}
	return t.runner.Create(ctx, pod)
}

// removeLast deletes the pod of the last attempt, which was kept so that its logs can be read.
func (t *task) removeLast(ctx context.Context, next string) error {
	last := t.stage.Status.Expansion
	if last == nil || last.Pod == nil || last.Pod.Name == next {
		return nil
	}
	pod, err := t.runner.Get(ctx, last.Pod, t.stage.UID)
	if err != nil || pod == nil {
		return err
	}
	if err := t.runner.Release(ctx, pod); err != nil {
		return err
	}
	return t.runner.Stop(ctx, pod)
}

// recordExpansion records the capacity that the node expansion pod was created for, which may be another than that of the call.
func (t *task) recordExpansion(ctx context.Context) error {
	pod := t.expansionPod
	if err := t.setCapacity(ctx, t.stage.Status.Expansion.Target.Value()); err != nil {
		return err
	}
	if text := t.dirs.PodError(ctx, t.stage.Name, t.expansionBegan()); text != "" {
		t.eventf(ctx, corev1.EventTypeWarning, "SucceededWithError", "expanding on node %s: provisioner %q: %s", t.node, t.Driver, workflow.UnexpectedError(pod, text))
	}
	return t.runner.Release(ctx, pod)
}

// setCapacity records that the volume has a capacity on the node, in bytes. It never becomes less.
func (t *task) setCapacity(ctx context.Context, capacity int64) error {
	if err := t.update(ctx, func(status *pavv1.PavStageStatus) {
		if has := status.Capacity; has == nil || has.Value() < capacity {
			status.Capacity = resource.NewQuantity(capacity, resource.BinarySI)
		}
		if status.Expansion != nil {
			status.Expansion.Recorded, status.Expansion.Failure = true, nil
		}
	}); err != nil {
		return err
	}
	t.log(ctx, "expanded a volume on the node", "capacity", t.stage.Status.Capacity.String())
	return nil
}

// failExpansion records that the node expansion pod has failed. The volume stays staged.
func (t *task) failExpansion(ctx context.Context) error {
	pod := t.expansionPod
	words := t.dirs.PodError(ctx, t.stage.Name, t.expansionBegan())
	promise, found := t.dirs.Infeasible(ctx, t.stage.Name, t.expansionBegan())
	failure := workflow.Failure(pavv1.WorkflowNodeExpansion, pod, cmp.Or(words, promise))
	if failure.Reason = pavv1.FailurePodFailed; found && workflow.FailedByItself(pod) {
		failure.Reason = pavv1.FailureInfeasible
	}
	failed := t.expansionFailed(ctx, t.stage.Status.Expansion.Attempt, failure)
	if !errors.Is(failed, ErrExpansion) && !errors.Is(failed, ErrInfeasible) {
		return failed
	}
	// The pod may have changed since it was read; its finalizer is removed when it is deleted, at the latest.
	if err := t.runner.Release(ctx, pod); !apierrors.IsConflict(err) {
		return errors.Join(failed, err)
	}
	return failed
}

// expansionBegan returns when the node expansion pod began at the earliest. The times of pods have no fractions of seconds, and an
// earlier pod may have written to the same /pav in the same second.
func (t *task) expansionBegan() time.Time {
	if began := t.stage.Status.Expansion.Began; began != nil {
		return began.Time
	}
	return began(t.expansionPod)
}

// expansionFailed records why an attempt has failed, and returns the error of the call.
func (t *task) expansionFailed(ctx context.Context, attempt int32, failure *pavv1.WorkflowFailure) error {
	failure.Message = observability.Clip(failure.Message, observability.MaxCondition)
	failure.Time = metav1.NewTime(t.clusterTime()) // kubelet decides when to retry
	if err := t.update(ctx, func(status *pavv1.PavStageStatus) {
		if status.Expansion == nil {
			status.Expansion = &pavv1.StageExpansion{}
		}
		e := status.Expansion
		if status.ExpansionPod() == nil { // it is that of the last attempt
			e.Target = *resource.NewQuantity(t.newCapacity, resource.BinarySI)
		}
		e.Attempt, e.Failure, e.Recorded = attempt, failure, true
	}); err != nil {
		return err
	}
	t.reportFailure(ctx, protocol.VolumeResizeFailed, "expanding on node "+t.node+" failed", failure)
	kind := ErrExpansion
	if failure.Reason == pavv1.FailureInfeasible {
		kind = ErrInfeasible
	}
	return fmt.Errorf("%w: provisioner %q: %s", kind, t.Driver, failure.Message)
}

// endExpansion records the end of a node expansion pod while the volume is being unstaged: nobody needs the capacity any more.
func (t *task) endExpansion(ctx context.Context) error {
	pod := t.expansionPod
	if err := t.update(ctx, func(status *pavv1.PavStageStatus) { status.Expansion.Recorded = true }); err != nil {
		return err
	}
	if pod == nil {
		return nil
	}
	return t.runner.Release(ctx, pod)
}

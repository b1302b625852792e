package volume

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/attempt"
	"github.com/albertofaria/pav/internal/podplan"
	"github.com/albertofaria/pav/internal/reconcile"
	"github.com/albertofaria/pav/internal/workflow"
)

// intent is a pod that is about to be run.
type intent struct {
	step pavv1.VolumeStep

	// pod is the evaluated template, and generation the generation of its definition.
	pod        map[string]any
	generation int64

	// within are the nodes that the pod is confined to; nil for all.
	within *corev1.NodeSelector

	// plan is what the volume of a creation pod will be; nil for other pods.
	plan *pavv1.VolumePlan

	// change is recorded together with the pod.
	change change
}

// workflows are the workflows of each step; words say what a pod of the step does.
var (
	workflows = map[pavv1.VolumeStep]string{
		pavv1.StepValidating: pavv1.WorkflowValidation, pavv1.StepCreating: pavv1.WorkflowCreation,
		pavv1.StepReverting: pavv1.WorkflowDeletion, pavv1.StepDeleting: pavv1.WorkflowDeletion,
		pavv1.StepExpanding: pavv1.WorkflowExpansion, pavv1.StepModifying: pavv1.WorkflowModification,
	}
	words = map[pavv1.VolumeStep]string{
		pavv1.StepValidating: "is validating the request", pavv1.StepCreating: "is creating the volume",
		pavv1.StepReverting: "is reverting the creation of the volume", pavv1.StepDeleting: "is deleting the volume",
		pavv1.StepExpanding: "is expanding the volume", pavv1.StepModifying: "is modifying the volume",
	}
)

// intend records a pod, and creates it if it has a slot at once.
func (r *Reconciler) intend(ctx context.Context, o observation, i intent) error {
	number := o.volume.Status.Pods + 1
	pod, err := r.build(o.volume, i, number)
	if err != nil {
		return r.refuse(ctx, o, workflows[i.step], i.change, err)
	}
	if err := r.patchStatus(ctx, o.volume, func(status *pavv1.PavVolumeStatus) {
		i.change(status)
		status.Step, status.Pods, status.SyncRequestTime = i.step, number, nil
		if i.step == pavv1.StepCreating && o.mustSync() {
			status.SyncRequestTime = new(o.reading().NextSync(r.Now()))
		}
		setGeneration(status, i.generation)
		status.Pod = &pavv1.PodReference{Namespace: pod.Namespace, Name: pod.Name, Due: new(metav1.NewTime(r.Now()))}
		setCondition(o.volume, status, conditionOf(i.step), attempt.ReasonQueued, fmt.Sprintf("pod %s/%s is created as soon as it has a slot", pod.Namespace, pod.Name))
	}); err != nil {
		return err
	}
	if isChange(workflows[i.step]) || i.step == pavv1.StepCreating && o.source != nil {
		return nil // the claim shows it first, or it is asked once more whether the source may be read
	}
	if !r.slots.Acquire(owner(o.volume)) {
		return nil // its slot brings the next pass
	}
	return r.start(ctx, o, pod, i.generation)
}

// build returns the pod of an intent with its PodPolicy. Its name is unique among the pods of the volume.
func (r *Reconciler) build(volume *pavv1.PavVolume, i intent, number int32) (*corev1.Pod, error) {
	placement := podplan.Placement{Within: i.within, Avoid: r.slots.Avoid(volume.Spec.Provisioner, r.Now())}
	return podplan.VolumePod(volume, workflows[i.step], i.pod, placement, r.PodDefaults, number)
}

// owner returns the owner of a volume's slot.
func owner(volume *pavv1.PavVolume) attempt.Owner {
	return attempt.Owner{Name: volume.Name, Provisioner: volume.Spec.Provisioner, Namespace: volume.Spec.ClaimRef.Namespace}
}

// runPod creates the recorded pod: when it has a slot, or after an agent was killed before that.
func (r *Reconciler) runPod(ctx context.Context, o observation, d decision) error {
	if !r.slots.Acquire(owner(o.volume)) {
		if d.Message == "" {
			return nil // its slot brings the next pass
		}
		return r.wait(ctx, o, d)
	}
	if err := r.checkRunnable(ctx, o, d); errors.Is(err, errUnready) {
		return r.dropPod(ctx, o, d)
	} else if err != nil {
		return err
	}
	pod, generation, err := r.preparePod(ctx, o)
	if err != nil {
		r.slots.Release(o.volume.Name) // other pods may be created meanwhile
	}
	if err != nil || pod == nil {
		return err
	}
	return r.start(ctx, o, pod, generation)
}

// preparePod builds the recorded pod again, and returns the generation of its definition. If the definition has no such
// pod any more, or another plan, that is recorded and the pod is nil.
func (r *Reconciler) preparePod(ctx context.Context, o observation) (*corev1.Pod, int64, error) {
	i, err := r.recordedIntent(ctx, o)
	if err == nil && i.pod == nil {
		return nil, 0, r.patchStatus(ctx, o.volume, func(status *pavv1.PavVolumeStatus) {
			status.Pod = nil
			if isChange(workflows[status.Step]) {
				status.Step = ""
			}
		})
	}
	if err == nil && i.plan != nil && !equality.Semantic.DeepEqual(i.plan, o.volume.Status.Plan) {
		return nil, 0, r.replan(ctx, o, i.plan)
	}
	var pod *corev1.Pod
	if err == nil {
		pod, err = r.build(o.volume, i, o.volume.Status.Pods)
	}
	if err != nil {
		return nil, 0, r.refuse(ctx, o, workflows[o.volume.Status.Step], nothing, err)
	}
	pod.Namespace = o.volume.Status.Pod.Namespace
	return pod, i.generation, nil
}

// checkRunnable asks the API server whether the recorded pod must still run, and was not created before. Creating the pod
// is the only effect that no write of the PavVolume directly precedes.
func (r *Reconciler) checkRunnable(ctx context.Context, o observation, d decision) error {
	if err := r.checkNotCreated(ctx, o); err != nil {
		return err
	}
	switch workflows[o.volume.Status.Step] {
	case pavv1.WorkflowDeletion:
		return r.checkDeletable(ctx, o, d)
	case pavv1.WorkflowCreation:
		if err := r.checkReads(ctx, o); err != nil {
			return err
		}
		return r.checkNoPV(ctx, o)
	case pavv1.WorkflowExpansion, pavv1.WorkflowModification:
		return r.confirm(ctx, o, d)
	default:
		return nil
	}
}

// checkNoPV asks the API server whether the volume that is about to be created has a PersistentVolume that the cache does not
// have yet. A former leader may have written it, and a claim may use the storage that a creation pod would make again.
func (r *Reconciler) checkNoPV(ctx context.Context, o observation) error {
	pv, err := reconcile.Optional(ctx, r.Live, types.NamespacedName{Name: o.volume.Name}, &corev1.PersistentVolume{})
	if err == nil && pv != nil && o.pv == nil {
		return reconcile.ErrStale
	}
	return err
}

// replan records the plan that the definition makes from the claim now: the pod must be created with the plan that is
// recorded.
func (r *Reconciler) replan(ctx context.Context, o observation, planned *pavv1.VolumePlan) error {
	if planned.Handle != "" {
		if err := r.reserve(ctx, o, "spec.volumeCreation.handle", planned.Handle); err != nil {
			return r.refuse(ctx, o, pavv1.WorkflowCreation, nothing, err)
		}
	}
	return r.patchStatus(ctx, o.volume, func(status *pavv1.PavVolumeStatus) { status.Plan = planned })
}

// recordedIntent evaluates the template of the recorded pod again. The intent has no pod if the definition has no deletion
// pod any more.
func (r *Reconciler) recordedIntent(ctx context.Context, o observation) (intent, error) {
	i := intent{step: o.volume.Status.Step, change: nothing}
	if i.step == pavv1.StepExpanding {
		return i, i.recordedExpansion(ctx, r, o)
	}
	if i.step == pavv1.StepModifying {
		return i, i.recordedModification(ctx, r, o)
	}
	definition := o.volume.Status.Definition
	if workflows[i.step] == pavv1.WorkflowDeletion {
		request, err := r.deletionRequest(ctx, o)
		if err != nil {
			return i, err
		}
		i.generation = request.Generation
		i.pod, err = request.Deletion(ctx, o.provisioner.Spec.VolumeDeletion, o.volume.Status.Handle)
		return i, err
	}
	request, err := r.validatedRequest(ctx, o)
	if err != nil {
		return i, err
	}
	i.generation = request.Generation
	if i.step == pavv1.StepValidating {
		i.pod, err = request.Validate(ctx, definition.VolumeValidation)
	} else {
		err = i.create(ctx, request, definition.VolumeCreation)
	}
	if err == nil && i.pod == nil {
		err = &podplan.Error{Err: fmt.Errorf("%s: yields no pod any more", podplan.PodField(workflows[i.step]))}
	}
	return i, err
}

func (i *intent) create(ctx context.Context, request podplan.VolumeRequest, c *pavv1.VolumeCreation) error {
	creation, err := request.Create(ctx, c)
	if err != nil {
		return err
	}
	i.pod, i.within, i.plan = creation.Pod, creation.Within, planned(creation)
	return nil
}

// start creates a recorded pod that has a slot, and records its UID.
func (r *Reconciler) start(ctx context.Context, o observation, pod *corev1.Pod, generation int64) error {
	err := r.Runner.CheckNamespace(ctx, pod.Namespace)
	if err == nil && workflows[o.volume.Status.Step] == pavv1.WorkflowDeletion {
		err = r.checkNewHolders(ctx, o)
	}
	if err == nil {
		err = r.Runner.Create(ctx, pod)
	}
	if errors.Is(err, workflow.ErrUnjudged) {
		return r.unjudged(ctx, o, err)
	}
	if errors.Is(err, workflow.ErrRefused) || errors.Is(err, workflow.ErrForeign) {
		return r.refuse(ctx, o, workflows[o.volume.Status.Step], nothing, &podplan.Error{Err: err})
	}
	if err != nil {
		return err
	}
	err = r.patchStatus(ctx, o.volume, func(status *pavv1.PavVolumeStatus) {
		setGeneration(status, generation)
		setCreated(o.volume, status, pod.UID)
	})
	if apierrors.IsConflict(err) || errors.Is(err, reconcile.ErrStale) {
		return r.withdrawPod(ctx, o.volume, pod)
	}
	return err
}

// withdrawPod stops a pod that was just created if it is not recorded any more: another leader has removed it from the record
// before it was created.
func (r *Reconciler) withdrawPod(ctx context.Context, volume *pavv1.PavVolume, pod *corev1.Pod) error {
	live, err := reconcile.Optional(ctx, r.Live, client.ObjectKeyFromObject(volume), &pavv1.PavVolume{})
	if err != nil {
		return err
	}
	if live == nil || live.UID != volume.UID || !names(&live.Status, pod) {
		if err := r.Runner.Stop(ctx, pod); err != nil {
			return err
		}
	}
	return reconcile.ErrStale
}

// recordPod records the UID of the pod.
func (r *Reconciler) recordPod(ctx context.Context, o observation, _ decision) error {
	return r.patchStatus(ctx, o.volume, func(status *pavv1.PavVolumeStatus) { setCreated(o.volume, status, o.pod().UID) })
}

func setCreated(volume *pavv1.PavVolume, status *pavv1.PavVolumeStatus, pod types.UID) {
	status.Pod.UID = pod
	status.DeletionBegun = status.DeletionBegun || workflows[status.Step] == pavv1.WorkflowDeletion
	setCondition(volume, status, conditionOf(status.Step), string(status.Step), attempt.Attempt{Ref: status.Pod, Doing: words[status.Step]}.Describe())
}

// stopPod deletes the recorded pod.
func (r *Reconciler) stopPod(ctx context.Context, o observation, d decision) error {
	if err := r.confirm(ctx, o, d); err != nil {
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

// dropPod removes a pod from the record that was never created or left nothing to revert, and ends its attempt.
func (r *Reconciler) dropPod(ctx context.Context, o observation, d decision) error {
	if err := r.confirm(ctx, o, d); err != nil {
		return err
	}
	if err := r.checkNotCreated(ctx, o); err != nil {
		return err
	}
	return r.patchStatus(ctx, o.volume, func(status *pavv1.PavVolumeStatus) {
		status.Step, status.Pod, status.Plan, status.SyncRequestTime = "", nil, nil, nil
	})
}

// names reports whether a record has a pod, or the failure of one.
func names(status *pavv1.PavVolumeStatus, pod *corev1.Pod) bool {
	is := func(namespace, name string) bool { return namespace == pod.Namespace && name == pod.Name }
	return status.Pod != nil && is(status.Pod.Namespace, status.Pod.Name) ||
		status.CreationPod != nil && is(status.CreationPod.Namespace, status.CreationPod.Name) ||
		slices.ContainsFunc(status.Failures(), func(f *pavv1.WorkflowFailure) bool { return is(f.PodNamespace, f.PodName) })
}

// checkOver asks the API server, before a step that ends what a record is about, whether that is over. Another leader may have
// recorded the phase, the pod or the revert for a reason that the cache does not show yet, and would record it again and again.
// The first PersistentVolume, and a deletion that is only recorded, need no question.
func (r *Reconciler) checkOver(ctx context.Context, o observation, d decision) error {
	if o.volume.Status.Pod != nil || o.reverting() || !o.pending() && d.Step != stepMarkDeleting {
		if err := r.confirm(ctx, o, d); err != nil {
			return err
		}
	}
	return r.checkNotCreated(ctx, o)
}

// checkNotCreated asks the API server whether a pod that is about to be removed from the record was created after all. The
// cache may be behind, or the agent that created the pod was killed before it recorded that.
func (r *Reconciler) checkNotCreated(ctx context.Context, o observation) error {
	if o.progress() != attempt.Intended {
		return nil
	}
	return attempt.CheckAbsent(ctx, r.Runner, o.volume.Status.Pod, o.volume.UID)
}

// sweep lets the pods go whose outcome is recorded, and deletes all but those that people may want
// to look at: the last one that failed, until the next of its kind begins.
func (r *Reconciler) sweep(ctx context.Context, o observation) error {
	current := o.pod()
	for i := range o.pods {
		pod := &o.pods[i]
		if pod == current {
			continue
		}
		if err := r.letGo(ctx, o, pod); err != nil {
			return err
		}
	}
	return attempt.ReleaseOrphans(ctx, r.Live, r.Runner, &pavv1.PavVolume{}, o.volume.Name, o.orphans)
}

// letGo releases or stops a pod that is not the recorded one.
func (r *Reconciler) letGo(ctx context.Context, o observation, pod *corev1.Pod) error {
	switch {
	case o.isCreationPod(pod) && (workflow.Judge(pod).IsOver() || !o.endsCreation()):
		return nil // its end is recorded first
	case o.isCreationPod(pod):
		return r.Runner.Stop(ctx, pod)
	case o.awaited(pod):
		return nil
	}
	r.reportUnrecorded(o, pod)
	return attempt.Release(ctx, r.Runner, pod, keeps(&o.volume.Status, pod))
}

// reportUnrecorded reports a pod that runs although it is not recorded, and is about to be stopped: nothing records what it has
// done to the storage.
func (r *Reconciler) reportUnrecorded(o observation, pod *corev1.Pod) {
	kind := pod.Labels[pavv1.WorkflowLabel]
	if workflow.Judge(pod).IsOver() || !workflow.Started(pod) || kind == pavv1.WorkflowValidation {
		return
	}
	r.reportLeft(o, fmt.Sprintf("pod %s/%s, a %s pod of PavVolume %q, ran although it was not needed any more, and is stopped: check what it has done to the storage",
		pod.Namespace, pod.Name, phases[kind], o.volume.Name))
}

// keeps reports whether a pod that is over is kept for people to look at.
func keeps(status *pavv1.PavVolumeStatus, pod *corev1.Pod) bool {
	failure := *failureOf(status, pod.Labels[pavv1.WorkflowLabel])
	replaced := failure != nil && status.Pod != nil && conditionOf(status.Step) == conditionFor(failure.Workflow)
	return attempt.IsKept(pod, failure, replaced)
}

package stage

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/node/pavdir"
	"github.com/albertofaria/pav/internal/workflow"
)

// observe gathers what the next step depends on, from the API server and the node itself, except for what decide
// gathers only if the decision depends on it.
func (t *task) observe(ctx context.Context) (observation, error) {
	t.full = ""
	if err := t.find(ctx); err != nil {
		return observation{}, err
	}
	o := observation{}
	if err := t.observeNode(ctx, &o); err != nil {
		return o, err
	}
	if t.stage == nil || IsTerminating(t.stage) {
		o.terminating = t.stage != nil
		return o, t.observeLeftover(ctx, &o)
	}

	t.observeLedger(&o)
	if err := t.observePods(ctx, &o); err != nil {
		return o, err
	}
	if o.settled() {
		return o, t.observeLeftover(ctx, &o)
	}
	t.observeObstacle(&o)
	if err := t.observeReported(ctx, &o); err != nil {
		return o, err
	}
	if err := t.observeMounts(ctx, &o); err != nil {
		return o, err
	}
	if err := t.observeVolume(ctx, &o); err != nil {
		return o, err
	}
	if err := t.observeExpansion(ctx, &o); err != nil {
		return o, err
	}
	if err := t.observeWithheld(ctx, &o); err != nil {
		return o, err
	}
	return o, t.observeProgress(ctx, &o)
}

// observeLedger gathers the state of the PavStage.
func (t *task) observeLedger(o *observation) {
	status := &t.stage.Status
	o.exists = true
	o.hasFinalizer = slices.Contains(t.stage.Finalizers, pavv1.StageFinalizer)
	o.phase = status.Phase
	o.unbegun = status.Attempt == 0
	o.claimOnly = t.stage.Spec.Scope == pavv1.StagingScopePod && t.stage.Spec.Client == nil
	o.restaging = status.Restaging
	o.covering = status.Restaging && status.Phase == pavv1.StageStaging && isCovering(status)
	o.validated = status.Validated || status.StagingPod != nil || !needsValidation(t.stage)
	// A stage that only reserves the volume for the node has no mounts.
	o.thisBoot = status.BootID == "" || t.IsThisBoot(status) || o.claimOnly && o.validated
	o.mismatch = !t.matches() && status.Phase != pavv1.StageUnstaging
	o.validationIntended = status.ValidationPod != nil
	o.stagingIntended = status.StagingPod != nil
	o.unstagingIntended = status.UnstagingPod != nil
	o.expansionIntended = status.ExpansionPod() != nil
	for _, has := range []*resource.Quantity{status.Capacity, status.StagedCapacity} {
		o.expanded = o.expanded || has != nil && has.Value() >= t.newCapacity
	}
}

// IsThisBoot reports whether the status was written since the node last started.
func (s *Stager) IsThisBoot(status *pavv1.PavStageStatus) bool {
	return s.boot.Same(pavdir.Boot{BootID: status.BootID, NodeStart: status.NodeStart})
}

// noteBoot records the current boot of the node in the status.
func (s *Stager) noteBoot(status *pavv1.PavStageStatus) {
	status.BootID, status.NodeStart = s.boot.BootID, s.boot.NodeStart
}

// matches reports whether the stage has the parameters of the call.
func (t *task) matches() bool {
	spec := &t.stage.Spec
	return (t.mode == "" || spec.VolumeMode == t.mode) && (!t.ofClient() || t.ending || spec.ReadOnly || !t.readOnly)
}

// observeNode gathers the mounts on the node.
func (t *task) observeNode(ctx context.Context, o *observation) error {
	names := t.namesOf(t.Subject)
	var err error
	if t.attached, err = t.attachedAs(ctx, names...); err != nil {
		return err
	}
	o.attached = t.attached != ""
	t.published = nil
	for _, name := range names {
		published, err := t.Publications(ctx, name)
		if err != nil {
			return err
		}
		t.published = append(t.published, published...)
	}
	o.published = len(t.published) > 0
	if err := t.observeUsers(ctx, o); err != nil {
		return err
	}
	return t.observeClients(ctx, o)
}

// observeMounts compares the recorded targets of a volume with the mounts. If it is mounted at none of them, and none
// of the clients runs, the node was restarted, or all its processes were stopped, although the boot ID is the same.
func (t *task) observeMounts(ctx context.Context, o *observation) error {
	if !o.thisBoot || o.attached || !o.published || o.phase != pavv1.StageStaged && !o.covering {
		return nil
	}
	var err error
	o.thisBoot, err = t.anyHeld(ctx, t.published)
	return err
}

// anyHeld reports whether a client may still write to the volume: it is mounted at the client's target, or the client
// runs, since containers keep a mount that was unmounted on the node. A client that is not recorded may run.
func (s *Stager) anyHeld(ctx context.Context, publications []publication) (bool, error) {
	if mounted, err := s.anyMounted(ctx, publications); err != nil || mounted {
		return mounted, err
	}
	for i := range publications {
		uid := publications[i].Client.UID
		if uid == "" {
			return true, nil
		}
		if runs, err := s.dirs.Runs(ctx, uid); err != nil || runs {
			return runs, err
		}
	}
	return false, nil
}

// observeLeftover gathers whether the node has a directory for one of the names although there is no stage: the
// PavStage was removed by force, or is only the record of a failure.
func (t *task) observeLeftover(ctx context.Context, o *observation) error {
	for _, name := range t.namesOf(t.Subject) {
		exists, err := t.dirs.Exists(ctx, name)
		if err != nil {
			return err
		}
		o.leftover = o.leftover || exists
	}
	if !o.leftover {
		return nil
	}
	var err error
	o.occupied, err = t.anyMounted(ctx, t.published)
	return err
}

// observeProgress gathers the state that only some phases depend on.
func (t *task) observeProgress(ctx context.Context, o *observation) error {
	var err error
	switch {
	case o.phase == pavv1.StageStaging && o.stagingPod == workflow.Absent && o.stagingIntended && !o.attached:
		o.given, err = t.dirs.Given(ctx, t.stage.Name)
	case o.phase == pavv1.StageStaging && o.stagingPod == workflow.Running && !o.attached:
		o.ready, err = t.dirs.Ready(ctx, t.stage.Name)
	case o.phase == pavv1.StageStaging && !workflow.Observe(t.stagingPod).IsOver() && o.stands() && !o.covering:
		err = t.observeSettling(ctx, o)
	case o.phase == pavv1.StageStaging && o.restaging && !o.stagingIntended:
		wait := workflow.RetryIn(t.stage.Status.StagingFailure, t.attempts.failures(t.stage.Name), t.clusterTime())
		o.backoff = t.unlessRetried(wait, t.stage.Status.StagingFailure)
	case o.phase == pavv1.StageUnstaging && o.unstagingPod != workflow.Succeeded && (o.stagingIntended || o.unstagingIntended):
		o.backoff = t.unlessRetried(workflow.RetryIn(t.stage.Status.UnstagingFailure, int(t.stage.Status.UnstagingAttempt)-1, t.clusterTime()), t.stage.Status.UnstagingFailure)
		o.unstagingWanted, err = t.unstagingWanted(ctx)
	}
	return err
}

// IsTerminating reports whether a PavStage is being deleted and protects nothing any more: only a finalizer of
// another controller keeps it.
func IsTerminating(stage *pavv1.PavStage) bool {
	return stage.DeletionTimestamp != nil && !slices.Contains(stage.Finalizers, pavv1.StageFinalizer)
}

// IsRecord reports whether a PavStage is only the record of a failed attempt, which protects nothing.
func IsRecord(stage *pavv1.PavStage) bool {
	return stage.Status.Phase == pavv1.StageFailed && !slices.Contains(stage.Finalizers, pavv1.StageFinalizer)
}

// find reads the subject's PavStage on this node, unless the last step has just written it: a step that ends so is followed
// by one that waits, acts only on the node, or writes the PavStage before anything else. That another node has the volume
// shows when this node tries to create its own PavStage.
func (t *task) find(ctx context.Context) error {
	if t.written {
		t.written = false
		return nil
	}
	names := t.namesOf(t.Subject)
	if t.stage != nil && t.stage.Name != names[0] {
		slices.Reverse(names) // where it was before
	}
	var err error
	t.stage, err = t.stageNamed(ctx, names)
	return err
}

// stageOf returns the subject's PavStage on this node, or nil if there is none.
func (s *Stager) stageOf(ctx context.Context, of Subject) (*pavv1.PavStage, error) {
	return s.stageNamed(ctx, s.namesOf(of))
}

// stageNamed returns the PavStage of this node with one of the names, or nil if there is none. One that only another
// controller's finalizer keeps is returned if there is no other.
func (s *Stager) stageNamed(ctx context.Context, names []string) (*pavv1.PavStage, error) {
	var terminating *pavv1.PavStage
	for _, name := range names {
		stage := &pavv1.PavStage{}
		err := s.client.Get(ctx, client.ObjectKey{Name: name}, stage)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("getting PavStage %q: %w", name, err)
		}
		switch {
		case stage.Spec.NodeName != s.node:
		case IsTerminating(stage):
			terminating = stage
		default:
			return stage, nil
		}
	}
	return terminating, nil
}

// attachedAs returns the name under which the volume is attached, or "".
func (s *Stager) attachedAs(ctx context.Context, names ...string) (string, error) {
	for _, name := range names {
		attached, err := s.dirs.Attached(ctx, name)
		if err != nil {
			return "", err
		}
		if attached {
			return name, nil
		}
	}
	return "", nil
}

func (t *task) observePods(ctx context.Context, o *observation) error {
	status, owner := &t.stage.Status, t.stage.UID
	var err error
	if t.validationPod, err = t.runner.Get(ctx, status.ValidationPod, owner); err != nil {
		return err
	}
	if t.stagingPod, err = t.runner.Get(ctx, status.StagingPod, owner); err != nil {
		return err
	}
	if t.unstagingPod, err = t.runner.Get(ctx, status.UnstagingPod, owner); err != nil {
		return err
	}
	if t.expansionPod, err = t.runner.Get(ctx, status.ExpansionPod(), owner); err != nil {
		return err
	}
	o.stagingPod = workflow.Judge(t.stagingPod)
	o.expansionPod = workflow.Observe(t.expansionPod)
	o.expansionStarted = t.expansionPod != nil && workflow.Started(t.expansionPod)
	// After these, the next step waits until kubelet has taken /pav from the pod, which is later than its phase.
	o.validationPod = workflow.Observe(t.validationPod)
	o.unstagingPod = workflow.Observe(t.unstagingPod)
	if workflow.Observe(t.stagingPod).IsOver() {
		o.outcomeHeld = slices.Contains(t.stagingPod.Finalizers, pavv1.PodFinalizer)
	}
	if o.unstagingPod == workflow.Failed && t.unstagingPod.DeletionTimestamp != nil && !slices.Contains(t.unstagingPod.Finalizers, pavv1.PodFinalizer) {
		o.unstagingPod = workflow.Stopping // Its failure is recorded, and it is being deleted for the next one.
	}
	return nil
}

// unstagingWanted reports whether the current definition has an unstaging pod.
func (t *task) unstagingWanted(ctx context.Context) (bool, error) {
	provisioner, err := t.catalogue.Provisioner(ctx, t.stage.Spec.Provisioner)
	if err != nil {
		return false, err
	}
	if provisioner == nil {
		// Its finalizer protects it while stages exist, so it was removed by force.
		return false, fmt.Errorf("unstaging volume %q: PavProvisioner %q does not exist any more; create it again, so that its volumes can be unstaged",
			t.stage.Spec.VolumeName, t.stage.Spec.Provisioner)
	}
	return provisioner.Spec.VolumeUnstaging != nil && provisioner.Spec.VolumeUnstaging.PodTemplate != nil, nil
}

package stage

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/workflow"
)

// observe gathers what the next step depends on, from the API server and the node itself.
func (t *task) observe(ctx context.Context, shared, exclusive string) (observation, error) {
	if err := t.find(ctx, shared, exclusive); err != nil {
		return observation{}, err
	}
	var err error
	if t.attached, err = t.attachedAs(ctx, shared, exclusive); err != nil {
		return observation{}, err
	}
	o := observation{attached: t.attached != ""}
	if t.stage == nil || going(t.stage) {
		o.going = t.stage != nil
		o.leftover, err = t.leftover(ctx, shared, exclusive)
		return o, err
	}

	status := &t.stage.Status
	o.exists = true
	o.held = slices.Contains(t.stage.Finalizers, pavv1.StageFinalizer)
	o.phase = status.Phase
	o.thisBoot = status.BootID == "" || status.BootID == t.bootID
	o.stagingIntended = status.StagingPod != nil
	o.unstagingIntended = status.UnstagingPod != nil
	if err := t.observePods(ctx, &o); err != nil {
		return o, err
	}
	return o, t.observeProgress(ctx, &o)
}

// observeProgress gathers what only some phases depend on.
func (t *task) observeProgress(ctx context.Context, o *observation) error {
	var err error
	switch {
	case o.phase == pavv1.StageStaging && o.stagingPod == workflow.Running && !o.attached:
		o.ready, err = t.dirs.Ready(ctx, t.stage.Name)
	case o.phase == pavv1.StageUnstaging && o.unstagingPod != workflow.Succeeded && (o.stagingIntended || o.unstagingIntended):
		o.backoff = backoff(&t.stage.Status, t.now())
		o.unstagingWanted, err = t.unstagingWanted(ctx)
	}
	return err
}

// going says whether a PavStage is being deleted and holds nothing any more: only somebody else's
// finalizer keeps it.
func going(stage *pavv1.PavStage) bool {
	return stage.DeletionTimestamp != nil && !slices.Contains(stage.Finalizers, pavv1.StageFinalizer)
}

// leftover says whether the node has a folder for one of the names, as where a PavStage was forced away.
func (t *task) leftover(ctx context.Context, names ...string) (bool, error) {
	for _, name := range names {
		if exists, err := t.dirs.Exists(ctx, name); err != nil || exists {
			return exists, err
		}
	}
	return false, nil
}

// find reads the PavStage of the volume on this node. One of another node does not count: that the
// other node holds the volume shows when this node tries to create its own.
func (t *task) find(ctx context.Context, shared, exclusive string) error {
	t.stage = nil
	for _, name := range []string{shared, exclusive} {
		stage := &pavv1.PavStage{}
		err := t.client.Get(ctx, client.ObjectKey{Name: name}, stage)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("getting PavStage %q: %w", name, err)
		}
		if stage.Spec.NodeName == t.node {
			t.stage = stage
			return nil
		}
	}
	return nil
}

// attachedAs returns which of the names the volume is attached under, or nothing.
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
	var err error
	if t.stagingPod, err = t.runner.Get(ctx, t.stage.Status.StagingPod, t.stage.UID); err != nil {
		return err
	}
	if t.unstagingPod, err = t.runner.Get(ctx, t.stage.Status.UnstagingPod, t.stage.UID); err != nil {
		return err
	}
	o.stagingPod = workflow.Observe(t.stagingPod)
	o.unstagingPod = workflow.Observe(t.unstagingPod)
	if t.stagingPod != nil {
		o.outcomeHeld = slices.Contains(t.stagingPod.Finalizers, pavv1.PodFinalizer)
	}
	if o.unstagingPod == workflow.Failed && t.unstagingPod.DeletionTimestamp != nil && !slices.Contains(t.unstagingPod.Finalizers, pavv1.PodFinalizer) {
		o.unstagingPod = workflow.Stopping // Its failure is recorded, and it makes room for the next one.
	}
	o.pavInUse, err = t.dirs.InUse(ctx, t.stage.Name)
	return err
}

// unstagingWanted says whether the provisioner, as it is now, has an unstaging pod.
func (t *task) unstagingWanted(ctx context.Context) (bool, error) {
	provisioner, err := t.catalogue.Provisioner(ctx, t.stage.Spec.Provisioner)
	if err != nil {
		return false, err
	}
	if provisioner == nil {
		// Its finalizer holds it while stages exist, so somebody has forced it away.
		return false, fmt.Errorf("unstaging volume %q: PavProvisioner %q does not exist any more; create it again, so that its volumes can be unstaged",
			t.stage.Spec.VolumeName, t.stage.Spec.Provisioner)
	}
	return provisioner.Spec.VolumeUnstaging != nil && provisioner.Spec.VolumeUnstaging.PodTemplate != nil, nil
}

// backoff returns how long the next unstaging attempt is to wait: a second after the first failure,
// doubled with each further one, and five minutes at most.
func backoff(status *pavv1.PavStageStatus, now time.Time) time.Duration {
	if status.UnstagingFailure == nil {
		return 0
	}
	const longest = 5 * time.Minute
	delay := longest
	if failures := status.UnstagingAttempt - 1; failures < 9 {
		delay = min(time.Second<<max(failures-1, 0), longest)
	}
	return max(status.UnstagingFailure.Time.Add(delay).Sub(now), 0)
}

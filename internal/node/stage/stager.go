package stage

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/node/pavdir"
	"github.com/albertofaria/pav/internal/template"
	"github.com/albertofaria/pav/internal/workflow"
)

// Volume names a volume as kubelet does.
type Volume struct {
	// Driver is the name of the PavProvisioner.
	Driver string

	// Handle is the volume's handle.
	Handle string
}

func (v Volume) key() string { return workflow.Hash(v.Driver, v.Handle) }

// Catalogue tells what the agent's caches know. It serves for finding, never for deciding.
type Catalogue interface {
	// VolumeNames returns the names of the persistent volumes with the driver and handle.
	VolumeNames(ctx context.Context, driver, handle string) ([]string, error)

	// Provisioner returns a PavProvisioner, or nil where there is none.
	Provisioner(ctx context.Context, name string) (*pavv1.PavProvisioner, error)
}

// EventRecorder records events, as client-go's record.EventRecorder does.
type EventRecorder interface {
	Event(object runtime.Object, eventtype, reason, message string)
}

// Stager makes volumes available on its node.
type Stager struct {
	client    client.Client
	catalogue Catalogue
	runner    *workflow.Runner
	dirs      *pavdir.Directories
	mounts    Mounter
	hub       *Hub
	events    EventRecorder
	node      string
	bootID    string
	templates *template.Evaluator
	inflight  *inflight
	now       func() time.Time
}

// Config is what a Stager works with.
type Config struct {
	// Client reads from the API server, not from a cache.
	Client    client.Client
	Catalogue Catalogue
	Dirs      *pavdir.Directories
	Mounts    Mounter
	Hub       *Hub
	Events    EventRecorder
	Templates *template.Evaluator

	// Node is the name of the node, and BootID tells its boots apart.
	Node, BootID string
}

// New returns a Stager.
func New(c Config) *Stager {
	return &Stager{
		client: c.Client, catalogue: c.Catalogue, runner: &workflow.Runner{Client: c.Client}, dirs: c.Dirs, mounts: c.Mounts,
		hub: c.Hub, events: c.Events, node: c.Node, bootID: c.BootID, templates: c.Templates, inflight: newInflight(), now: time.Now,
	}
}

// names returns the names that the PavStage of a volume on this node can have: that of a volume that
// any node may have, and that of one that one node may have at a time, which is the same on all
// nodes, so that the API server lets only one of them create it.
func (s *Stager) names(v Volume) (shared, exclusive string) {
	return "stage-" + workflow.Hash(v.Driver, v.Handle, s.node), "stage-" + workflow.Hash(v.Driver, v.Handle)
}

// Stage makes a volume available on the node. It may be repeated, and goes on where an
// earlier call, or an earlier agent, was interrupted:
//
//  1. the PavStage is written; for a volume that one node may have at a time, this claims it;
//  2. /pav is made, the staging pod is recorded, then created;
//  3. the pod completes or creates /pav/ready;
//  4. /pav/volume is attached for clients, and the PavStage becomes Staged.
//
// If the pod fails, all is reverted as Unstage does before ErrFailed is returned.
func (s *Stager) Stage(ctx context.Context, v Volume) error {
	release, err := s.inflight.whole(v.key())
	if err != nil {
		return err
	}
	defer release()
	return s.run(ctx, v, decideStage)
}

// Unstage removes every trace of a volume from the node. It may be repeated, and goes on where an
// earlier call, or an earlier agent, was interrupted:
//
//  1. the PavStage becomes Unstaging and the volume is detached;
//  2. the staging pod is stopped, and kubelet has taken /pav from it;
//  3. the unstaging pod runs, with /pav as the staging pod left it, until one succeeds;
//  4. /pav is removed, and the PavStage goes.
func (s *Stager) Unstage(ctx context.Context, v Volume) error {
	release, err := s.inflight.whole(v.key())
	if err != nil {
		return err
	}
	defer release()
	err = s.run(ctx, v, decideUnstage)
	if errors.Is(err, ErrFailed) {
		// The call joined the end of a failed attempt: all of it is reverted, which is what was asked for.
		return nil
	}
	return err
}

// run takes steps until nothing is left to do, or ctx ends.
func (s *Stager) run(ctx context.Context, v Volume, decide func(observation) step) error {
	t := &task{Stager: s, volume: v}
	shared, exclusive := s.names(v)
	woken, unsubscribe := s.hub.subscribe(shared, exclusive)
	defer unsubscribe()

	for {
		if err := ctx.Err(); err != nil {
			return t.pending(err)
		}
		o, err := t.observe(ctx, shared, exclusive)
		if err != nil {
			return t.interrupted(ctx, err)
		}
		next := decide(o)
		if next == stepDone {
			return nil
		}
		if next == stepWait {
			t.wait(ctx, woken, o.backoff)
			continue
		}
		err = steps[next](t, ctx)
		if apierrors.IsConflict(err) {
			continue // Somebody changed the object since it was read.
		}
		if err != nil {
			return t.interrupted(ctx, err)
		}
	}
}

// task is one call's view of a stage.
type task struct {
	*Stager
	volume Volume

	stage        *pavv1.PavStage // nil where there is none
	attached     string          // the name under which the volume is attached, or nothing
	stagingPod   *corev1.Pod
	unstagingPod *corev1.Pod
}

// wait returns when something has changed, when the backoff is over, or when ctx ends.
func (t *task) wait(ctx context.Context, woken <-chan struct{}, backoff time.Duration) {
	var due <-chan time.Time
	if backoff > 0 {
		timer := time.NewTimer(backoff)
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-woken:
	case <-due:
	case <-ctx.Done():
	}
}

// interrupted says that the work is not over where ctx is the reason of err: the pod may run on.
func (t *task) interrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return t.pending(err)
	}
	return err
}

// pending describes what a call that has run out of time was waiting for.
func (t *task) pending(err error) error {
	if t.stage == nil {
		return fmt.Errorf("%w: provisioner %q: %w", ErrPending, t.volume.Driver, err)
	}
	what := "staging"
	pod := t.stagingPod
	if t.stage.Status.Phase == pavv1.StageUnstaging {
		what = "unstaging"
		if t.unstagingPod != nil {
			pod = t.unstagingPod
		}
	}
	text := fmt.Sprintf("provisioner %q: %s volume %q", t.volume.Driver, what, t.stage.Spec.VolumeName)
	switch failure := t.stage.Status.UnstagingFailure; {
	case failure != nil:
		text += ": attempt " + fmt.Sprint(t.stage.Status.UnstagingAttempt) + " follows; the last one: " + failure.Message
	case pod == nil:
	case workflow.Waiting(pod) != "":
		text += ": " + workflow.Waiting(pod)
	default:
		text += fmt.Sprintf(": pod %s/%s has not completed", pod.Namespace, pod.Name)
		if what == "staging" {
			text += " and not created /pav/ready"
		}
	}
	return fmt.Errorf("%w: %s", ErrPending, text)
}

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
	"github.com/albertofaria/pav/internal/node/health"
	"github.com/albertofaria/pav/internal/node/pavdir"
	"github.com/albertofaria/pav/internal/observability"
	"github.com/albertofaria/pav/internal/observability/metrics"
	"github.com/albertofaria/pav/internal/template"
	"github.com/albertofaria/pav/internal/workflow"
)

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
	config    Config // as New was given it, with its defaults: for the Monitor, which works with the same
	client    client.WithWatch
	catalogue Catalogue
	runner    *workflow.Runner
	dirs      Directories
	mounts    Mounter
	notifier  *Notifier
	events    EventRecorder
	node      string
	boot      pavdir.Boot
	version   string
	templates *template.Evaluator
	inflight  *inflight
	attempts  *attemptTracker
	settling  *settling
	room      *room
	workflows *metrics.Workflows
	calls     *metrics.Calls
	repeats   observability.Repeats

	// Now is for how long something takes here, also where the API server is away; clusterTime compares with
	// the times of objects.
	now         func() time.Time
	clusterTime func() time.Time
	// callEnded, if it is not nil, is called with the name of the stage at the end of each call; health knows how
	// volumes are. Observe sets both.
	callEnded func(name string)
	health    *health.Tracker
}

// Config is what a Stager works with.
type Config struct {
	// Client reads from the API server, not from a cache.
	Client    client.WithWatch
	Catalogue Catalogue
	Dirs      Directories
	Mounts    Mounter
	Notifier  *Notifier
	Events    EventRecorder
	Templates *template.Evaluator

	// Workflows and Calls count pods and calls; nil disables these metrics.
	Workflows *metrics.Workflows
	Calls     *metrics.Calls

	// Node is the name of the node, and Boot its present start.
	Node string
	Boot pavdir.Boot

	// Version is that of the agent; it goes on record with each status.
	Version string

	// ClusterTime is the API server's, in which the times of objects are; time.Now where it is nil.
	ClusterTime func() time.Time
}

// New returns a Stager.
func New(c Config) *Stager {
	if c.ClusterTime == nil {
		c.ClusterTime = time.Now
	}
	return &Stager{
		config: c, client: c.Client, catalogue: c.Catalogue, runner: &workflow.Runner{Client: c.Client, Node: c.Node}, dirs: c.Dirs, mounts: c.Mounts,
		notifier: c.Notifier, events: c.Events, node: c.Node, boot: c.Boot, version: c.Version, templates: c.Templates, inflight: newInflight(),
		attempts: newAttemptTracker(), settling: newSettling(), room: newRoom(), workflows: c.Workflows, calls: c.Calls, now: time.Now, clusterTime: c.ClusterTime,
	}
}

// Staging is how a volume is to be made available on the node.
type Staging struct {
	// Mode is the volume's mode.
	Mode corev1.PersistentVolumeMode

	// Path is kubelet's staging path, where nothing is mounted.
	Path string
}

// Stage makes a volume available on the node. It may be repeated, and goes on where an
// earlier call, or an earlier agent, was interrupted:
//
//  1. the PavStage is written; for a volume that one node may have at a time, this claims it;
//  2. a volume that was not provisioned dynamically is validated;
//  3. /pav is made, the staging pod is recorded, then created;
//  4. the pod completes or creates /pav/ready;
//  5. /pav/volume is attached for clients, and the PavStage becomes Staged.
//
// If the pod fails, all is reverted as Unstage does before ErrFailed is returned. With scope Pod,
// Publish does 3 to 5, for a PavStage of each client pod.
func (s *Stager) Stage(ctx context.Context, v Volume, want Staging) error {
	of := Subject{Volume: v}
	s.inflight.interrupt(ctx, v.key())
	release, err := s.Lock(of)
	if err != nil {
		return err
	}
	defer release()
	defer s.tell(s.namesOf(of)...)
	t := s.newTask(of, want.Mode)
	t.asked = true
	if err := t.run(ctx, decideStage); err != nil {
		return err
	}
	return s.repairRecord(ctx, t.stage)
}

// Unstage removes every trace of a volume from the node. It may be repeated, and goes on where an
// earlier call, or an earlier agent, was interrupted:
//
//  1. the PavStage becomes Unstaging, the volume is taken from clients that still have it, and detached;
//  2. the staging pod is stopped, and kubelet has taken /pav from it;
//  3. the unstaging pod runs, with /pav as the staging pod left it, until one succeeds;
//  4. /pav is removed, and the PavStage goes.
//
// With scope Pod, this is done for each client pod's PavStage first. Path is kubelet's staging path, if
// it is known: if something is mounted there, it is taken away.
func (s *Stager) Unstage(ctx context.Context, v Volume, path string) error {
	of := Subject{Volume: v}
	s.inflight.interrupt(ctx, v.key())
	release, err := s.Lock(of)
	if err != nil {
		return err
	}
	defer release()
	defer s.tell(s.namesOf(of)...)
	if path != "" {
		if err := s.mounts.Unmount(ctx, path); err != nil {
			return err
		}
	}
	if err := s.unstage(ctx, of); err != nil {
		return err
	}
	for _, name := range s.namesOf(of) {
		s.attempts.forget(name)
	}
	return nil
}

// unstage removes every trace of the subject's stage.
func (s *Stager) unstage(ctx context.Context, of Subject) error {
	t := s.newTask(of, "")
	t.ending = true
	err := t.run(ctx, decideUnstage)
	if errors.Is(err, ErrFailed) {
		// The call joined the end of a failed attempt: all of it is reverted, which is what was asked for.
		return nil
	}
	return err
}

// task is one call's view of a stage.
type task struct {
	*Stager
	Subject

	mode     corev1.PersistentVolumeMode // that is asked for; empty where any will do
	user     pavdir.Client               // whom a PavStage of a client pod is for
	readOnly bool                        // the client asks for reading only
	ending   bool                        // every trace of the stage is to go
	asked    bool                        // kubelet asks for the volume, and nothing has been done about that yet
	shared   bool                        // the stage is, or was, for all client pods, so that none has one of its own

	stage         *pavv1.PavStage // nil where there is none
	attached      string          // the name under which the volume is attached, or nothing
	published     []publication   // targets that have the volume, or may
	inUseBy       []publication   // those of pods that still run, where the volume is to be unstaged
	clients       []Subject       // client pods' stages that hang on this one
	full          string          // says that the node has no slot for a pod, where one is to be created
	waiting       bool            // for nothing but kubelet to take /pav from pods that have it
	validationPod *corev1.Pod
	stagingPod    *corev1.Pod
	unstagingPod  *corev1.Pod
}

func (s *Stager) newTask(of Subject, mode corev1.PersistentVolumeMode) *task {
	return &task{Stager: s, Subject: of, mode: mode}
}

// run takes steps until nothing is left to do, or ctx ends.
func (t *task) run(ctx context.Context, decide func(observation) step) error {
	woken, unsubscribe := t.notifier.subscribe(t.namesOf(t.Subject)...)
	defer unsubscribe()

	for {
		if err := ctx.Err(); err != nil {
			return t.pending(ctx, err)
		}
		o, err := t.observe(ctx)
		if err != nil {
			return t.interrupted(ctx, err)
		}
		t.note(ctx)
		next := decide(o)
		if createsPod(next) {
			if err := t.observeRoom(ctx, &o); err != nil {
				return t.interrupted(ctx, err)
			}
			next = decide(o)
		}
		next = orReport(o, next)
		if next == stepDone {
			return nil
		}
		t.waiting = next == stepWait && waitsForUsers(o)
		if next == stepWait {
			t.wait(ctx, woken, o.due())
			continue
		}
		err = t.take(ctx, next)
		if apierrors.IsConflict(err) {
			continue // Somebody changed the object since it was read.
		}
		if err != nil {
			return t.interrupted(ctx, err)
		}
	}
}

// take takes a step.
func (t *task) take(ctx context.Context, next step) error {
	if createsPod(next) {
		defer t.room.release(t.stage.Name)
	}
	return steps()[next](t, ctx)
}

// Update has the call's log line say which volume it is about.
func (t *task) note(ctx context.Context) {
	if t.stage == nil {
		return
	}
	spec := &t.stage.Spec
	observability.Note(ctx, observability.Volume, spec.VolumeName)
	observability.Note(ctx, observability.Claim, observability.Name(spec.ClaimRef.Namespace, spec.ClaimRef.Name))
}

// wait returns when something has changed, when it is time, or when ctx ends.
func (t *task) wait(ctx context.Context, woken <-chan struct{}, due time.Duration) {
	var timeout <-chan time.Time
	if due > 0 {
		timer := time.NewTimer(due)
		defer timer.Stop()
		timeout = timer.C
	}
	select {
	case <-woken:
	case <-timeout:
	case <-ctx.Done():
	}
}

// interrupted says that the work is not over where ctx is the reason of err: the pod may run on.
func (t *task) interrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return t.pending(ctx, err)
	}
	return err
}

// pending describes what a call that has run out of time was waiting for.
func (t *task) pending(ctx context.Context, err error) error {
	if t.stage == nil {
		return fmt.Errorf("%w: provisioner %q: %w%s", ErrPending, t.Driver, err, t.users(ctx))
	}
	what, pod := t.work()
	text := fmt.Sprintf("provisioner %q: %s volume %q", t.Driver, what, t.stage.Spec.VolumeName)
	failure := t.lastFailure()
	if failure != nil {
		text += ": another attempt follows; the last one: " + failure.Message
	}
	switch users := t.users(ctx); {
	case users != "":
		text += users
	case t.full != "":
		return fmt.Errorf("%w: %s: %s", ErrFull, text, t.full)
	case failure != nil, pod == nil:
	case workflow.Waiting(pod) != "":
		text += ": " + workflow.Waiting(pod)
	default:
		text += fmt.Sprintf(": pod %s/%s has not completed", pod.Namespace, pod.Name)
		if pod == t.stagingPod && what == staging {
			text += " and not created /pav/ready"
		}
	}
	return fmt.Errorf("%w: %s", ErrPending, text)
}

// Words for what is going on.
const (
	validating = "validating"
	staging    = "staging"
	unstaging  = "unstaging"
)

// work says what is going on, and which pod does it, if any.
func (t *task) work() (what string, pod *corev1.Pod) {
	switch {
	case t.stage.Status.Phase == pavv1.StageUnstaging && t.unstagingPod != nil:
		return unstaging, t.unstagingPod
	case t.stage.Status.Phase == pavv1.StageUnstaging && t.stagingPod != nil:
		return unstaging, t.stagingPod
	case t.stage.Status.Phase == pavv1.StageUnstaging:
		return unstaging, t.validationPod
	case t.stage.Status.Phase == pavv1.StageValidating:
		return validating, t.validationPod
	}
	return staging, t.stagingPod
}

// lastFailure returns why the last attempt at what is going on failed, if one did.
func (t *task) lastFailure() *pavv1.WorkflowFailure {
	status := &t.stage.Status
	if status.Phase != pavv1.StageUnstaging && status.Restaging {
		return status.StagingFailure
	}
	return status.UnstagingFailure
}

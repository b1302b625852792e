package stage

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/node/health"
	"github.com/albertofaria/pav/internal/node/pavdir"
	"github.com/albertofaria/pav/internal/observability"
	"github.com/albertofaria/pav/internal/observability/metrics"
	"github.com/albertofaria/pav/internal/template"
	"github.com/albertofaria/pav/internal/workflow"
)

// Catalogue looks up objects. Its answers may be old: they are used to find objects, never to decide.
type Catalogue interface {
	// VolumeNames returns the names of the PersistentVolumes with the driver and handle.
	VolumeNames(ctx context.Context, driver, handle string) ([]string, error)

	// Provisioner returns a PavProvisioner, or nil if there is none.
	Provisioner(ctx context.Context, name string) (*pavv1.PavProvisioner, error)
}

// EventRecorder records events, as client-go's record.EventRecorder does.
type EventRecorder interface {
	Event(object runtime.Object, eventtype, reason, message string)
}

// Stager makes volumes available on its node.
type Stager struct {
	config    Config // with its defaults; the Monitor uses the same
	client    client.WithWatch
	catalogue Catalogue
	together  Together
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

	// now is for durations on this machine, and needs no API server; clusterTime is compared with the times in
	// objects.
	now         func() time.Time
	clusterTime func() time.Time
	// callEnded, if it is not nil, is called with the name of the stage at the end of each call; health has the
	// condition of volumes. Observe sets both.
	callEnded func(name string)
	health    *health.Tracker
}

// Config is the configuration of a Stager.
type Config struct {
	// Client reads from the API server, not from a cache.
	Client    client.WithWatch
	Catalogue Catalogue
	Dirs      Directories
	Mounts    Mounter
	Notifier  *Notifier
	Events    EventRecorder
	Templates *template.Evaluator

	// PodDefaults are those of all workflow pods.
	PodDefaults workflow.Defaults

	// Workflows and Calls count pods and calls; nil disables these metrics.
	Workflows *metrics.Workflows
	Calls     *metrics.Calls

	// Node is the name of the node, and Boot its current boot.
	Node string
	Boot pavdir.Boot

	// Version is the version of the agent, which is written with each status.
	Version string

	// ClusterTime returns the time of the API server, which the times in objects are compared with; time.Now if it is
	// nil.
	ClusterTime func() time.Time

	// Together makes reads that do not depend on each other: at the same time if it is nil.
	Together Together
}

// New returns a Stager.
func New(c Config) *Stager {
	if c.ClusterTime == nil {
		c.ClusterTime = time.Now
	}
	if c.Together == nil {
		c.Together = sideBySide
	}
	return &Stager{
		config: c, client: c.Client, catalogue: c.Catalogue, together: c.Together, runner: &workflow.Runner{Client: c.Client, Node: c.Node}, dirs: c.Dirs, mounts: c.Mounts,
		notifier: c.Notifier, events: c.Events, node: c.Node, boot: c.Boot, version: c.Version, templates: c.Templates, inflight: newInflight(),
		attempts: newAttemptTracker(), settling: newSettling(), room: newRoom(), workflows: c.Workflows, calls: c.Calls, now: time.Now, clusterTime: c.ClusterTime,
	}
}

// Staging has the parameters of Stage.
type Staging struct {
	// Mode is the volume's mode.
	Mode corev1.PersistentVolumeMode

	// Path is kubelet's staging path. PaV mounts nothing there.
	Path string
}

// Stage makes a volume available on the node. It may be repeated, and continues the work of an earlier call or agent
// that was interrupted:
//
//  1. the PavStage is written; this reserves a volume that only one node at a time may have;
//  2. a volume that was not provisioned dynamically is validated;
//  3. /pav is created, the staging pod is recorded, then created;
//  4. the pod completes or creates /pav/ready;
//  5. /pav/volume is attached for clients, and the PavStage becomes Staged.
//
// If the pod fails, staging is reverted as Unstage does, and the error is ErrFailed. With scope Pod, Publish does 3
// to 5 with a PavStage for each client pod.
func (s *Stager) Stage(ctx context.Context, v Volume, want Staging) error {
	of := Subject{Volume: v}
	s.inflight.interrupt(ctx, v.key())
	s.room.arrived(s.namesOf(of)...)
	release, err := s.Lock(of)
	if err != nil {
		return err
	}
	defer release()
	defer s.tell(s.namesOf(of)...)
	t := s.newTask(of, want.Mode)
	t.asked = true
	if err := t.run(ctx, stageTable); err != nil {
		return err
	}
	return s.repairRecord(ctx, t.stage)
}

// Unstage removes a volume from the node completely. It may be repeated, and continues the work of an earlier call or
// agent that was interrupted:
//
//  1. the PavStage becomes Unstaging, the volume is unmounted from targets that still have it, and detached;
//  2. the staging pod is deleted, and kubelet has unmounted /pav from it;
//  3. the unstaging pod runs, with /pav as the staging pod left it, until one succeeds;
//  4. /pav is removed, and the PavStage is deleted.
//
// With scope Pod, this is done for the PavStage of each client pod first. Path is kubelet's staging path, if it is
// known: anything that is mounted there is unmounted.
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

// unstage removes the subject's stage from the node completely.
func (s *Stager) unstage(ctx context.Context, of Subject) error {
	t := s.newTask(of, "")
	t.ending = true
	err := t.run(ctx, unstageTable)
	if errors.Is(err, ErrFailed) {
		// The call joined the end of a failed attempt: it is reverted, so the volume is unstaged.
		return nil
	}
	return err
}

// task is one call's view of a stage.
type task struct {
	*Stager
	Subject

	mode          corev1.PersistentVolumeMode // of the call; empty if it does not matter
	user          pavdir.Client               // the client pod that a PavStage is for, with scope Pod
	readOnly      bool                        // the client requests a read-only volume
	ending        bool                        // the stage is to be removed completely
	asked         bool                        // kubelet has called Stage, and no step was taken yet
	ahead         bool                        // kubelet has not called
	slotForClient bool                        // the pod that needs the volume is not on the node yet, and needs a slot there, too
	// newCapacity is what the volume is to have on the node, in bytes; 0 if the call is about something else.
	newCapacity int64
	shared      bool // the stage is, or was, for all client pods, so no client pod has a stage of its own

	stage         *pavv1.PavStage // nil if there is none
	written       bool            // the last step has written the stage, and the next look need not read it
	attached      string          // the name under which the volume is attached, or ""
	published     []publication   // targets that have the volume, or may have it
	inUseBy       []publication   // targets of pods that still run; only when unstaging
	clients       []Subject       // stages of client pods that depend on this one
	full          string          // why the node has no slot for a pod that is to be created
	cause         string          // what is to be reported of the stage's pod: that it cannot start, or runs for long
	waiting       bool            // only until kubelet has unmounted /pav from pods
	withheldTo    string          // what is to be done with the volume while no node has it, or ""
	looked        time.Time       // when the call last looked for pods that need the volume
	validationPod *corev1.Pod
	stagingPod    *corev1.Pod
	unstagingPod  *corev1.Pod
	expansionPod  *corev1.Pod // the one whose outcome is not recorded
}

// pods are the pods of the stage, nil if there is none.
func (t *task) pods() []*corev1.Pod {
	return []*corev1.Pod{t.validationPod, t.stagingPod, t.unstagingPod, t.expansionPod}
}

func (s *Stager) newTask(of Subject, mode corev1.PersistentVolumeMode) *task {
	return &task{Stager: s, Subject: of, mode: mode}
}

// run takes steps until nothing is to be done, or ctx ends.
func (t *task) run(ctx context.Context, rules table) error {
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
		d, err := t.decide(ctx, rules, &o)
		if err != nil {
			return t.interrupted(ctx, err)
		}
		next := orReport(o, d.step)
		if next == stepReport && t.ahead {
			return fmt.Errorf("%w: %s", ErrPending, t.cause) // A call of kubelet reports it.
		}
		observability.Note(ctx, observability.Rule, d.rule)
		ctrl.LoggerFrom(ctx).V(2).Info("decided", observability.Step, next, observability.Rule, d.rule)
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
			continue // The object was changed since it was read.
		}
		if err != nil {
			return t.interrupted(ctx, err)
		}
	}
}

// decide returns the next decision. It gathers what takes long to gather, if the decision depends on it.
func (t *task) decide(ctx context.Context, rules table, o *observation) (decision, error) {
	if err := t.observePav(ctx, rules, o); err != nil {
		return decision{}, err
	}
	if d := rules.decide(*o); !createsPod(d.step) {
		return d, nil
	}
	if err := t.observeRoom(ctx, o); err != nil {
		return decision{}, err
	}
	// If the node has no slot, the call waits, and what it waits for may depend on it.
	if err := t.observePav(ctx, rules, o); err != nil {
		t.room.release(t.stage.Name)
		return decision{}, err
	}
	d := rules.decide(*o)
	if !createsPod(d.step) {
		t.room.release(t.stage.Name)
	}
	return d, nil
}

// take takes a step.
func (t *task) take(ctx context.Context, next step) error {
	if createsPod(next) {
		defer t.room.release(t.stage.Name)
	}
	return steps()[next](t, ctx)
}

// note adds the volume to the keys of the call's log line.
func (t *task) note(ctx context.Context) {
	if t.stage == nil {
		return
	}
	spec := &t.stage.Spec
	observability.Note(ctx, observability.Volume, spec.VolumeName)
	observability.Note(ctx, observability.Claim, observability.Name(spec.ClaimRef.Namespace, spec.ClaimRef.Name))
}

// wait returns when something has changed, when the duration is over, or when ctx ends.
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

// interrupted returns ErrPending if err is caused by the end of ctx: the pod may continue to run.
func (t *task) interrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return t.pending(ctx, err)
	}
	return err
}

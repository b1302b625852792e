package stage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/node/health"
	"github.com/albertofaria/pav/internal/node/pavdir"
	"github.com/albertofaria/pav/internal/workflow"
)

// Keeper looks after the node's stages between kubelet's calls: it sees that a staging pod has ended
// under its clients, that a volume does not answer any more, or that kubelet has forgotten a stage, and
// does something about it. It looks where something has happened, and never regularly. It is a
// manager.Runnable, and the only source of the node's metrics about stages.
type Keeper struct {
	stager  *Stager
	health  *health.Tracker
	grace   time.Duration
	metrics prometheus.Registerer
	log     logr.Logger
	now     func() time.Time
	queue   workqueue.TypedRateLimitingInterface[string] // names of stages to look at
	retries workqueue.TypedRateLimiter[string]           // of work that has failed

	// The Stager's, unless a test stands in.
	restageStage func(ctx context.Context, stage string) error
	unstage      func(ctx context.Context, of subject, idle func(context.Context) (bool, error)) error

	wg      sync.WaitGroup
	mu      sync.Mutex
	began   time.Time
	calls   map[string]time.Time // when the last call about a stage ended
	working map[string]bool      // the stages that the keeper itself works on
	deadAt  map[string]time.Time // when a volume was found dead
	rows    map[string]int32     // the last attempt whose volume lived long; since then, each has died soon
	orphans map[string]bool      // the stages of which it was told that nobody uses them
	listed  map[string]bool      // the stages that the API server had at the start
	pauses  map[string]time.Time // until when the keeper leaves stages alone on which it worked in vain
}

// KeeperConfig is what a Keeper works with, besides its Stager.
type KeeperConfig struct {
	Prober health.Prober

	// OrphanGrace is how long kubelet may say nothing about a stage that no pod uses before it is unstaged.
	OrphanGrace time.Duration

	// Metrics takes the metrics; by default controller-runtime's registry.
	Metrics prometheus.Registerer

	Log logr.Logger
}

const (
	// keepers is how many stages are looked at at once; a look may wait for a volume that hangs.
	keepers = 8

	// settle is how long a stage is left alone after a change, so that a burst of them is one look.
	settle = 200 * time.Millisecond

	// longestWork bounds what the keeper does about a stage at a stretch. It is repeated until it is done.
	longestWork = 2 * time.Minute

	// shortestPause and longestPause are how long the keeper waits before it works on a stage again. Kubelet
	// repeats its first call after half a second.
	shortestPause, longestPause = 3 * time.Second, time.Minute
)

// limiter returns what says when to try again what has failed.
func limiter[T comparable]() workqueue.TypedRateLimiter[T] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[T](time.Second, 30*time.Second)
}

// everything stands in the queue for the search for all stages of the node.
const everything = ""

// NewKeeper returns a Keeper, and connects the Stager with it. It must be called before the Stager is.
func NewKeeper(stager *Stager, c KeeperConfig) *Keeper {
	k := &Keeper{
		stager: stager, grace: c.OrphanGrace, metrics: cmp.Or[prometheus.Registerer](c.Metrics, metrics.Registry), log: c.Log, now: time.Now,
		queue:   workqueue.NewTypedRateLimitingQueue(limiter[string]()),
		retries: workqueue.NewTypedItemExponentialFailureRateLimiter[string](shortestPause, longestPause),
		calls:   map[string]time.Time{}, working: map[string]bool{}, deadAt: map[string]time.Time{}, rows: map[string]int32{}, orphans: map[string]bool{}, listed: map[string]bool{}, pauses: map[string]time.Time{},
	}
	k.began = k.now()
	k.restageStage, k.unstage = stager.Restage, stager.unstageOrphan
	k.health = health.NewTracker(c.Prober, k.Look, stager.clusterTime)
	stager.health = k.health
	stager.looked = k.called
	return k
}

// Look says that something about a stage has changed. It never blocks.
func (k *Keeper) Look(stage string) {
	if stage != everything {
		k.queue.AddAfter(stage, settle)
	}
}

// called says that a call about a stage has ended, so that kubelet knows of the stage.
func (k *Keeper) called(stage string) {
	k.mu.Lock()
	if !k.working[stage] { // What the keeper does is no call of kubelet's.
		k.calls[stage] = k.now()
		delete(k.pauses, stage) // It was in the way.
		k.retries.Forget(stage)
	}
	k.mu.Unlock()
	k.Look(stage)
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: each node has its own.
func (*Keeper) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable: it begins with all stages of the node, and looks after them until
// ctx ends. What it has begun then is continued by the next agent.
func (k *Keeper) Start(ctx context.Context) error {
	if err := k.metrics.Register(k.health); err == nil {
		defer k.metrics.Unregister(k.health)
	} else if already := (prometheus.AlreadyRegisteredError{}); !errors.As(err, &already) {
		// Another agent in the same process, as in tests, has the names already.
		return fmt.Errorf("registering metrics: %w", err)
	}
	k.queue.Add(everything)
	for range keepers {
		k.wg.Go(func() { k.work(ctx) })
	}
	<-ctx.Done()
	k.queue.ShutDown()
	k.wg.Wait()
	return nil
}

func (k *Keeper) work(ctx context.Context) {
	for {
		stage, over := k.queue.Get()
		if over {
			return
		}
		k.handle(ctx, stage)
		k.queue.Done(stage)
	}
}

func (k *Keeper) handle(ctx context.Context, stage string) {
	var err error
	if stage == everything {
		err = k.find(ctx)
	} else {
		err = k.keep(ctx, stage)
	}
	switch {
	case err == nil:
		k.queue.Forget(stage)
	case apierrors.IsConflict(err):
		k.queue.AddAfter(stage, settle) // Somebody changed the object since it was read.
	default:
		if ctx.Err() == nil {
			k.log.Error(err, "looking after a stage", k.health.LogKeys(stage)...)
		}
		k.queue.AddRateLimited(stage)
	}
}

// find begins to look after all stages of the node: those with a folder, and those that the API server
// has, as where the node's disk was wiped.
func (k *Keeper) find(ctx context.Context) error {
	names, err := k.stager.dirs.Stages(ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		k.queue.Add(name)
	}
	list := &pavv1.PavStageList{}
	if err := k.stager.client.List(ctx, list, client.MatchingLabels{pavv1.NodeLabel: workflow.Hash(k.stager.node)}); err != nil {
		return fmt.Errorf("listing the node's PavStages: %w", err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for i := range list.Items {
		k.listed[list.Items[i].Name] = true
		k.queue.Add(list.Items[i].Name)
	}
	return nil
}

// keep looks at a stage, and does what is to be done about it.
func (k *Keeper) keep(ctx context.Context, name string) error {
	if unknown, err := k.isUnknown(ctx, name); err != nil {
		return err
	} else if unknown {
		k.forget(name)
		return nil
	}
	stage, err := k.get(ctx, name)
	if err != nil {
		return err
	}
	if stage == nil || isRecord(stage) {
		k.health.Forget(name)
	} else {
		k.health.Update(stage)
	}
	if k.isWorking(name) {
		return nil // It is looked at again at the end of that.
	}
	ended, err := k.endOrphan(ctx, name, stage)
	if err != nil || ended || stage == nil || isRecord(stage) {
		return err
	}
	is, pod, err := k.gather(ctx, stage)
	if err != nil {
		return err
	}
	return k.act(ctx, stage, is, pod)
}

// isUnknown says whether there is no such stage. A folder is made before anything else is done for a stage,
// so the API server need not be asked about a name without one, as a call has several that may be a stage's.
func (k *Keeper) isUnknown(ctx context.Context, name string) (bool, error) {
	k.mu.Lock()
	listed := k.listed[name]
	k.mu.Unlock()
	if listed || k.health.Knows(name) {
		return false, nil
	}
	exists, err := k.stager.dirs.Exists(ctx, name)
	return err == nil && !exists, err
}

// get returns the PavStage of that name, or nil where this node has none.
func (k *Keeper) get(ctx context.Context, name string) (*pavv1.PavStage, error) {
	stage := &pavv1.PavStage{}
	err := k.stager.client.Get(ctx, client.ObjectKey{Name: name}, stage)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("getting PavStage %q: %w", name, err)
	}
	if stage.Spec.NodeName != k.stager.node || going(stage) {
		return nil, nil
	}
	return stage, nil
}

// isRecord says whether a PavStage is but the record of a failed attempt, which holds nothing.
func isRecord(stage *pavv1.PavStage) bool {
	return stage.Status.Phase == pavv1.StageFailed && !slices.Contains(stage.Finalizers, pavv1.StageFinalizer)
}

// begin works on a stage, beside the looks at the others, unless that is going on. It is repeated until it
// succeeds, with pauses in which kubelet's calls get through, which the keeper's work gives way to.
func (k *Keeper) begin(ctx context.Context, stage string, work func(ctx context.Context) error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.working[stage] {
		return
	}
	if left := k.pauses[stage].Sub(k.now()); left > 0 {
		k.queue.AddAfter(stage, left)
		return
	}
	k.working[stage] = true
	k.wg.Go(func() {
		bounded, cancel := context.WithTimeout(ctx, longestWork)
		defer cancel()
		err := work(bounded)
		if err != nil && ctx.Err() == nil && !errors.Is(err, ErrBusy) && !errors.Is(err, ErrPending) && !errors.Is(err, ErrFull) {
			k.log.Error(err, "working on a stage", k.health.LogKeys(stage)...)
		}
		k.end(stage, err == nil)
	})
}

// end notes the end of the work on a stage.
func (k *Keeper) end(stage string, succeeded bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.working, stage)
	delete(k.pauses, stage)
	if succeeded {
		k.retries.Forget(stage)
		k.Look(stage)
		return
	}
	pause := k.retries.When(stage)
	k.pauses[stage] = k.now().Add(pause)
	k.queue.AddAfter(stage, pause)
}

func (k *Keeper) isWorking(stage string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.working[stage]
}

// Forget drops what is remembered of a stage that is gone.
func (k *Keeper) forget(stage string) {
	k.mu.Lock()
	delete(k.calls, stage)
	delete(k.deadAt, stage)
	delete(k.rows, stage)
	delete(k.orphans, stage)
	delete(k.listed, stage)
	delete(k.pauses, stage)
	k.mu.Unlock()
	k.health.Forget(stage)
	k.retries.Forget(stage)
}

// livePublications returns where the stage's volume is on record as published since the node's last start.
func (s *Stager) livePublications(ctx context.Context, stage string) ([]pavdir.Publication, error) {
	all, err := s.dirs.Publications(ctx, stage)
	return slices.DeleteFunc(all, func(p pavdir.Publication) bool { return !p.Same(s.boot) }), err
}

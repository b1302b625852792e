package monitor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/node/health"
	staging "github.com/albertofaria/pav/internal/node/stage"
	"github.com/albertofaria/pav/internal/workflow"
)

// Monitor watches the stages of a node between kubelet's calls. It acts if a staging pod has ended while pods use its
// volume, if a volume does not answer any more, or if kubelet has lost track of a stage. It checks a stage when an
// event arrives, and does not poll. It is a manager.Runnable.
type Monitor struct {
	stager      *staging.Stager
	client      client.Client
	catalogue   staging.Catalogue
	dirs        staging.Directories
	runner      *workflow.Runner
	node        string
	clusterTime func() time.Time

	health   *health.Tracker
	grace    time.Duration
	metrics  prometheus.Registerer
	log      logr.Logger
	now      func() time.Time
	queue    workqueue.TypedRateLimitingInterface[string]   // names of stages to check
	arrivals workqueue.TypedInterface[types.NamespacedName] // claims whose pods have come to the node
	retries  workqueue.TypedRateLimiter[string]             // of failed work

	// Methods of the Stager, unless a test replaces them.
	restageStage func(ctx context.Context, stage string) error
	unstage      func(ctx context.Context, of staging.Subject, idle func(context.Context) (bool, error)) error
	stageAhead   func(ctx context.Context, e staging.Expected) error
	awaited      func(ctx context.Context, e staging.Expected) (bool, error)
	volumeOf     func(ctx context.Context, claim types.NamespacedName) (staging.Expected, bool, error)

	wg      sync.WaitGroup
	mu      sync.Mutex
	calls   map[string]time.Time // when the last call for a stage ended, or when a stage without calls was first seen
	working map[string]bool      // the stages that the monitor itself works on
	deadAt  map[string]time.Time // when a volume was found dead
	resetAt map[string]int32     // the last attempt whose volume worked for long; each later one has died soon
	orphans map[string]bool      // the stages without a user
	listed  map[string]bool      // the stages that the API server may have, even if the node has no directory of them
	pauses  map[string]time.Time // until when the monitor does not work on a stage after a failure

	expected map[string]expectation      // volumes that are to be staged ahead
	ahead    map[string]staging.Expected // the stages that were staged ahead, and for which no call has ended yet
	aheadNow int                         // how many volumes are being staged ahead
}

// Config is the configuration of a Monitor, besides that of its Stager.
type Config struct {
	Prober health.Prober

	// OrphanGrace is how long kubelet may make no call for a stage that no pod uses before it is unstaged.
	OrphanGrace time.Duration

	// Metrics takes the metrics; by default controller-runtime's registry.
	Metrics prometheus.Registerer

	Log logr.Logger
}

const (
	// workers is how many stages are checked at once. A check may wait for a volume that hangs.
	workers = 8

	// finders is how many claims are looked up at once whose pods have come to the node.
	finders = 4

	// burst is how long to wait after a change of a stage, so that several changes cause one check.
	burst = 200 * time.Millisecond

	// longestWork limits one attempt to work on a stage. It is repeated until it succeeds.
	longestWork = 2 * time.Minute

	// shortestPause and longestPause are how long the monitor waits before it works on a stage again. Kubelet
	// repeats its first call after half a second.
	shortestPause, longestPause = 3 * time.Second, time.Minute
)

// limiter returns the backoff of failed work: 1 s doubling to 30 s.
func limiter[T comparable]() workqueue.TypedRateLimiter[T] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[T](time.Second, 30*time.Second)
}

// allStages is the queue's key for looking up all stages of the node.
const allStages = ""

// New returns a Monitor, and connects the Stager with it. It must be called before the Stager serves calls.
func New(stager *staging.Stager, c Config) *Monitor {
	shared := stager.Config()
	m := &Monitor{
		stager: stager, client: shared.Client, catalogue: shared.Catalogue, dirs: shared.Dirs, node: shared.Node, clusterTime: shared.ClusterTime,
		runner: &workflow.Runner{Client: shared.Client, Node: shared.Node},
		grace:  c.OrphanGrace, metrics: cmp.Or[prometheus.Registerer](c.Metrics, metrics.Registry), log: c.Log, now: time.Now,
		queue: workqueue.NewTypedRateLimitingQueue(limiter[string]()), arrivals: workqueue.NewTyped[types.NamespacedName](),
		retries: workqueue.NewTypedItemExponentialFailureRateLimiter[string](shortestPause, longestPause),
		calls:   map[string]time.Time{}, working: map[string]bool{}, deadAt: map[string]time.Time{}, resetAt: map[string]int32{},
		orphans: map[string]bool{}, listed: map[string]bool{}, pauses: map[string]time.Time{},
		expected: map[string]expectation{}, ahead: map[string]staging.Expected{},
	}
	m.restageStage, m.unstage = stager.Restage, stager.UnstageIdle
	m.stageAhead, m.awaited, m.volumeOf = stager.StageAhead, stager.IsAwaited, stager.VolumeOf
	m.health = health.NewTracker(c.Prober, m.Recheck, shared.ClusterTime)
	stager.Observe(m.health, m.callEnded)
	return m
}

// Recheck queues a check of a stage that has changed. It never blocks.
func (m *Monitor) Recheck(stage string) {
	if stage != allStages {
		m.queue.AddAfter(stage, burst)
	}
}

// callEnded notes that a call for a stage has ended: kubelet knows the stage.
func (m *Monitor) callEnded(stage string) {
	m.mu.Lock()
	m.calls[stage] = m.now()
	delete(m.pauses, stage) // The failed work may have met the call's lock.
	delete(m.ahead, stage)
	m.mu.Unlock()
	m.retries.Forget(stage)
	m.Recheck(stage)
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: each node has its own.
func (*Monitor) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable: it begins with all stages of the node, and watches them until ctx ends. The next
// agent continues its unfinished work.
func (m *Monitor) Start(ctx context.Context) error {
	if err := m.metrics.Register(m.health); err == nil {
		defer m.metrics.Unregister(m.health)
	} else if already := (prometheus.AlreadyRegisteredError{}); !errors.As(err, &already) {
		// Another agent in the same process, as in tests, has registered the names already.
		return fmt.Errorf("registering metrics: %w", err)
	}
	m.queue.Add(allStages)
	for range workers {
		m.wg.Go(func() { m.work(ctx) })
	}
	for range finders {
		m.wg.Go(func() { m.workOnArrivals(ctx) })
	}
	<-ctx.Done()
	m.queue.ShutDown()
	m.arrivals.ShutDown()
	m.wg.Wait()
	return nil
}

func (m *Monitor) work(ctx context.Context) {
	for {
		stage, over := m.queue.Get()
		if over {
			return
		}
		m.handle(ctx, stage)
		m.queue.Done(stage)
	}
}

func (m *Monitor) handle(ctx context.Context, stage string) {
	var err error
	if stage == allStages {
		err = m.findAll(ctx)
	} else {
		err = m.check(ctx, stage)
	}
	switch {
	case err == nil:
		m.queue.Forget(stage)
	case apierrors.IsConflict(err):
		m.queue.AddAfter(stage, burst) // The object was changed since it was read.
	default:
		if ctx.Err() == nil {
			m.log.Error(err, "looking after a stage", m.health.LogKeys(stage)...)
		}
		m.queue.AddRateLimited(stage)
	}
}

// findAll queues all stages of the node: those with a directory, and those that the API server has, as the node's disk
// may have been wiped.
func (m *Monitor) findAll(ctx context.Context) error {
	names, err := m.dirs.Stages(ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		m.queue.Add(name)
	}
	list := &pavv1.PavStageList{}
	if err := m.client.List(ctx, list, client.MatchingLabels{pavv1.NodeLabel: workflow.Hash(m.node)}); err != nil {
		return fmt.Errorf("listing the node's PavStages: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range list.Items {
		m.listed[list.Items[i].Name] = true
		m.queue.Add(list.Items[i].Name)
	}
	return nil
}

// check checks a stage, and acts on what it finds.
func (m *Monitor) check(ctx context.Context, name string) error {
	began := m.now()
	unknown, err := m.isUnknown(ctx, name)
	if err != nil {
		return err
	}
	if m.beginAhead(ctx, name, unknown) {
		return nil // It is checked again at the end of that work.
	}
	if unknown {
		m.forget(name, began)
		return nil
	}
	stage, err := m.get(ctx, name)
	if err != nil {
		return err
	}
	if stage == nil || staging.IsRecord(stage) {
		m.health.Forget(name)
	} else {
		m.health.Update(stage)
	}
	if m.isWorking(name) {
		return nil // It is checked again at the end of that work.
	}
	ended, err := m.endOrphan(ctx, name, stage, began)
	if err != nil || ended || stage == nil || staging.IsRecord(stage) {
		return err
	}
	is, pod, err := m.gather(ctx, stage)
	if err != nil {
		return err
	}
	return m.act(ctx, stage, is, pod)
}

// isUnknown reports whether there is no such stage. The directory of a stage is created first, so the API server need
// not be asked about a name without a directory; a call has several names that may be those of a stage.
func (m *Monitor) isUnknown(ctx context.Context, name string) (bool, error) {
	m.mu.Lock()
	listed := m.listed[name]
	m.mu.Unlock()
	if listed || m.health.Knows(name) {
		return false, nil
	}
	exists, err := m.dirs.Exists(ctx, name)
	return err == nil && !exists, err
}

// get returns the PavStage of a name, or nil if this node has none.
func (m *Monitor) get(ctx context.Context, name string) (*pavv1.PavStage, error) {
	stage := &pavv1.PavStage{}
	err := m.client.Get(ctx, client.ObjectKey{Name: name}, stage)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("getting PavStage %q: %w", name, err)
	}
	if stage.Spec.NodeName != m.node || staging.IsTerminating(stage) {
		return nil, nil
	}
	return stage, nil
}

// begin starts work on a stage in the background, unless work on it is in progress. The work is repeated until it
// succeeds. Calls of kubelet interrupt it, and run in the pauses. begin reports whether it has started the work.
func (m *Monitor) begin(ctx context.Context, stage string, work func(ctx context.Context) error) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.working[stage] {
		return false
	}
	if left := m.pauses[stage].Sub(m.now()); left > 0 {
		m.queue.AddAfter(stage, left)
		return false
	}
	m.working[stage] = true
	m.wg.Go(func() {
		bounded, cancel := context.WithTimeout(ctx, longestWork)
		defer cancel()
		err := work(logr.NewContext(bounded, m.log.WithValues(m.health.LogKeys(stage)...)))
		if err != nil && ctx.Err() == nil && !hasToWait(err) {
			m.log.Error(err, "working on a stage", m.health.LogKeys(stage)...)
		}
		m.end(stage, err == nil)
	})
	return true
}

// hasToWait reports whether an error says that work has to wait, and is no failure.
func hasToWait(err error) bool {
	return errors.Is(err, staging.ErrBusy) || errors.Is(err, staging.ErrPending) || errors.Is(err, staging.ErrFull) || errors.Is(err, staging.ErrHeld)
}

// end notes that the work on a stage has ended.
func (m *Monitor) end(stage string, succeeded bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.working, stage)
	delete(m.pauses, stage)
	if succeeded {
		m.retries.Forget(stage)
		m.Recheck(stage)
		return
	}
	pause := m.retries.When(stage)
	m.pauses[stage] = m.now().Add(pause)
	m.queue.AddAfter(stage, pause)
}

func (m *Monitor) isWorking(stage string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.working[stage]
}

// forget removes what is remembered of a stage that was gone at a time. A call that has ended since may have made it
// again.
func (m *Monitor) forget(stage string, gone time.Time) {
	m.mu.Lock()
	if !m.calls[stage].After(gone) {
		delete(m.calls, stage)
	}
	delete(m.deadAt, stage)
	delete(m.resetAt, stage)
	delete(m.orphans, stage)
	delete(m.listed, stage)
	delete(m.pauses, stage)
	delete(m.ahead, stage)
	m.mu.Unlock()
	m.health.Forget(stage)
	m.retries.Forget(stage)
}

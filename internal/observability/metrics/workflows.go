package metrics

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/workflow"
)

// Exists reports whether there is a PavProvisioner of the name. It must answer from memory.
type Exists func(provisioner string) bool

// In returns an Exists that reads from a cache of PavProvisioners.
func In(provisioners interface {
	GetByKey(key string) (object any, exists bool, err error)
}) Exists {
	return func(name string) bool {
		_, exists, err := provisioners.GetByKey(name)
		return exists || err != nil
	}
}

// Workflows counts the outcomes of workflow pods. It is a prometheus.Collector, safe for concurrent use; nil counts
// nothing.
//
// Each pod must be counted after the write that records its outcome. As that is written once, a pod is counted once,
// by any agent; it is not counted if the agent is killed in between.
type Workflows struct {
	durations *prometheus.HistogramVec
	failures  *prometheus.CounterVec
	seen      *seen
	now       func() time.Time
}

// NewWorkflows returns counters. The series of provisioners that do not exist any more are removed at the next
// scrape; if exists is nil, all stay. Now returns the time of the cluster, which the times of pods are compared with.
func NewWorkflows(exists Exists, now func() time.Time) *Workflows {
	w := &Workflows{durations: WorkflowDuration.newHistogram(), failures: WorkflowFailures.newCounter(), now: now}
	w.seen = newSeen(exists, w.durations.MetricVec, w.failures.MetricVec)
	return w
}

// Pod is a workflow pod whose outcome was recorded.
type Pod struct {
	Provisioner string

	// Workflow is one of pavv1's.
	Workflow string

	// Ref is the recorded reference to the pod.
	Ref *pavv1.PodReference

	// Pod is the pod when its outcome was found; nil if it is gone.
	Pod *corev1.Pod
}

// Succeeded counts a pod that has succeeded, now.
func (w *Workflows) Succeeded(p Pod) {
	if w == nil || p.Pod == nil {
		return
	}
	w.seen.note(p.Provisioner)
	w.observe(p)
}

// Failed counts a failure, and the pod that failed, if there was one.
func (w *Workflows) Failed(p Pod, failure *pavv1.WorkflowFailure) {
	if w == nil {
		return
	}
	w.seen.note(p.Provisioner)
	w.failures.WithLabelValues(p.Provisioner, p.Workflow, ReasonOf(failure, p.Pod)).Inc()
	if p.Pod != nil {
		w.observe(p)
	}
}

// observe records the times of a pod whose outcome was recorded now.
func (w *Workflows) observe(p Pod) {
	is, now := timesOf(p.Ref, p.Pod), w.now().Truncate(time.Second)
	part := func(name string, from, to time.Time) {
		if from.IsZero() || to.IsZero() {
			return
		}
		// Clocks of machines may differ.
		w.durations.WithLabelValues(p.Provisioner, p.Workflow, name).Observe(max(to.Sub(from), 0).Seconds())
	}
	part(PartQueue, is.due, is.created)
	part(PartStart, is.created, is.began)
	if is.ended.IsZero() && workflow.Observe(p.Pod) == workflow.Running {
		part(PartRun, is.began, now)
		return
	}
	part(PartRun, is.began, is.ended)
	part(PartResult, is.ended, now)
}

// Describe implements prometheus.Collector.
func (w *Workflows) Describe(descs chan<- *prometheus.Desc) {
	w.durations.Describe(descs)
	w.failures.Describe(descs)
}

// Collect implements prometheus.Collector.
func (w *Workflows) Collect(metrics chan<- prometheus.Metric) {
	w.seen.prune()
	w.durations.Collect(metrics)
	w.failures.Collect(metrics)
}

// seen has the provisioners with series, so that series are removed with their provisioner.
type seen struct {
	exists Exists
	vecs   []*prometheus.MetricVec

	mu    sync.Mutex
	names map[string]bool
}

func newSeen(exists Exists, vecs ...*prometheus.MetricVec) *seen {
	return &seen{exists: exists, vecs: vecs, names: map[string]bool{}}
}

func (s *seen) note(provisioner string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.names[provisioner] = true
}

// prune removes the series of provisioners that are gone.
func (s *seen) prune() {
	if s.exists == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range s.names {
		if s.exists(name) {
			continue
		}
		delete(s.names, name)
		for _, vec := range s.vecs {
			vec.DeletePartialMatch(prometheus.Labels{provisioner.Name: name})
		}
	}
}

// Register exports collectors until the context ends. If another agent in the same process, as in tests, has
// registered the same ones, those stay.
func Register(ctx context.Context, registry prometheus.Registerer, collectors ...prometheus.Collector) error {
	for _, c := range collectors {
		err := registry.Register(c)
		if already := (prometheus.AlreadyRegisteredError{}); errors.As(err, &already) {
			continue
		}
		if err != nil {
			return fmt.Errorf("registering metrics: %w", err)
		}
		context.AfterFunc(ctx, func() { registry.Unregister(c) })
	}
	return nil
}

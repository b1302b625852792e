package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Calls counts the calls of kubelet that a node agent serves, and its attempts to restage volumes. It is a
// prometheus.Collector, safe for concurrent use; nil counts nothing.
type Calls struct {
	publishes *prometheus.HistogramVec
	restages  *prometheus.CounterVec
	seen      *seen
}

// NewCalls returns counters, as NewWorkflows does.
func NewCalls(exists Exists) *Calls {
	c := &Calls{publishes: PublishDuration.newHistogram(), restages: Restages.newCounter()}
	c.seen = newSeen(exists, c.publishes.MetricVec, c.restages.MetricVec)
	return c
}

// Published counts a call that has ended.
func (c *Calls) Published(provisioner string, took time.Duration, err error) {
	if c == nil {
		return
	}
	c.begin(provisioner)
	c.publishes.WithLabelValues(provisioner, resultOf(err == nil)).Observe(took.Seconds())
}

// Restaged counts an attempt whose outcome was recorded.
func (c *Calls) Restaged(provisioner string, succeeded bool) {
	if c == nil {
		return
	}
	c.begin(provisioner)
	c.restages.WithLabelValues(provisioner, resultOf(succeeded)).Inc()
}

// begin starts the count of restages at 0, so that Prometheus sees the first one as an increase.
func (c *Calls) begin(provisioner string) {
	c.seen.note(provisioner)
	for _, result := range results.Values {
		c.restages.WithLabelValues(provisioner, result)
	}
}

func resultOf(succeeded bool) string {
	if succeeded {
		return ResultOK
	}
	return ResultError
}

// Describe implements prometheus.Collector.
func (c *Calls) Describe(descs chan<- *prometheus.Desc) {
	c.publishes.Describe(descs)
	c.restages.Describe(descs)
}

// Collect implements prometheus.Collector.
func (c *Calls) Collect(metrics chan<- prometheus.Metric) {
	c.seen.prune()
	c.publishes.Collect(metrics)
	c.restages.Collect(metrics)
}

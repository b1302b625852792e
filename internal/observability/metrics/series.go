package metrics

import "github.com/prometheus/client_golang/prometheus"

// Labels are the label values of a series: one, or two if the second is not empty.
type Labels [2]string

// Series are the values of a gauge by label values.
type Series map[Labels]float64

// AtLeast raises a value to at least so many seconds, and to at least 0.
func (s Series) AtLeast(labels Labels, seconds float64) {
	s[labels] = max(s[labels], seconds)
}

// AtMost lowers a value to at most so many seconds, which may be below 0.
func (s Series) AtMost(labels Labels, seconds float64) {
	if value, known := s[labels]; !known || seconds < value {
		s[labels] = seconds
	}
}

// Send sends the series to a collector.
func (s Series) Send(desc *prometheus.Desc, to chan<- prometheus.Metric) {
	for labels, value := range s {
		values := labels[:]
		if labels[1] == "" {
			values = labels[:1]
		}
		to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, values...)
	}
}

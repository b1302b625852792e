package metrics

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// Agrees returns how the metrics of a collector differ from the table for an agent. It is for tests.
func Agrees(c prometheus.Collector, agent Agent) error {
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(c); err != nil {
		return fmt.Errorf("registering: %w", err)
	}
	families, err := registry.Gather()
	if err != nil {
		return fmt.Errorf("gathering: %w", err)
	}
	var wrong []error
	for _, family := range families {
		wrong = append(wrong, Check(family, agent))
	}
	return errors.Join(wrong...)
}

// Check returns how a metric that an agent exports differs from the table.
func Check(family *dto.MetricFamily, agent Agent) error {
	table := Table()
	at := slices.IndexFunc(table, func(m Metric) bool { return m.Name == family.GetName() })
	if at < 0 {
		return fmt.Errorf("%s is not in the table", family.GetName())
	}
	m := table[at]
	if !slices.Contains(m.Agents, agent) || family.GetHelp() != m.Help || !strings.EqualFold(family.GetType().String(), string(m.Type)) {
		return fmt.Errorf("%s of the %s agent is a %s of %v, with the help %q", m.Name, agent, family.GetType(), m.Agents, family.GetHelp())
	}
	want := m.LabelNames()
	slices.Sort(want)
	for _, series := range family.GetMetric() {
		var names []string
		for _, pair := range series.GetLabel() {
			names = append(names, pair.GetName())
			at := slices.IndexFunc(m.Labels, func(l Label) bool { return l.Name == pair.GetName() })
			if at < 0 {
				continue
			}
			label := m.Labels[at]
			if label.Values != nil && !slices.Contains(label.Values, pair.GetValue()) {
				return fmt.Errorf("%s: label %s=%q, not one of %q", m.Name, pair.GetName(), pair.GetValue(), label.Values)
			}
		}
		slices.Sort(names)
		if !slices.Equal(names, want) {
			return fmt.Errorf("%s has the labels %q, not %q", m.Name, names, want)
		}
	}
	return nil
}

package main

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/albertofaria/pav/internal/observability/metrics"
)

func writeMetrics(w *bytes.Buffer) {
	fmt.Fprint(w, "\n## Metrics\n\nPrometheus, at `/metrics` of each agent, by HTTPS and to those who [may read them](security.md#metrics), beside those of Go and controller-runtime.\n\n| metric | type | labels | of | |\n|---|---|---|---|---|\n")
	for _, m := range metrics.Table() {
		var labels, agents []string
		for _, label := range m.Labels {
			text := "`" + label.Name + "`"
			if len(label.Values) > 0 {
				text += " (" + strings.Join(label.Values, ", ") + ")"
			}
			labels = append(labels, text)
		}
		for _, agent := range m.Agents {
			agents = append(agents, string(agent))
		}
		fmt.Fprintf(w, "| `%s` | %s | %s | %s | %s |\n", m.Name, m.Type, strings.Join(labels, ", "), strings.Join(agents, ", "), cell(m.Help))
	}
}

package metrics

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// expression is a query of the examples, with the text that its labels are put into.
type expression struct {
	where, query, text string
}

// expressions returns all queries of the dashboard and the rules in examples/monitoring.
func expressions(t *testing.T) []expression {
	t.Helper()
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr, LegendFormat string }
		}
		Templating struct {
			List []struct{ Name string }
		}
	}
	var rules struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr string
				Annotations map[string]string
			}
		}
	}
	read(t, "dashboard.json", &board)
	read(t, "rules.yaml", &rules)
	var all []expression
	for _, panel := range board.Panels {
		for _, target := range panel.Targets {
			all = append(all, expression{"panel " + panel.Title, target.Expr, target.LegendFormat})
		}
	}
	for _, group := range rules.Groups {
		for _, rule := range group.Rules {
			all = append(all, expression{"alert " + rule.Alert, rule.Expr, strings.ReplaceAll(rule.Annotations["summary"]+rule.Annotations["description"], "$labels.", "")})
		}
	}
	if len(all) < 30 {
		t.Fatalf("there are but %d queries", len(all))
	}
	return all
}

func read(t *testing.T, name string, into any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../../examples/monitoring", name))
	if err == nil && strings.HasSuffix(name, ".yaml") {
		text, err = yaml.YAMLToJSON(text)
	}
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

var (
	selector = regexp.MustCompile(`\b([a-z]+(?:_[a-z]+)+)\b(?:\{([^}]*)\})?`)
	matcher  = regexp.MustCompile(`([a-z]+)(=~|!=|=)"([^"]*)"`)
	grouping = regexp.MustCompile(`by \(([a-z, ]+)\)`)
	shown    = regexp.MustCompile(`\{\{ *([a-z]+)\b`)

	// targets are the labels that all metrics of a scrape have; see podmonitor.yaml.
	targets = []string{"agent", "pod", "node", "job", "instance"}

	// others are what is not PaV's own, but exported by its agents.
	others = []string{"process_resident_memory_bytes", "process_cpu_seconds_total", "go_goroutines", "histogram_quantile"}
)

func TestExamplesOfMonitoring_UseMetricsAndLabelsThatExist(t *testing.T) {
	used := map[string]bool{}
	for _, e := range expressions(t) {
		labels := slices.Clone(targets)
		for _, found := range selector.FindAllStringSubmatch(e.query, -1) {
			if slices.Contains(others, found[1]) {
				continue
			}
			m := row(found[1])
			if m == nil {
				if strings.HasPrefix(found[1], "pav_") {
					t.Errorf("%s: there is no metric %s", e.where, found[1])
				}
				continue
			}
			used[m.Name] = true
			labels = append(labels, m.LabelNames()...)
			if m.Type == Histogram {
				labels = append(labels, "le")
			}
			for _, match := range matcher.FindAllStringSubmatch(found[2], -1) {
				checkMatch(t, e.where, m, match[1], match[3])
			}
		}
		by := labels
		for _, group := range grouping.FindAllStringSubmatch(e.query, -1) {
			by = strings.Split(strings.ReplaceAll(group[1], " ", ""), ",")
			for _, label := range by {
				if !slices.Contains(labels, label) {
					t.Errorf("%s: groups by %s, which none of its metrics has", e.where, label)
				}
			}
		}
		for _, label := range shown.FindAllStringSubmatch(strings.ReplaceAll(e.text, "{{ $value", ""), -1) {
			if !slices.Contains(by, label[1]) {
				t.Errorf("%s: says %s, which its series do not have", e.where, label[1])
			}
		}
	}
	for _, m := range Table() {
		if !used[m.Name] {
			t.Errorf("neither the dashboard nor the rules use %s", m.Name)
		}
	}
}

// row returns the metric that has a series of the name, or nil.
func row(series string) *Metric {
	for _, m := range Table() {
		if m.Name == series || m.Type == Histogram && slices.Contains([]string{m.Name + "_bucket", m.Name + "_count", m.Name + "_sum"}, series) {
			return &m
		}
	}
	return nil
}

func checkMatch(t *testing.T, where string, m *Metric, label, value string) {
	t.Helper()
	if slices.Contains(targets, label) {
		return
	}
	at := slices.IndexFunc(m.Labels, func(l Label) bool { return l.Name == label })
	if at < 0 {
		t.Errorf("%s: %s has no label %s", where, m.Name, label)
		return
	}
	if values := m.Labels[at].Values; values != nil && !slices.Contains(values, value) {
		t.Errorf("%s: the label %s of %s is never %q", where, label, m.Name, value)
	}
}

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/observability/metrics"
	"github.com/albertofaria/pav/test/scrape"
)

// good is a provisioner whose volumes' life is measured from its beginning to its end.
const good = "measured"

// scraped are values by metric and labels, as in `pav_volumes{phase="Ready",provisioner="p"}`, added up over
// all agents; of a histogram, how many values it has.
type scraped map[string]float64

// scrapeAll returns PaV's own metrics. Each must be as the table says.
func scrapeAll(ctx context.Context) (scraped, error) {
	pods := &corev1.PodList{}
	if err := kube.List(ctx, pods, client.InNamespace("pav")); err != nil {
		return nil, err
	}
	all := scraped{}
	for i := range pods.Items {
		text, err := scraper.Metrics(ctx, &pods.Items[i])
		if err != nil {
			return nil, err
		}
		kept.look(inMetrics, pods.Items[i].Name, text)
		parser := expfmt.NewTextParser(model.LegacyValidation)
		families, err := parser.TextToMetricFamilies(strings.NewReader(text))
		if err != nil {
			return nil, err
		}
		agent := metrics.Agent(strings.TrimSuffix(pods.Items[i].Labels["app.kubernetes.io/component"], "-agent"))
		for name, family := range families {
			if !strings.HasPrefix(name, "pav_") {
				continue
			}
			if err := metrics.Check(family, agent); err != nil {
				return nil, err
			}
			all.add(family)
		}
	}
	return all, nil
}

func (s scraped) add(family *dto.MetricFamily) {
	for _, series := range family.GetMetric() {
		var labels []string
		for _, pair := range series.GetLabel() {
			labels = append(labels, fmt.Sprintf("%s=%q", pair.GetName(), pair.GetValue()))
		}
		slices.Sort(labels)
		s[family.GetName()+"{"+strings.Join(labels, ",")+"}"] += series.GetGauge().GetValue() + series.GetCounter().GetValue() +
			float64(series.GetHistogram().GetSampleCount())
	}
}

// of returns the metrics of a provisioner, for messages of failed tests.
func (s scraped) of(provisioner string) string {
	var lines []string
	for _, key := range slices.Sorted(maps.Keys(s)) {
		if strings.Contains(key, fmt.Sprintf("provisioner=%q", provisioner)) {
			lines = append(lines, fmt.Sprintf("%s %g", key, s[key]))
		}
	}
	return strings.Join(lines, "\n")
}

// wantParts reports whether there is one value for each part of a workflow's pods of the provisioner good.
func (s scraped) wantParts(workflow string, parts ...string) error {
	for _, part := range parts {
		key := fmt.Sprintf("pav_workflow_duration_seconds{part=%q,provisioner=%q,workflow=%q}", part, good, workflow)
		if s[key] != 1 {
			return fmt.Errorf("%s has %g values, not one", key, s[key])
		}
	}
	return nil
}

func TestMetrics_AreForThoseWhoMayReadThem(t *testing.T) {
	tenant := &authenticationv1.TokenRequest{}
	must(t, kube.SubResource("token").Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: objectMeta("default", "default")}, tenant))
	pods := &corev1.PodList{}
	must(t, kube.List(t.Context(), pods, client.InNamespace("pav")))
	asked := 0
	for i := range pods.Items {
		if pods.Items[i].Status.PodIP == "" || pods.Items[i].DeletionTimestamp != nil {
			continue
		}
		asked++
		for token, want := range map[string]int{"": http.StatusUnauthorized, "nobody": http.StatusUnauthorized, tenant.Status.Token: http.StatusForbidden} {
			eventually(t, "the agent refuses", func(ctx context.Context) error {
				code, text, err := scrape.Get(ctx, scrape.Address(&pods.Items[i]), token)
				if err == nil && (code != want || strings.Contains(text, "pav_")) {
					err = fmt.Errorf("%s answers %d to a token of %d bytes, want %d", pods.Items[i].Name, code, len(token), want)
				}
				return err
			})
		}
	}
	if asked < 3 {
		t.Errorf("only %d agents were asked", asked)
	}
}

// wantMetrics waits until a scrape is as expected.
func wantMetrics(t *testing.T, provisioner, what string, want func(scraped) error) {
	t.Helper()
	eventually(t, "metrics tell of "+what, func(ctx context.Context) error {
		now, err := scrapeAll(ctx)
		if err != nil {
			return err
		}
		if err := want(now); err != nil {
			return fmt.Errorf("%w\n%s", err, now.of(provisioner))
		}
		return nil
	})
}

// measured returns a provisioner that has all pods but that of validation.
func measured(name, create, stage string) string {
	return strings.Replace(provisioner(name, stage, "true"), "  volumeStaging:",
		"    podTemplate:"+container(create)+"\n  volumeDeletion:\n    podTemplate:"+container("true")+"\n  volumeStaging:", 1)
}

func TestMetrics_CoverTheLifeOfAVolume_AndFailures(t *testing.T) {
	const bad, secret = "measured-failing", canary + "-metrics"
	namespace := beside(t)
	apply(t, namespace, documents(
		measured(good, "true", "mkdir /pav/volume"), storageClass(good)+"parameters: {password: "+secret+"}\n",
		measured(bad, "exit 3", "true"), storageClass(bad), claim("bad", bad, "ReadWriteOnce"),
		provisioner("measured-unready", "exit 4", ""), storageClass("measured-unready")+"parameters: {password: "+secret+"}\n",
		claim("unready", "measured-unready", "ReadWriteOnce"), clientPod("waits", "unready", "node2")))
	volume := claim("data", good, "ReadWriteOnce")
	apply(t, namespace, volume)
	reader := clientPod("reader", "data", "node1")
	apply(t, namespace, reader)
	waitRunning(t, namespace, "reader")

	wantMetrics(t, good, "a volume that is used", func(s scraped) error {
		if s[`pav_volumes{phase="Ready",provisioner="measured"}`] != 1 || s[`pav_stages{phase="Staged",provisioner="measured"}`] != 1 ||
			s[`pav_publish_duration_seconds{provisioner="measured",result="ok"}`] != 1 || s[`pav_registered_provisioners{state="registered"}`] < 2*3 {
			return errors.New("no volume is ready, staged and published")
		}
		return errors.Join(s.wantParts("create", "queue", "start", "run", "result"), s.wantParts("stage", "start", "run", "result"))
	})
	wantMetrics(t, bad, "one that fails", func(s scraped) error {
		if s[`pav_workflow_failures_total{provisioner="measured-failing",reason="exit_code",workflow="create"}`] < 1 ||
			s[`pav_volume_failing_seconds{provisioner="measured-failing",step="create"}`] <= 0 ||
			s[`pav_workflow_failures_total{provisioner="measured-unready",reason="exit_code",workflow="stage"}`] < 1 {
			return errors.New("nothing fails")
		}
		return s.wantParts("create", "run") // and it is not counted again
	})
	wantLogs(t, namespace, secret)

	unapply(t, namespace, reader)
	unapply(t, namespace, volume)
	wantMetrics(t, good, "a volume that is gone", func(s scraped) error {
		if s[`pav_volumes{phase="Ready",provisioner="measured"}`]+s[`pav_volumes{phase="Deleting",provisioner="measured"}`] != 0 {
			return errors.New("it is still there")
		}
		return errors.Join(s.wantParts("unstage", "start", "run", "result"), s.wantParts("delete", "queue", "start", "run", "result"))
	})
	wantLifeLogged(t, namespace)
	remove(t, &pavv1.PavProvisioner{ObjectMeta: objectMeta("", good)})
	wantMetrics(t, good, "nothing of a provisioner that is gone", func(s scraped) error {
		if left := s.of(good); left != "" {
			return errors.New("there are series of it")
		}
		return nil
	})
}

// wantLogs waits until the agents have logged that the test's volumes were provisioned and not staged, with the
// keys that both use, and fails the test if any of them logs a word that a volume's context has.
func wantLogs(t *testing.T, namespace, secret string) {
	t.Helper()
	wants := map[string]map[string]string{
		"provisioned a volume": {"claim": namespace + "/unready", "provisioner": "measured-unready", "volume": "pvc-"},
		"call failed":          {"claim": namespace + "/unready", "provisioner": "measured-unready", "volume": "pvc-", "node": "node2"},
	}
	eventually(t, "the agents' logs have the keys", func(ctx context.Context) error {
		text, err := agentsLogs(ctx)
		if err != nil {
			return err
		}
		if strings.Contains(text, secret) {
			t.Error("an agent logs what a volume's context has")
		}
		var missing []error
		for message, keys := range wants {
			if !slices.ContainsFunc(strings.Split(text, "\n"), func(line string) bool { return says(line, message, keys) }) {
				missing = append(missing, fmt.Errorf("no line %q has %v", message, keys))
			}
		}
		return errors.Join(missing...)
	})
}

// wantLifeLogged waits until the agents have logged each step in the life of the claim "data", which it must have done once,
// and fails the test if one of them logs an unexpected error about a volume of the namespace.
func wantLifeLogged(t *testing.T, namespace string) {
	t.Helper()
	keys := map[string]string{"claim": namespace + "/data", "provisioner": good, "volume": "pvc-", "duration": ""}
	onNode := maps.Clone(keys)
	onNode["node"] = "node1"
	wants := map[string]map[string]string{"provisioned a volume": keys, "staged a volume": onNode, "unstaged a volume": onNode, "deleted a volume": keys}
	eventually(t, "the agents' logs have the life of a volume", func(ctx context.Context) error {
		text, err := agentsLogs(ctx)
		if err != nil {
			return err
		}
		times := map[string]int{}
		for line := range strings.Lines(text) {
			for message, keys := range wants {
				if says(line, message, keys) {
					times[message]++
				}
			}
			if strings.Contains(line, "Reconciler error") && strings.Contains(line, namespace) {
				t.Errorf("an agent logs %s", line)
			}
		}
		var wrong []error
		for message := range wants {
			if times[message] > 1 {
				t.Errorf("%q is logged %d times", message, times[message])
			}
			if times[message] == 0 {
				wrong = append(wrong, fmt.Errorf("no line %q has %v", message, wants[message]))
			}
		}
		return errors.Join(wrong...)
	})
}

// agentsLogs returns what all agents have logged in the last ten minutes.
func agentsLogs(ctx context.Context) (string, error) {
	return kubectl(ctx, "", "-n", "pav", "logs", "-l", "app.kubernetes.io/name=pav", "--tail=-1", "--since=10m", "--max-log-requests=10")
}

// says whether a line of a log has a message and values that begin as is wanted, by key.
func says(line, message string, keys map[string]string) bool {
	values := map[string]any{}
	if json.Unmarshal([]byte(line), &values) != nil || values["msg"] != message {
		return false
	}
	for key, want := range keys {
		if got, there := values[key].(string); !there || !strings.HasPrefix(got, want) {
			return false
		}
	}
	return true
}

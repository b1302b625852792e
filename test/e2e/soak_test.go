package e2e

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/test/seed"
)

// soakFor returns how long the soak takes: what PAV_SOAK says, by default an hour.
func soakFor(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("PAV_SOAK")
	if text == "" {
		return time.Hour
	}
	wanted, err := time.ParseDuration(text)
	must(t, err)
	return wanted
}

// For an hour, claims and clients of directories, FUSE and block devices come and go, dynamic and static ones. Creation
// and deletion pods fail, one request of the agents in five fails, agents are killed, a node is rebooted, and the
// certificate is renewed. In the end each claim had what it asked for, and nothing is left.
func TestSoak(t *testing.T) {
	namespace := start(t)
	chosen, total := seed.Of(t), soakFor(t)
	s := &soak{random: seed.Stream(chosen, 0), began: time.Now(), line: startFaultyLine(t)}
	finish := s.work(t, namespace, chosen)

	s.disturbFor(t, total/6)
	early := s.measure(t)
	s.disturbFor(t, total/6)
	s.reboot(t, "node2")
	s.disturbFor(t, total/3)
	renewCertificate(t)
	s.disturbFor(t, total-time.Since(s.began))
	late := s.measure(t)

	s.line.faulty.Store(false)
	finish()
	must(t, s.line.wantFaults(t.Context()))
	for _, w := range s.soakers {
		t.Logf("%s: %d claims came and went", w.name(), w.rounds.Load())
		if w.rounds.Load() == 0 {
			t.Errorf("%s did nothing", w.name())
		}
	}
	t.Logf("in %s: %d agents killed; of %d requests of the agents, %d failed", time.Since(s.began).Round(time.Second), s.kills, s.line.requests.Load(), s.line.failed.Load())
	for what, before := range early {
		after := late[what]
		t.Logf("%s: %.1f early, %.1f late (%+.0f%%)", what, before, after, 100*(after/before-1))
		if after > 1.1*before {
			t.Errorf("%s grew from %.1f to %.1f", what, before, after)
		}
	}
}

// soak has the work during the soak.
type soak struct {
	random  *rand.Rand
	began   time.Time
	line    *faultyLine
	soakers []*soaker
	kills   int
}

// work has soakers of all kinds work until finish is called.
func (s *soak) work(t *testing.T, namespace string, chosen uint64) (finish func()) {
	t.Helper()
	for _, m := range soakMedia {
		storage := newSoakStorage(t, namespace, m)
		for _, static := range []bool{false, true} {
			w := &soaker{storage: storage, medium: m, static: static, fresh: true, random: seed.Stream(chosen, uint64(len(s.soakers)+1))}
			w.doing.Store("nothing yet")
			s.soakers = append(s.soakers, w)
		}
	}
	ctx := t.Context()
	stopping, stop := context.WithCancel(ctx)
	var working sync.WaitGroup
	for _, w := range s.soakers {
		working.Go(func() {
			for stopping.Err() == nil {
				if err := w.round(ctx); err != nil {
					t.Errorf("%s, round %d, %s: %v", w.name(), w.rounds.Load()+1, w.doing.Load(), err)
					return
				}
				w.rounds.Add(1)
			}
		})
	}
	finish = sync.OnceFunc(func() { stop(); working.Wait() })
	t.Cleanup(func() {
		finish()
		sweepChurn(t, namespace)
		for _, w := range s.soakers {
			if w.static {
				remove(t, &corev1.PersistentVolume{ObjectMeta: objectMeta("", w.name())})
			}
		}
		s.forgetVolumes(t, "node2")
	})
	return finish
}

// disturbFor kills agents at random moments for a time.
func (s *soak) disturbFor(t *testing.T, wait time.Duration) {
	t.Helper()
	until := time.Now().Add(wait)
	for time.Now().Before(until) && !t.Failed() {
		pause(t.Context(), min(time.Duration(10+s.random.IntN(50))*time.Second, time.Until(until)))
		all, err := agents(t.Context())
		must(t, err)
		if len(all) == 0 {
			t.Fatal("there are no agents")
		}
		agent := &all[s.random.IntN(len(all))]
		if containerID(agent) == "" {
			continue // it is new
		}
		kind := chooseDisturbance(s.random, agent)
		if _, err := kind.apply(t.Context(), agent); err != nil {
			t.Logf("%s of %s: %v", kind.name, agent.Name, err) // its node may be away
			continue
		}
		s.kills++
	}
	if t.Failed() {
		t.FailNow()
	}
}

func (s *soak) reboot(t *testing.T, node string) {
	t.Helper()
	t.Cleanup(func() { onCluster(t, "node", "start", node) }) // In case the reboot is left half done.
	onCluster(t, "node", "reboot", node)
	within(t, soakWithin, "all agents are ready after the reboot", func(ctx context.Context) error { return agentsReady(ctx, "") })
}

// forgetVolumes removes what kubelet has of volumes that it forgot when its node was rebooted, once nothing is mounted
// there: it would keep their empty directories forever.
func (s *soak) forgetVolumes(t *testing.T, node string) {
	t.Helper()
	eventually(t, "no volume is staged any more", func(ctx context.Context) error {
		stages := &pavv1.PavStageList{}
		if err := kube.List(ctx, stages); err != nil {
			return err
		}
		if n := len(stages.Items); n > 0 {
			return fmt.Errorf("there are %d PavStages", n)
		}
		return nil
	})
	ctx, cancel := cleanupContext(t)
	defer cancel()
	const directories = kubeletCSI + "/soak-* " + kubeletCSI + "/volumeDevices/{pvc-*,static-*,staging/*,publish/*}"
	if _, err := onNode(ctx, node, "bash", "-c", "rm -rf --one-file-system "+directories); err != nil {
		t.Error(err)
	}
}

// renewCertificate takes the webhook's certificate away, as if it had ended, and waits for another.
func renewCertificate(t *testing.T) {
	t.Helper()
	read := func(ctx context.Context) (*corev1.Secret, *x509.Certificate, error) {
		secret := &corev1.Secret{}
		if err := kube.Get(ctx, client.ObjectKey{Namespace: "pav", Name: "webhook-certificate"}, secret); err != nil {
			return nil, nil, err
		}
		block, _ := pem.Decode(secret.Data["tls.crt"])
		if block == nil {
			return secret, nil, errors.New("there is no certificate")
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		return secret, certificate, err
	}
	secret, before, err := read(t.Context())
	must(t, err)
	must(t, kube.Patch(t.Context(), secret, client.RawPatch(types.MergePatchType, []byte(`{"data":null}`))))
	within(t, soakWithin, "the certificate is renewed, and definitions are judged", func(ctx context.Context) error {
		_, after, err := read(ctx)
		if err != nil {
			return err
		}
		if after.Equal(before) {
			return errors.New("it is as it was")
		}
		return definitionsAreJudged(ctx)
	})
}

// measure returns what the agents need, by agent and measure: of all replicas, the one that needs most. They are left
// alone meanwhile, under load.
func (s *soak) measure(t *testing.T) map[string]float64 {
	t.Helper()
	within(t, soakWithin, "all agents are ready", func(ctx context.Context) error { return agentsReady(ctx, "") })
	pause(t.Context(), 90*time.Second) // each has seen some work
	samples := map[string][]float64{}
	for range 10 {
		pause(t.Context(), 3*time.Second)
		most := map[string]float64{}
		within(t, stepTimeout, "the agents' metrics are read", func(ctx context.Context) error {
			all, err := agents(ctx)
			if err != nil {
				return err
			}
			for i := range all {
				text, err := scraper.Metrics(ctx, &all[i])
				if err != nil {
					return err
				}
				if err := needs(text, component(&all[i]), most); err != nil {
					return err
				}
			}
			return nil
		})
		for what, value := range most {
			samples[what] = append(samples[what], value)
		}
	}
	medians := map[string]float64{}
	for what, values := range samples {
		slices.Sort(values)
		medians[what] = values[len(values)/2]
	}
	return medians
}

// needs adds what an agent's metrics say to what its like need most.
func needs(text, agent string, most map[string]float64) error {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		return err
	}
	for name, unit := range map[string]struct {
		what string
		size float64
	}{
		"process_resident_memory_bytes": {"resident memory in MiB", 1 << 20},
		"process_open_fds":              {"descriptors", 1},
		"go_goroutines":                 {"goroutines", 1},
	} {
		family := families[name]
		if family == nil {
			return fmt.Errorf("the %s has no metric %s", agent, name)
		}
		what := agent + ", " + unit.what
		most[what] = max(most[what], family.GetMetric()[0].GetGauge().GetValue()/unit.size)
	}
	return nil
}

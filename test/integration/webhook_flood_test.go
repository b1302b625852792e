package integration

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/albertofaria/pav/test/controlplane"
	"github.com/albertofaria/pav/test/flood"
	"github.com/albertofaria/pav/test/scrape"
)

// process is the controller agent as its container runs it: a process of the program itself, with a token and a memory
// limit.
type process struct {
	command *exec.Cmd
	metrics string // where it serves them
	limit   int64
	log     bytes.Buffer
	ended   chan error
}

// launchProcess starts a replica in a process of its own, and waits until it is ready.
func (w *webhook) launchProcess(t *testing.T) (*process, *replica) {
	t.Helper()
	program := filepath.Join(t.TempDir(), "pav")
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", program, "github.com/albertofaria/pav/cmd/pav")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the program: %v: %s", err, out)
	}
	account := tokenFor(t, w.cluster, client.ObjectKey{Namespace: namespace, Name: "controller-agent"})
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"a": {Server: account.Host, CertificateAuthorityData: account.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"a": {Token: account.BearerToken}},
		Contexts:       map[string]*clientcmdapi.Context{"a": {Cluster: "a", AuthInfo: "a"}},
		CurrentContext: "a",
	}, kubeconfig); err != nil {
		t.Fatal(err)
	}
	r := &replica{address: freeAddress(t), probes: freeAddress(t)}
	objects, err := manifests()
	if err != nil {
		t.Fatal(err)
	}
	limit, settings, err := controlplane.ControllerLimits(objects)
	if err != nil {
		t.Fatal(err)
	}
	metrics := freeAddress(t)
	p := &process{limit: limit, metrics: metrics, ended: make(chan error, 1), command: exec.CommandContext(lasting(t), program, "controller",
		"--namespace", namespace, "--metrics-address", metrics, "--probe-address", r.probes, "--webhook-address", r.address)}
	p.command.Env = append(append(os.Environ(), "KUBECONFIG="+kubeconfig), settings...)
	p.command.Stdout, p.command.Stderr = &p.log, &p.log
	if err := p.command.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { p.ended <- p.command.Wait() }()
	t.Cleanup(func() { p.stop(t) })
	w.mu.Lock()
	w.replicas = append(w.replicas, r)
	w.mu.Unlock()
	eventually(t, "the replica is ready", func(ctx context.Context) (bool, string) { return r.ready(ctx) })
	return p, r
}

func (p *process) stop(t *testing.T) {
	t.Helper()
	_ = p.command.Process.Signal(syscall.SIGTERM)
	select {
	case err := <-p.ended:
		if err != nil {
			t.Errorf("the agent ended with: %v\n%s", err, p.log.String())
		}
	case <-time.After(deadline):
		_ = p.command.Process.Kill()
		t.Error("the agent does not end")
	}
}

// peak returns how much memory the process has ever had resident, in bytes.
func (p *process) peak(t *testing.T) int64 {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.command.Process.Pid), "status"))
	if err != nil {
		t.Fatal("the agent has ended: ", err)
	}
	for line := range strings.Lines(string(text)) {
		if value, found := strings.CutPrefix(line, "VmHWM:"); found {
			kib, err := strconv.ParseInt(strings.Fields(value)[0], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return kib << 10
		}
	}
	t.Fatal("the process has no memory")
	return 0
}

// checkMetrics asks for metrics with tokens of someone who may not read them, and then may.
func checkMetrics(t *testing.T, c *cluster, address string) {
	t.Helper()
	const in = "policed-metrics"
	openNamespace(t, c, in, "")
	tenantOf(t, c, in)
	token := tokenFor(t, c, client.ObjectKey{Namespace: in, Name: "tenant"}).BearerToken
	get := func(ctx context.Context, token string) (int, string) {
		code, text, err := scrape.Get(ctx, address, token)
		if err != nil {
			t.Fatal(err)
		}
		return code, text
	}
	eventually(t, "metrics are served", func(ctx context.Context) (bool, string) { // The agent is ready without them.
		_, _, err := scrape.Get(ctx, address, "")
		return err == nil, fmt.Sprint(err)
	})
	for token, want := range map[string]int{"": http.StatusUnauthorized, "nobody": http.StatusUnauthorized, token: http.StatusForbidden} {
		if code, text := get(t.Context(), token); code != want || strings.Contains(text, "go_") {
			t.Errorf("a token of %d bytes gets %d and %d bytes, want %d", len(token), code, len(text), want)
		}
	}
	bindEverywhere(t, c, in, "pav-read-metrics", nil)
	eventually(t, "who may read metrics reads them", func(ctx context.Context) (bool, string) { // A refusal is remembered for some seconds.
		code, text := get(ctx, token)
		return code == http.StatusOK && strings.Contains(text, "go_goroutines"), fmt.Sprint(code)
	})
}

// In most clusters every pod can call the webhook. Large requests must neither kill the agent nor block the check of
// definitions.
func TestWebhook_IsNotFloodedByItsCallers(t *testing.T) {
	c := start(t)
	w := serveWebhook(t, c)
	agent, r := w.launchProcess(t)
	checkMetrics(t, c, agent.metrics)
	const at, waits = 24, 10 * time.Second
	for _, wave := range []struct {
		name    string
		body    []byte
		chunked bool
	}{
		{"of 6.6 MB", flood.Review(6_600_000), false},
		{"of 6.6 MB that do not say so", flood.Review(6_600_000), true},
		{"of as much as is taken", flood.Review(3_600_000), false},
		{"of as much as passes beside large ones", flood.Review(128 << 10), false},
	} {
		before := agent.peak(t)
		ctx, cancel := context.WithTimeout(t.Context(), deadline)
		var sent, refused int
		var mu sync.Mutex
		var bodies sync.WaitGroup
		for range at {
			bodies.Go(func() {
				code, err := flood.Send(ctx, r.address, wave.body, wave.chunked)
				mu.Lock()
				defer mu.Unlock()
				sent++
				if err != nil || code != http.StatusOK {
					refused++
				}
			})
		}
		done := make(chan struct{})
		go func() { bodies.Wait(); close(done) }()
		judged := 0
		for flooded := true; flooded; judged++ {
			begin := time.Now()
			if err := w.try(ctx, provisionerOf(fmt.Sprintf("beside-a-flood-%d", judged))); err != nil {
				t.Errorf("bodies %s: a definition was not judged: %v", wave.name, err)
			}
			if took := time.Since(begin); took > waits {
				t.Errorf("bodies %s: a definition was judged after %s", wave.name, took)
			}
			select {
			case <-done:
				flooded = false
			default:
			}
		}
		cancel()
		peak := agent.peak(t)
		t.Logf("%d bodies %s: %d refused, %d definitions judged beside; at most %d MiB resident, %d before", sent, wave.name, refused, judged, peak>>20, before>>20)
		if peak > agent.limit {
			t.Errorf("bodies %s: the agent had %d bytes of memory, and its limit is %d", wave.name, peak, agent.limit)
		}
		if sent != at || len(wave.body) > 4<<20 && refused != at {
			t.Errorf("bodies %s: %d were sent, and %d refused", wave.name, sent, refused)
		}
	}
}

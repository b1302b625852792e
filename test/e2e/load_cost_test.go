package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/queue"
	"github.com/albertofaria/pav/internal/workflow"
)

// podCensus counts the validation, creation, expansion, modification and deletion pods whose containers have not all ended.
type podCensus struct {
	stop func()
	done chan struct{}

	// The highest counts, overall and for any one provisioner, of how many pods in all. They are to be
	// read when done is closed.
	overall, perProvisioner, all int
}

// watchPods begins a census.
func watchPods(t *testing.T) *podCensus {
	t.Helper()
	c := &podCensus{done: make(chan struct{})}
	pods, open := map[types.UID]bool{}, map[string]map[types.UID]bool{}
	see := func(kind watch.EventType, object client.Object) {
		pod, provisioner := object.(*corev1.Pod), object.GetLabels()[pavv1.ProvisionerLabel]
		pods[pod.UID] = true
		if open[provisioner] == nil {
			open[provisioner] = map[types.UID]bool{}
		}
		if kind == watch.Deleted || workflow.Judge(pod).IsOver() {
			delete(open[provisioner], pod.UID)
		} else {
			open[provisioner][pod.UID] = true
		}
		overall := 0
		for _, of := range open {
			overall += len(of)
			c.perProvisioner = max(c.perProvisioner, len(of))
		}
		c.overall, c.all = max(c.overall, overall), len(pods)
	}
	events := follow(t.Context(), t, &corev1.PodList{}, see, client.HasLabels{pavv1.WorkflowLabel})
	c.stop = events.Stop
	t.Cleanup(events.Stop)
	go func() {
		defer close(c.done)
		for event := range events.ResultChan() {
			if pod, ok := event.Object.(*corev1.Pod); ok {
				see(event.Type, pod)
			}
		}
	}()
	return c
}

// check ends the census, which must have seen so many pods, and never more at once than the limits allow.
func (c *podCensus) check(t *testing.T, pods int, limits queue.Limits) {
	t.Helper()
	c.stop()
	<-c.done
	t.Logf("of %d pods, at most %d ran at once, %d of one provisioner; the limits are %d and %d", c.all, c.overall, c.perProvisioner, limits.Overall, limits.PerProvisioner)
	if c.overall > limits.Overall || c.perProvisioner > limits.PerProvisioner {
		t.Error("these are more than the limits")
	}
	if c.all != pods {
		t.Errorf("there were %d pods, want %d", c.all, pods)
	}
}

// startController starts one controller agent, as it is deployed, and returns its pod.
func startController(t *testing.T) *corev1.Pod {
	t.Helper()
	scaleController(t, 1)
	var started *corev1.Pod
	eventually(t, "the controller agent leads", func(ctx context.Context) error {
		all, err := agents(ctx)
		i := slices.IndexFunc(all, func(pod corev1.Pod) bool { return component(&pod) == controllerAgent })
		if err != nil || i < 0 {
			return errors.Join(err, errors.New("there is none"))
		}
		started = &all[i]
		lease := &coordinationv1.Lease{}
		if err := kube.Get(ctx, client.ObjectKey{Namespace: "pav", Name: "pav-controller"}, lease); err != nil {
			return err
		}
		if holder := ptr.Deref(lease.Spec.HolderIdentity, ""); !strings.HasPrefix(holder, started.Name+"_") {
			return fmt.Errorf("%q leads", holder)
		}
		if s := started.Status.ContainerStatuses; len(s) == 0 || !s[0].Ready {
			return fmt.Errorf("%s is not ready", started.Name)
		}
		return nil
	})
	return started
}

// peakMemory returns the highest resident memory of an agent so far, in bytes.
func peakMemory(t *testing.T, agent *corev1.Pod) int {
	t.Helper()
	const script = `for group in $(grep -lsE "/$1\$" /proc/[0-9]*/cgroup); do sed -n 's/^VmHWM:\s*\([0-9]*\) kB$/\1/p' "${group%cgroup}status"; done`
	out, err := onNode(t.Context(), agent.Spec.NodeName, "bash", "-c", script, "peak-memory", containerID(agent))
	must(t, err)
	peak, err := strconv.Atoi(strings.TrimSpace(out))
	must(t, err)
	return peak << 10
}

// requests are numbers of requests to the API server, by kind of request.
type requests map[string]float64

// requestsOf returns the requests that an agent has made so far, by method, as its metrics tell.
func requestsOf(t *testing.T, agent *corev1.Pod) requests {
	t.Helper()
	out, err := scraper.Metrics(t.Context(), agent)
	must(t, err)
	made := requests{}
	for line := range strings.Lines(out) {
		if !strings.HasPrefix(line, "rest_client_requests_total{") {
			continue
		}
		_, method, _ := strings.Cut(line, `method="`)
		method, _, _ = strings.Cut(method, `"`)
		number, err := strconv.ParseFloat(strings.Fields(line)[1], 64)
		must(t, err)
		made[method] += number
	}
	return made
}

// since returns the requests after an earlier moment.
func (r requests) since(before requests) requests {
	made := maps.Clone(r)
	for what, number := range before {
		made[what] -= number
	}
	return made
}

func (r requests) total() float64 {
	total := 0.0
	for _, number := range r {
		total += number
	}
	return total
}

// each returns the requests for each of n volumes, as text.
func (r requests) each(n int) string {
	var parts []string
	for _, what := range slices.Sorted(maps.Keys(r)) {
		if number := r[what] / float64(n); number >= 0.05 {
			parts = append(parts, fmt.Sprintf("%s %.1f", what, number))
		}
	}
	return fmt.Sprintf("%.1f requests for each: %s", r.total()/float64(n), strings.Join(parts, ", "))
}

// requestCounter counts the requests that go through it, by verb, resource and, where they fail, code.
type requestCounter struct {
	mu   sync.Mutex
	made requests
}

func (c *requestCounter) read() requests {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.made)
}

func (c *requestCounter) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		// /api/v1 or /apis/GROUP/VERSION, then the namespace, the resource, the name, the subresource.
		path := strings.Split(strings.Trim(request.URL.Path, "/"), "/")
		path = path[min(len(path), map[string]int{"api": 2, "apis": 3}[path[0]]):]
		if len(path) > 2 && path[0] == "namespaces" {
			path = path[2:]
		}
		what := request.Method
		switch {
		case request.URL.Query().Get("watch") != "":
			what = "WATCH"
		case request.Method == http.MethodGet && len(path) == 1:
			what = "LIST"
		}
		for i, part := range path {
			if i != 1 {
				what += map[int]string{0: " ", 2: "/"}[i] + part
			}
		}
		response, err := next.RoundTrip(request)
		if err == nil && response.StatusCode >= http.StatusBadRequest {
			what += fmt.Sprintf(" (%d)", response.StatusCode)
		}
		c.mu.Lock()
		c.made[what]++
		c.mu.Unlock()
		return response, err
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

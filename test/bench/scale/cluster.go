package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/albertofaria/pav/test/bench/sample"
	"github.com/albertofaria/pav/test/controlplane"
)

// patience is how long a step may take that is not measured.
const patience = 2 * time.Hour

// cluster is a control plane, with the agents as child processes.
type cluster struct {
	settings settings
	plane    *controlplane.Plane
	agent    *rest.Config // the controller agent's
	limits   []string     // the controller agent's environment, as far as it is for Go's runtime

	controller, nodes *child
	unwatch           context.CancelFunc
	claims            int // that were ever created

	mu    sync.Mutex
	bound map[string]time.Time // when each claim was seen to be bound
	news  chan struct{}        // a claim was bound
}

// begin starts a control plane, and watches claims. The caller must end it, even after an error.
func begin(ctx context.Context, s settings) (*cluster, error) {
	c := &cluster{settings: s, bound: map[string]time.Time{}, news: make(chan struct{}, 1)}
	watching, unwatch := context.WithCancel(ctx)
	c.unwatch = unwatch
	var err error
	if c.plane, err = controlplane.Start(ctx, s.assets); err != nil {
		return c, err
	}
	objects, err := controlplane.Manifests(s.manifest)
	if err != nil {
		return c, err
	}
	served := func(object *unstructured.Unstructured) bool { return object.GetKind() != controlplane.KindWebhook }
	if err := c.plane.Install(ctx, objects, served); err != nil {
		return c, err
	}
	if c.agent, err = c.plane.ControllerAgent(); err != nil {
		return c, err
	}
	if _, c.limits, err = controlplane.ControllerLimits(objects); err != nil {
		return c, err
	}
	return c, c.watchClaims(watching)
}

// end ends all processes.
func (c *cluster) end() error {
	c.unwatch()
	var problems []error
	for _, process := range []*child{c.controller, c.nodes} {
		if process != nil {
			problems = append(problems, process.end())
		}
	}
	if c.plane != nil {
		problems = append(problems, c.plane.Stop())
	}
	return errors.Join(problems...)
}

// watchClaims notes when claims are bound.
func (c *cluster) watchClaims(ctx context.Context) error {
	claims, err := cache.New(c.plane.Environment.Config, cache.Options{Scheme: c.plane.Admin.Scheme()})
	if err != nil {
		return err
	}
	informer, err := claims.GetInformer(ctx, &corev1.PersistentVolumeClaim{}, cache.BlockUntilSynced(false))
	if err != nil {
		return err
	}
	note := func(object any) {
		claim, ok := object.(*corev1.PersistentVolumeClaim)
		if !ok || claim.Status.Phase != corev1.ClaimBound {
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if _, known := c.bound[claim.Name]; !known {
			c.bound[claim.Name] = time.Now()
		}
		select {
		case c.news <- struct{}{}:
		default:
		}
	}
	handler := toolscache.ResourceEventHandlerFuncs{AddFunc: note, UpdateFunc: func(_, now any) { note(now) }}
	if _, err := informer.AddEventHandler(handler); err != nil {
		return err
	}
	go func() { _ = claims.Start(ctx) }()
	return nil
}

// whenBound waits until all claims of these names are bound, and returns when each was.
func (c *cluster) whenBound(ctx context.Context, names []string) (map[string]time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		found := map[string]time.Time{}
		c.mu.Lock()
		for _, name := range names {
			if at, ok := c.bound[name]; ok {
				found[name] = at
			}
		}
		c.mu.Unlock()
		if len(found) == len(names) {
			return found, nil
		}
		select {
		case <-c.news:
		case <-ctx.Done():
			return nil, fmt.Errorf("%d of %d claims are bound: %w", len(found), len(names), ctx.Err())
		}
	}
}

// rest measures the agents while nothing happens.
func (c *cluster) rest(ctx context.Context, r *report) error {
	if err := c.settle(ctx); err != nil {
		return err
	}
	return c.during(ctx, r, "at rest", func(ctx context.Context) error { return pass(ctx, c.settings.period) })
}

// An agent has nothing to do if it makes at most leaseRequests in quietPeriod, which are those of its lease. That is long enough for it to
// notice that, and to give memory back.
const (
	quietPeriod   = 30 * time.Second
	leaseRequests = 30
)

// settle waits until the controller agent has nothing to do: after work, it still reports what it has done.
func (c *cluster) settle(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	before, err := c.controller.usage()
	for err == nil {
		if err := pass(ctx, quietPeriod); err != nil {
			return fmt.Errorf("waiting until the agent has nothing to do: %w", err)
		}
		var after usage
		if after, err = c.controller.usage(); err == nil && after.Requests-before.Requests <= leaseRequests {
			return nil
		}
		before = after
	}
	return err
}

// work measures the agents while claims come at a steady rate, and how long each claim takes.
func (c *cluster) work(ctx context.Context, r *report) error {
	s := c.settings
	made := map[string]time.Time{}
	var names []string
	var bound map[string]time.Time
	err := c.during(ctx, r, fmt.Sprintf("%d claims/s", s.rate), func(ctx context.Context) (err error) {
		tick := time.NewTicker(time.Second / time.Duration(s.rate))
		defer tick.Stop()
		for range int(s.period.Seconds()) * s.rate {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return ctx.Err()
			}
			claim := c.nextClaim()
			names, made[claim.Name] = append(names, claim.Name), time.Now()
			if err := c.plane.Admin.Create(ctx, claim); err != nil {
				return err
			}
		}
		bound, err = c.whenBound(ctx, names)
		return err
	})
	if err != nil {
		return err
	}
	times := make(sample.Sample, 0, len(names))
	for _, name := range names {
		times = append(times, bound[name].Sub(made[name]).Seconds())
	}
	low, high, _ := times.Range()
	r.linef("\nA claim was bound after %.2f s (median of %d; 95%% range %.2f to %.2f), 99 of 100 within %.2f s.", times.Median(), len(times), low, high, times.Quantile(0.99))
	return nil
}

// restart measures how long after the start of a controller agent it has provisioned a claim that waits for it.
func (c *cluster) restart(ctx context.Context, r *report) error {
	if err := c.controller.end(); err != nil {
		return err
	}
	c.controller = nil
	claim := c.nextClaim()
	if err := c.plane.Admin.Create(ctx, claim); err != nil {
		return err
	}
	begin := time.Now()
	var err error
	if c.controller, err = startChild(ctx, controllerRole, c.agent, orders{}, c.limits...); err != nil {
		return err
	}
	bound, err := c.whenBound(ctx, []string{claim.Name})
	if err != nil {
		return err
	}
	now, err := c.controller.usage()
	if err != nil {
		return err
	}
	r.linef("\nA controller agent that was started had a waiting claim bound after %.2f s, with %d requests and %.1f MiB of answers; it had %.1f MiB resident, %.1f MiB heap.",
		bound[claim.Name].Sub(begin).Seconds(), now.Requests, mebibytes(now.Bytes), mebibytes(now.Resident), mebibytes(now.Heap))
	if err := c.settle(ctx); err != nil {
		return err
	}
	if now, err = c.controller.usage(); err != nil {
		return err
	}
	r.linef("When it had nothing more to do, it had %.1f MiB resident, %.1f MiB heap.", mebibytes(now.Resident), mebibytes(now.Heap))
	return nil
}

// during measures both kinds of agents while something is done.
func (c *cluster) during(ctx context.Context, r *report, state string, do func(context.Context) error) error {
	type figures struct{ controller, nodes usage }
	look := func() (f figures, err error) {
		if f.controller, err = c.controller.usage(); err == nil && c.nodes != nil {
			f.nodes, err = c.nodes.usage()
		}
		return f, err
	}
	before, err := look()
	if err != nil {
		return err
	}
	begin := time.Now()
	if err := do(ctx); err != nil {
		return err
	}
	took := time.Since(begin)
	after, err := look()
	if err != nil {
		return err
	}
	r.row(state, "controller agent", before.controller, after.controller, took, 1)
	if c.nodes != nil {
		r.row(state, "caches of a node agent", before.nodes, after.nodes, took, c.settings.caches)
	}
	return nil
}

// pass waits until a period has passed.
func pass(ctx context.Context, period time.Duration) error {
	select {
	case <-time.After(period):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

package scenes

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/queue"
	"github.com/albertofaria/pav/test/simulation/agents"
	"github.com/albertofaria/pav/test/simulation/kubernetes"
	"github.com/albertofaria/pav/test/simulation/storage"
	"github.com/albertofaria/pav/test/simulation/world"
)

// by is the name of the scene as a user of the API server.
const by = "scene"

// player lets the requests of a scene proceed.
type player struct{ world *world.World }

// Choices implements world.Actor. It always has a choice, so the world never lets much time pass at once: a scene waits
// for short times only.
func (p player) Choices(add func(world.Choice)) {
	add(world.Choice{What: "the scene waits", Do: func() { p.world.Sleep(50 * time.Millisecond) }})
	for _, call := range p.world.Calls() {
		if call.By == by {
			add(world.Choice{What: call.What, Do: func() { _ = p.world.Go(call) }}) // the scene gets the error
		}
	}
}

// Simulate plays a scene in the simulated world. It returns the description of the objects at each look, by the name of
// the look.
func Simulate(t *testing.T, s Scene) map[string]string {
	t.Helper()
	return simulateHeard(t, s, 1, nil)
}

// simulateHeard is Simulate in the order that seed determines. heard, if not nil, is called after each request that
// succeeds or finds no object.
func simulateHeard(t *testing.T, s Scene, seed uint64, heard func(*world.Call)) map[string]string {
	t.Helper()
	looks := map[string]string{}
	synctest.Test(t, func(t *testing.T) {
		if err := simulate(t.Context(), s, seed, looks, heard); err != nil {
			t.Fatalf("in the simulated world: %v", err)
		}
	})
	return looks
}

// addNode adds a node with its agent, the rest of Kubernetes, and PaV's webhook. The function that it returns stops
// the agent.
func addNode(ctx context.Context, w *world.World, h *Hands) (end func(), err error) {
	if err := errors.Join(
		w.Store.Create(by, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: h.Node, Labels: map[string]string{corev1.LabelHostname: h.Node}}}),
		w.Store.Create(by, &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "pav-admitted-stages"}}),
		w.Store.Create(by, &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: pavv1.Driver}}),
	); err != nil {
		return nil, err
	}
	w.Add(&kubernetes.Scheduler{World: w})
	w.Add(&kubernetes.Attacher{World: w})
	w.Add(&kubernetes.Collector{World: w, Kinds: []string{"Pod", "PavStage", "CSIDriver"}})
	shared, faults := agents.NewShared(), &agents.Faults{}
	w.Store.Hook(agents.NewWebhook(w, shared, faults, func(string) string { return h.Node }).Judge)
	node := kubernetes.NewNode(w, h.Node, storage.New(), &kubernetes.Trouble{})
	agent := &agents.Node{
		Name: "agent-1", On: h.Node, World: w, Faults: faults, Events: agents.NewEvents(w), Machine: node.Machine, Linked: func() bool { return true },
	}
	node.Drivers = agent.Driver
	if err := agent.Start(ctx, shared); err != nil {
		return nil, err
	}
	w.Add(node)
	w.Add(agent)
	h.Exit = func(_ context.Context, pod *corev1.Pod) error { node.LetEnd(pod.UID); return nil }
	h.Evict = func(_ context.Context, pod *corev1.Pod) error { node.Evict(pod); return nil }
	return agent.Kill, nil
}

func simulate(ctx context.Context, s Scene, seed uint64, looks map[string]string, heard func(*world.Call)) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	store := kubernetes.NewStore()
	w := world.New(seed, store)
	w.Heard = heard
	namespace := "default"
	if s.mounted {
		namespace = "tenant-1" // in the real world, each scene has another one
	}
	for _, name := range []string{namespace, "pav-pods"} {
		if err := store.Create(by, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			return err
		}
	}
	w.Add(&kubernetes.Volumes{World: w})
	w.Add(player{world: w})
	agent := &agents.Controller{Name: "controller-1", World: w, Faults: &agents.Faults{}, Events: agents.NewEvents(w)}
	if err := agent.Start(ctx, agents.NewShared(), queue.Limits{Overall: 10, PerProvisioner: 10}, 3); err != nil {
		return err
	}
	w.Add(agent)

	kube := &world.Client{World: w, By: by, Life: ctx}
	h := &Hands{Scene: s.Name, Kube: kube, NodeAgent: kube, Node: "node-" + s.Name, Namespace: namespace, Look: func(ctx context.Context, name string, text func(context.Context) (string, error)) error {
		var err error
		looks[name], err = settled(ctx, text)
		return err
	}}
	stop := func() {}
	if s.mounted {
		var err error
		if stop, err = addNode(ctx, w, h); err != nil {
			return err
		}
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Play(ctx, h) }()
	limit := time.Now().Add(time.Hour)
	err := w.Run(1_000_000, func() bool { return len(ended) > 0 || time.Now().After(limit) })
	agent.Kill()
	stop()
	end() // a scene that is still waiting returns the reason
	w.Settle()
	return errors.Join(err, <-ended)
}

// settled waits until a description stops changing, and returns it.
func settled(ctx context.Context, text func(context.Context) (string, error)) (string, error) {
	var before, last string
	for {
		now, err := text(ctx)
		if err != nil || now == last {
			return now, err
		}
		before, last = last, now
		select {
		case <-ctx.Done():
			return "", fmt.Errorf("all goes on changing: %s", cmp.Diff(before, last))
		case <-time.After(3 * time.Second):
		}
	}
}

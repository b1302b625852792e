package e2e

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Kubelet keeps the drivers of an agent that is replaced, and each of them answers as soon as the next agent is ready.
func TestNodeAgentsReplaced_DriversStayRegistered(t *testing.T) {
	namespace := start(t)
	var names, provisioners []string
	for i := range often(30, 300) {
		names = append(names, fmt.Sprintf("stays-%03d", i))
		provisioners = append(provisioners, provisioner(names[i], "mkdir /pav/volume; echo hello > /pav/volume/file", ""))
	}
	first, last := names[0], names[len(names)-1]
	apply(t, "default", documents(provisioners...))
	for _, name := range names {
		eventually(t, "the driver is registered", func(ctx context.Context) error { return registered(ctx, name) })
	}
	missing := watchForMissing(t, names)

	_, err := kubectl(t.Context(), "", "-n", "pav", "rollout", "restart", "daemonset/node-agent")
	must(t, err)
	_, err = kubectl(t.Context(), "", "-n", "pav", "rollout", "status", "daemonset/node-agent", "--timeout=10m")
	must(t, err)
	waitAgents(t, "")
	began := time.Now()
	for _, name := range []string{first, last} {
		apply(t, namespace, documents(storageClass(name), claim(name, name, "ReadWriteOnce"), clientPod(name+"-node1", name, "node1")))
		waitRunning(t, namespace, name+"-node1")
		t.Logf("%s after the agents are ready, a pod runs with a volume of %s", time.Since(began).Round(time.Millisecond), name)
	}
	for _, name := range names {
		must(t, registered(t.Context(), name))
	}
	if lost := missing(); len(lost) > 0 {
		t.Errorf("CSINodes have lost drivers for a while: %q", lost)
	}
}

// watchForMissing watches all CSINodes. It returns a function that returns the drivers, by node, that a CSINode has lacked
// at any time since.
func watchForMissing(t *testing.T, names []string) func() []string {
	t.Helper()
	var mu sync.Mutex
	lost := map[string]bool{}
	see := func(_ watch.EventType, object client.Object) {
		csiNode, ok := object.(*storagev1.CSINode)
		if !ok {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		for _, name := range names {
			if !slices.ContainsFunc(csiNode.Spec.Drivers, func(d storagev1.CSINodeDriver) bool { return d.Name == name }) {
				lost[csiNode.Name+" "+name] = true
			}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	events := follow(ctx, t, &storagev1.CSINodeList{}, see)
	seen := make(chan struct{})
	go func() {
		defer close(seen)
		for event := range events.ResultChan() {
			if object, ok := event.Object.(client.Object); ok {
				see(event.Type, object)
			}
		}
	}()
	return func() []string {
		events.Stop()
		<-seen
		mu.Lock()
		defer mu.Unlock()
		var found []string
		for what := range lost {
			found = append(found, what)
		}
		slices.Sort(found)
		return found
	}
}

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// nodeIDs is kubelet's annotation on the Node with the node ID of each driver, a JSON object.
const nodeIDs = "csi.volume.kubernetes.io/nodeid"

// annotationsLimit is the maximum size of all annotations of an object, in bytes.
const annotationsLimit = 256 << 10

// longestEntry is the size of an entry of nodeIDs for the longest names that a driver and a node can have.
const longestEntry = 63 + 253 + len(`"":"",`)

// idle is a provisioner whose volumes nobody uses.
const idle = `
apiVersion: pav.albertofaria.github.io/v1alpha1
kind: PavProvisioner
metadata: {name: bench-provisioner-%04d, labels: {pav-bench: idle}}
spec:
  provisioningModes: [Dynamic, Static]
  volumeCreation: {capacity: "{{ requestedMinCapacity }}"}
  volumeStaging:
    podTemplate:
      spec:
        containers: [{name: stage, image: busybox:1.37.0, command: [mkdir, /pav/volume]}]`

// cost has the resource usage of the node agent, and the sizes of the API entries that kubelet has written for it.
type cost struct {
	what                         string
	memory, heap, descriptors    float64
	csiNode, nodeIDs, goroutines float64
}

// measureCost measures the node agent with increasing numbers of idle provisioners, and a new agent with staged
// volumes.
func measureCost(ctx context.Context, w *world, s settings, out io.Writer) error {
	var costs []cost
	see := func(what string) error {
		c, err := w.cost(ctx, what)
		costs = append(costs, c)
		return err
	}
	if err := w.restartAgent(ctx); err != nil {
		return err
	}
	if err := see("no provisioner"); err != nil {
		return err
	}
	w.undo = append(w.undo, w.removeIdle)
	made := 0
	for _, number := range []int{s.provisioners / 10, s.provisioners} {
		took, err := w.addIdle(ctx, made, number)
		if err != nil {
			return err
		}
		if err := see(fmt.Sprintf("%d idle provisioners, the last %d usable after %.0f s", number, number-made, took.Seconds())); err != nil {
			return err
		}
		made = number
	}
	if err := w.remove(ctx, 1); err != nil {
		return err
	}
	if err := w.restartAgent(ctx); err != nil {
		return err
	}
	if err := stageMany(ctx, w, s.volumes); err != nil {
		return err
	}
	if err := see(fmt.Sprintf("1 provisioner, %d staged volumes", s.volumes)); err != nil {
		return err
	}
	return report(out, costs, s.provisioners)
}

// addIdle creates idle provisioners up to a number, and returns how long it took until kubelet knew all of them.
func (w *world) addIdle(ctx context.Context, from, to int) (time.Duration, error) {
	began := time.Now()
	for i := from; i < to; i++ {
		object, err := decode(fmt.Sprintf(idle, i))
		if err != nil {
			return 0, err
		}
		if err := w.kube.Create(ctx, object); err != nil {
			return 0, err
		}
	}
	err := w.registered(ctx, to, 10*time.Minute)
	return time.Since(began), err
}

// removeIdle removes all idle provisioners at once.
func (w *world) removeIdle(ctx context.Context) error {
	ours := client.MatchingLabels{"pav-bench": "idle"}
	if err := w.kube.DeleteAllOf(ctx, &pavv1.PavProvisioner{}, ours); err != nil {
		return err
	}
	return eventually(ctx, 10*time.Minute, "no idle provisioner is left", func(ctx context.Context) error {
		list := &pavv1.PavProvisionerList{}
		if err := w.kube.List(ctx, list, ours); err != nil {
			return err
		}
		if left := len(list.Items); left > 0 {
			return fmt.Errorf("%d are", left)
		}
		return w.registered(ctx, 0, 10*time.Minute)
	})
}

func report(out io.Writer, costs []cost, provisioners int) error {
	table := newTable(out)
	table.rowf("\nNode agent\tresident\tratio\theap\tdescriptors\tratio\tgoroutines\tCSINode\tnodeid\t")
	floor := costs[0]
	for _, c := range costs {
		table.rowf("%s\t%.1f MiB\t%.2f\t%.1f MiB\t%.0f\t%.2f\t%.0f\t%.1f KiB\t%.1f KiB\t", c.what,
			c.memory/(1<<20), c.memory/floor.memory, c.heap/(1<<20), c.descriptors, c.descriptors/floor.descriptors, c.goroutines,
			c.csiNode/1024, c.nodeIDs/1024)
	}
	if err := table.end(); err != nil {
		return err
	}
	most := costs[2]
	number := float64(provisioners)
	entry := (most.nodeIDs - floor.nodeIDs) / number
	_, err := fmt.Fprintf(out, "Each idle provisioner costs %.1f KiB of memory, %.2f descriptors, %.0f bytes of CSINode and %.0f bytes of the annotation\n"+
		"%s: its name, the node's and 6 more. All annotations of a node may have %d KiB, enough for about\n"+
		"%.0f drivers with names as long as these, and for %d with the longest names of both.\n",
		(most.memory-floor.memory)/number/1024, (most.descriptors-floor.descriptors)/number, (most.csiNode-floor.csiNode)/number, entry,
		nodeIDs, annotationsLimit>>10, annotationsLimit/entry, annotationsLimit/longestEntry)
	return err
}

// stageMany runs one pod that uses count volumes of the first example.
func stageMany(ctx context.Context, w *world, count int) error {
	if err := useExample(ctx, w); err != nil {
		return err
	}
	var sources []corev1.VolumeSource
	for i := range count {
		name := fmt.Sprintf("volume-%03d", i)
		if err := w.create(ctx, claim(name, "hello-world")); err != nil {
			return err
		}
		sources = append(sources, claimed(name))
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	_, err := w.running(ctx, w.client("client", sources...), time.Now())
	return err
}

// agent returns the pod of the node agent.
func (w *world) agent(ctx context.Context) (*corev1.Pod, error) {
	pods := &corev1.PodList{}
	err := w.kube.List(ctx, pods, client.InNamespace("pav"), client.MatchingLabels{"app.kubernetes.io/component": "node-agent"},
		client.MatchingFields{"spec.nodeName": w.node})
	if err != nil {
		return nil, err
	}
	for i, pod := range pods.Items {
		for _, condition := range pod.Status.Conditions {
			if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue && pod.DeletionTimestamp == nil {
				return &pods.Items[i], nil
			}
		}
	}
	return nil, fmt.Errorf("no node agent on %q is ready", w.node)
}

// restartAgent replaces the node agent with one that has done nothing yet.
func (w *world) restartAgent(ctx context.Context) error {
	old, err := w.agent(ctx)
	if err != nil {
		return err
	}
	if err := w.kube.Delete(ctx, old); err != nil {
		return err
	}
	return eventually(ctx, 2*time.Minute, "a new node agent is ready", func(ctx context.Context) error {
		agent, err := w.agent(ctx)
		if err == nil && agent.UID == old.UID {
			return errors.New("it is the old one")
		}
		return err
	})
}

// registered waits until kubelet knows this number of drivers, besides PaV's own.
func (w *world) registered(ctx context.Context, drivers int, within time.Duration) error {
	return eventually(ctx, within, fmt.Sprintf("kubelet knows %d drivers", drivers), func(ctx context.Context) error {
		node := &storagev1.CSINode{}
		if err := w.kube.Get(ctx, client.ObjectKey{Name: w.node}, node); err != nil {
			return err
		}
		if known := len(node.Spec.Drivers) - 1; known != drivers {
			return fmt.Errorf("it knows %d", known)
		}
		return nil
	})
}

// cost measures the node agent for some seconds, and returns the medians.
func (w *world) cost(ctx context.Context, what string) (cost, error) {
	agent, err := w.agent(ctx)
	if err != nil {
		return cost{}, err
	}
	of := map[string]figures{}
	const samples = 11
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for range samples {
		text, err := w.scraper.Metrics(ctx, agent)
		if err != nil {
			return cost{}, err
		}
		for name, value := range gauges([]byte(text)) {
			of[name] = append(of[name], value)
		}
		select {
		case <-ctx.Done():
			return cost{}, ctx.Err()
		case <-ticker.C:
		}
	}
	c := cost{
		what: what, memory: of["process_resident_memory_bytes"].median(), heap: of["go_memstats_heap_inuse_bytes"].median(),
		descriptors: of["process_open_fds"].median(), goroutines: of["go_goroutines"].median(),
	}
	c.csiNode, c.nodeIDs, err = w.written(ctx)
	return c, err
}

// gauges returns the metrics that have no labels.
func gauges(text []byte) map[string]float64 {
	values := map[string]float64{}
	for line := range bytes.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(string(line)), " ")
		if number, err := strconv.ParseFloat(value, 64); err == nil {
			values[name] = number
		}
	}
	return values
}

// written returns the sizes of the CSINode, as JSON without managed fields, and of the Node's annotation.
func (w *world) written(ctx context.Context) (csiNode, annotation float64, err error) {
	drivers, node := &storagev1.CSINode{}, &metav1.PartialObjectMetadata{}
	node.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Node"))
	key := client.ObjectKey{Name: w.node}
	if err := errors.Join(w.kube.Get(ctx, key, drivers), w.kube.Get(ctx, key, node)); err != nil {
		return 0, 0, err
	}
	drivers.ManagedFields = nil
	encoded, err := json.Marshal(drivers)
	return float64(len(encoded)), float64(len(node.Annotations[nodeIDs])), err
}

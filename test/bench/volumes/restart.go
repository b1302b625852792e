package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// Labels of the pods that are restarted.
const (
	componentLabel = "app.kubernetes.io/component"
	nodeAgent      = "node-agent"
	peerLabel      = "bench"
)

// idleDaemon is restarted as the floor. It is ready as soon as it runs.
const idleDaemon = `
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: idle, namespace: pav-bench}
spec:
  selector: {matchLabels: {bench: idle}}
  template:
    metadata: {labels: {bench: idle}}
    spec:
      nodeSelector: {kubernetes.io/hostname: MEASURED_NODE}
      containers: [{name: idle, image: "busybox:1.37.0", command: [sh, -c, trap exit TERM; sleep infinity & wait]}]`

// mostUsed is the number of volumes that the client uses at most: one each of as many provisioners.
const mostUsed = 10

// restartCases are the restarts of the node agent with 1, 100 and 1,000 provisioners.
func restartCases() []benchCase {
	return []benchCase{
		restartCase("1 provisioner, and a client pod with its volume", 1),
		restartCase("100 provisioners, and a client pod with volumes of 10 of them", 100),
		restartCase("1,000 provisioners, and a client pod with volumes of 10 of them", 1000),
	}
}

// restartCase measures how long the restart of what serves volumes delays a client, which is created at the same moment,
// with volumes that another pod of the node uses.
func restartCase(with string, provisioners int) benchCase {
	volumes := min(mostUsed, provisioners)
	var instant, pav []*corev1.PersistentVolumeClaim
	return benchCase{
		name:    fmt.Sprintf("restart-%d", provisioners),
		title:   fmt.Sprintf("Restart of the node agent with %s, from its deletion", with),
		figures: []figure{{"client runs", "s"}, {"agent or driver is ready", "s"}, {"kubelet knows all drivers for good", "s"}},
		prepare: func(ctx context.Context, w *world) (err error) {
			if err := w.apply(ctx, w.placed(idleDaemon)); err != nil {
				return err
			}
			if instant, err = w.instantClaims(ctx, volumes); err != nil {
				return err
			}
			names, err := w.addProvisioners(ctx, provisioners)
			if err != nil {
				return err
			}
			for i := range volumes {
				// The first and the last are among them.
				name := names[i*(provisioners-1)/max(1, volumes-1)]
				if err := w.create(ctx, storageClass(name, name, immediate)); err != nil {
					return err
				}
				claims, err := w.boundClaims(ctx, 1, name)
				if err != nil {
					return err
				}
				pav = append(pav, claims...)
			}
			return w.started(ctx, w.client(claimed(pav...)...))
		},
		subjects: []subject{
			restartSubject("a pod that does nothing, and emptyDirs", floor, namespace, peerLabel, "idle", func() []corev1.VolumeSource { return emptyDirs(volumes) }),
			restartSubject("the smallest CSI driver", peer, "pav-bench-external", peerLabel, "driver", func() []corev1.VolumeSource { return claimed(instant...) }),
			restartSubject("PaV's node agent", product, "pav", componentLabel, nodeAgent, func() []corev1.VolumeSource { return claimed(pav...) }),
		},
	}
}

func restartSubject(name string, role role, space, label, value string, volumes func() []corev1.VolumeSource) subject {
	return subject{name, role, func(ctx context.Context, w *world) ([]float64, error) {
		old, err := w.readyPodOf(ctx, space, label, value)
		if err != nil {
			return nil, err
		}
		changes, err := w.followDrivers(ctx)
		if err != nil {
			return nil, err
		}
		defer changes.stop()
		pod := w.client(volumes()...)
		began := time.Now()
		took, err := w.watch.observe(ctx, func() error {
			if err := w.delete(ctx, old); err != nil {
				return err
			}
			return w.create(ctx, pod)
		}, running(pod), replaced(old, label), gone(old))
		if err != nil {
			return nil, err
		}
		known := math.NaN()
		if role != floor {
			if known, err = changes.settled(ctx, began); err != nil {
				return nil, err
			}
		}
		return append(seconds(took[:2]), known), nil
	}}
}

// driverChanges has what kubelet says that it knows of drivers.
type driverChanges struct {
	stop   func()
	before int

	mu   sync.Mutex
	now  int
	last time.Time
}

// followDrivers follows how many drivers kubelet knows.
func (w *world) followDrivers(ctx context.Context) (*driverChanges, error) {
	node := &storagev1.CSINode{}
	if err := w.kube.Get(ctx, client.ObjectKey{Name: w.node}, node); err != nil {
		return nil, err
	}
	c := &driverChanges{before: len(node.Spec.Drivers), now: len(node.Spec.Drivers)}
	c.stop = w.watch.follow(func(e event) {
		seen, ok := e.object.(*storagev1.CSINode)
		if !ok || seen.Name != w.node {
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.now, c.last = len(seen.Spec.Drivers), e.at
	})
	return c, nil
}

// settled waits until kubelet has known all drivers again for five seconds, as it may forget some after the first look.
// It returns the time of the last change since began, which is 0 if kubelet has never forgotten a driver.
func (c *driverChanges) settled(ctx context.Context, began time.Time) (float64, error) {
	const quiet = 5 * time.Second
	ended := time.Now()
	err := eventually(ctx, "kubelet knows all drivers", func(context.Context) error {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.now != c.before || time.Since(c.last) < quiet || time.Since(ended) < quiet {
			return fmt.Errorf("it knows %d of %d, the last change was at %s", c.now, c.before, c.last)
		}
		return nil
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil || c.last.IsZero() {
		return 0, err
	}
	return c.last.Sub(began).Seconds(), nil
}

// idleProvisioner is a provisioner of PaV of which there are many.
const idleProvisioner = `
apiVersion: pav.albertofaria.github.io/v1alpha1
kind: PavProvisioner
metadata: {name: bench-provisioner-%04d, labels: {pav-bench: idle}}
spec:
  provisioningModes: [Dynamic]
  volumeCreation: {capacity: "{{ requestedMinCapacity }}"}
  volumeStaging:
    podTemplate:
      spec:
        containers: [{name: stage, image: "busybox:1.37.0", command: [mkdir, /pav/volume]}]`

// addProvisioners creates provisioners, waits until kubelet knows all of them, and returns their names.
func (w *world) addProvisioners(ctx context.Context, count int) ([]string, error) {
	var names []string
	var made []client.Object
	for i := range count {
		object, err := decode(fmt.Sprintf(idleProvisioner, i))
		if err != nil {
			return nil, err
		}
		names, made = append(names, object.GetName()), append(made, object)
	}
	// So many at once that the webhook is busy, but not so many that requests to it time out.
	const atOnce = 20
	w.undo = append(w.undo, w.removeProvisioners)
	for len(made) > 0 {
		some := made[:min(atOnce, len(made))]
		made = made[len(some):]
		if err := w.createAll(ctx, some); err != nil {
			return nil, err
		}
	}
	return names, w.registered(ctx, names...)
}

// removeProvisioners removes all provisioners of addProvisioners, and waits until kubelet knows none of them.
func (w *world) removeProvisioners(ctx context.Context) error {
	ours := client.MatchingLabels{"pav-bench": "idle"}
	// The API server gives a request up after a minute, in which it may have deleted some of them only.
	err := eventually(ctx, "all idle provisioners are deleted", func(ctx context.Context) error {
		return w.kube.DeleteAllOf(ctx, &pavv1.PavProvisioner{}, ours)
	})
	if err != nil {
		return err
	}
	return eventually(ctx, "no idle provisioner is left", func(ctx context.Context) error {
		list, node := &pavv1.PavProvisionerList{}, &storagev1.CSINode{}
		if err := w.kube.List(ctx, list, ours); err != nil {
			return err
		}
		if err := w.kube.Get(ctx, client.ObjectKey{Name: w.node}, node); err != nil {
			return err
		}
		known := slices.ContainsFunc(node.Spec.Drivers, func(d storagev1.CSINodeDriver) bool { return strings.HasPrefix(d.Name, "bench-provisioner-") })
		if len(list.Items) > 0 || known {
			return fmt.Errorf("%d are, and kubelet knows some: %v", len(list.Items), known)
		}
		return nil
	})
}

package csi

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/fsnotify/fsnotify"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// pluginManager is kubelet's plugin manager (pkg/kubelet/pluginmanager in Kubernetes 1.36), with its handler of CSI
// drivers, and the API server that it writes to. It is faster: it looks at its directory every 5 ms, not every second.
type pluginManager struct {
	dir string

	// forgetful is kubelet until 1.33, which does not try again after it has refused a driver.
	forgetful bool

	mu      sync.Mutex
	paths   map[string]int    // the desired state: a number for each new path
	plugins map[string]plugin // the actual state, by path
	pending map[string]bool   // the paths that are worked on
	retry   map[string]time.Time
	number  int

	labels  map[string]string   // of the Node
	csiNode map[string][]string // topology keys by driver
	unread  error               // why the API server cannot be read
	reads   int                 // of the CSINode

	refuse   map[string]int // how often a driver is refused
	mute     map[string]bool
	counts   map[string]int // registrations by driver
	removals []string       // from the CSINode
	busy     int            // registrations in progress
	busiest  int
	asked    int           // how often a driver was asked for its topology
	hold     chan struct{} // nothing is added to the CSINode until it is closed
}

type plugin struct {
	number int
	name   string
}

// newKubelet is kubelet in the working directory, which does not run yet.
func newKubelet(tb testing.TB) *pluginManager {
	tb.Helper()
	kubelet(tb)
	hold := make(chan struct{})
	close(hold)
	return &pluginManager{
		dir: "plugins_registry", csiNode: map[string][]string{}, refuse: map[string]int{}, mute: map[string]bool{},
		counts: map[string]int{}, hold: hold, labels: map[string]string{"zone": "z1", "rack": "r1"},
	}
}

// run runs kubelet until it is stopped, or the test ends. It begins without knowledge, as after a restart.
func (k *pluginManager) run(tb testing.TB) (stop func()) {
	tb.Helper()
	watcher, err := fsnotify.NewWatcher()
	must(tb, err)
	must(tb, watcher.Add(k.dir))
	k.mu.Lock()
	k.paths, k.plugins, k.pending, k.retry = map[string]int{}, map[string]plugin{}, map[string]bool{}, map[string]time.Time{}
	k.mu.Unlock()
	entries, err := os.ReadDir(k.dir)
	must(tb, err)
	for _, entry := range entries {
		k.created(filepath.Join(k.dir, entry.Name()))
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(tb.Context()))
	var loops sync.WaitGroup
	loops.Go(func() { k.watch(ctx, watcher) })
	loops.Go(func() { k.reconcile(ctx, &loops) })
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			loops.Wait()
			must(tb, watcher.Close())
		})
	}
	tb.Cleanup(stop)
	return stop
}

func (k *pluginManager) watch(ctx context.Context, watcher *fsnotify.Watcher) {
	for {
		select {
		case <-ctx.Done():
			return
		case e := <-watcher.Events:
			switch {
			case e.Has(fsnotify.Create):
				k.created(e.Name)
			case e.Has(fsnotify.Remove):
				k.mu.Lock()
				delete(k.paths, e.Name)
				k.mu.Unlock()
			}
		}
	}
}

func (k *pluginManager) created(path string) {
	info, err := os.Stat(path)
	if err != nil || strings.HasPrefix(filepath.Base(path), ".") || info.Mode()&os.ModeSocket == 0 {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.number++
	k.paths[path] = k.number
}

func (k *pluginManager) reconcile(ctx context.Context, operations *sync.WaitGroup) {
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		k.mu.Lock()
		for path, is := range k.plugins {
			if number, wanted := k.paths[path]; !wanted || number != is.number {
				k.start(operations, path, func() error { k.unregister(path); return nil })
			}
		}
		for path, number := range k.paths {
			if is, ok := k.plugins[path]; !ok || is.number != number {
				k.start(operations, path, func() error { return k.register(ctx, path, number) })
			}
		}
		k.mu.Unlock()
	}
}

// start starts an operation unless one is in progress for that path, or has just failed.
func (k *pluginManager) start(operations *sync.WaitGroup, path string, operation func() error) {
	if k.pending[path] || time.Now().Before(k.retry[path]) {
		return
	}
	k.pending[path] = true
	operations.Go(func() {
		err := operation()
		k.mu.Lock()
		defer k.mu.Unlock()
		delete(k.pending, path)
		if err != nil {
			k.retry[path] = time.Now().Add(20 * time.Millisecond)
		}
	})
}

func (k *pluginManager) unregister(path string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.uninstall(k.plugins[path].name)
	delete(k.plugins, path)
}

func (k *pluginManager) uninstall(driver string) {
	if _, installed := k.csiNode[driver]; installed {
		k.removals = append(k.removals, driver)
	}
	delete(k.csiNode, driver)
}

// register registers the driver that answers at a path.
func (k *pluginManager) register(ctx context.Context, path string, number int) error {
	conn, err := grpc.NewClient("unix:"+path, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	asking, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	registration := registerapi.NewRegistrationClient(conn)
	info, err := registration.GetInfo(asking, &registerapi.InfoRequest{})
	if err != nil {
		return err
	}
	name := info.GetName()
	k.mu.Lock()
	k.plugins[path] = plugin{number, name}
	k.busy++
	k.busiest = max(k.busiest, k.busy)
	mute := k.mute[name]
	k.mu.Unlock()
	failure := k.install(ctx, info)
	k.mu.Lock()
	k.busy--
	if failure != nil && !k.forgetful {
		delete(k.plugins, path)
	}
	k.mu.Unlock()
	if mute {
		return nil
	}
	status := &registerapi.RegistrationStatus{PluginRegistered: failure == nil}
	if failure != nil {
		status.Error = failure.Error()
	}
	_, err = registration.NotifyRegistrationStatus(ctx, status)
	return errors.Join(failure, err)
}

// install asks the driver for its topology, and adds it to the CSINode.
func (k *pluginManager) install(ctx context.Context, info *registerapi.PluginInfo) error {
	conn, err := grpc.NewClient("unix:"+info.GetEndpoint(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	node, err := csi.NewNodeClient(conn).NodeGetInfo(ctx, &csi.NodeGetInfoRequest{})
	name := info.GetName()
	k.mu.Lock()
	k.asked++
	hold := k.hold
	k.mu.Unlock()
	select {
	case <-hold:
	case <-ctx.Done():
		return ctx.Err()
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.refuse[name] > 0 {
		k.refuse[name]--
		err = errors.New("refused")
	}
	if err != nil {
		k.uninstall(name)
		return err
	}
	k.csiNode[name] = slices.Sorted(maps.Keys(node.GetAccessibleTopology().GetSegments()))
	k.counts[name]++
	return nil
}

// Get implements client.Reader.
func (k *pluginManager) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.unread != nil {
		return k.unread
	}
	switch object := into.(type) {
	case *corev1.Node:
		object.Labels = maps.Clone(k.labels)
	case *storagev1.CSINode:
		k.reads++
		for name, keys := range k.csiNode {
			object.Spec.Drivers = append(object.Spec.Drivers, storagev1.CSINodeDriver{Name: name, NodeID: "node1", TopologyKeys: keys})
		}
	}
	return nil
}

// List implements client.Reader.
func (k *pluginManager) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errors.New("nothing is listed")
}

// see returns what a function finds in kubelet's state.
func see[T any](k *pluginManager, what func() T) T {
	k.mu.Lock()
	defer k.mu.Unlock()
	return what()
}

// drivers returns the drivers of the CSINode, with their topology keys.
func (k *pluginManager) drivers() map[string]string {
	return see(k, func() map[string]string {
		drivers := map[string]string{}
		for name, keys := range k.csiNode {
			drivers[name] = strings.Join(keys, "+")
		}
		return drivers
	})
}

package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// event is a change of an object, as the API server reported it.
type event struct {
	object  client.Object
	deleted bool
	at      time.Time // when it was received
}

// watcher receives all changes of claims, PersistentVolumes, pods, CSINodes and VolumeSnapshots, and of further kinds that cases ask for.
type watcher struct {
	mu        sync.Mutex
	followers map[int]func(event)
	next      int
}

// newWatcher returns a watcher that watches until ctx ends. It has received what exists. Snapshots is a client of their API.
func newWatcher(ctx context.Context, kube kubernetes.Interface, snapshots cache.Getter) (*watcher, error) {
	w := &watcher{followers: map[int]func(event){}}
	core, storage := kube.CoreV1().RESTClient(), kube.StorageV1().RESTClient()
	var stores []*receiver
	for _, watched := range []struct {
		getter   cache.Getter
		resource string
		kind     client.Object
	}{
		{core, "persistentvolumeclaims", &corev1.PersistentVolumeClaim{}},
		{core, "persistentvolumes", &corev1.PersistentVolume{}},
		{core, "pods", &corev1.Pod{}},
		{storage, "csinodes", &storagev1.CSINode{}},
		{snapshots, "volumesnapshots", &snapshotv1.VolumeSnapshot{}},
	} {
		stores = append(stores, w.watch(ctx, watched.getter, watched.resource, watched.kind))
	}
	for _, store := range stores {
		if err := store.await(ctx); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// watch begins to watch a resource, until ctx ends.
func (w *watcher) watch(ctx context.Context, getter cache.Getter, resource string, kind client.Object) *receiver {
	store := &receiver{watcher: w, known: map[string]client.Object{}, listed: make(chan struct{})}
	source := cache.NewListWatchFromClient(getter, resource, metav1.NamespaceAll, fields.Everything())
	go cache.NewReflector(source, kind, store, 0).RunWithContext(ctx)
	return store
}

// follow calls the function for each further event, one after the other, until the returned function is called.
func (w *watcher) follow(receive func(event)) (stop func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	number := w.next
	w.next++
	w.followers[number] = receive
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.followers, number)
	}
}

func (w *watcher) tell(e event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, receive := range w.followers {
		receive(e)
	}
}

// condition is a state that an event can show.
type condition struct {
	what string
	met  func(event) bool
}

// observe does something, and waits until all conditions have been met since it began. It returns how long each of them
// took.
func (w *watcher) observe(ctx context.Context, do func() error, conditions ...condition) ([]time.Duration, error) {
	took := make([]time.Duration, len(conditions))
	met := make([]bool, len(conditions))
	left, done := len(conditions), make(chan struct{})
	began := time.Now()
	stop := w.follow(func(e event) {
		for i, c := range conditions {
			if met[i] || !c.met(e) {
				continue
			}
			met[i], took[i] = true, e.at.Sub(began)
			if left--; left == 0 {
				close(done)
			}
		}
	})
	err := do()
	if err == nil {
		select {
		case <-done:
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	stop() // after this, nothing writes to what follows
	if err == nil {
		return took, nil
	}
	errs := []error{err}
	for i, c := range conditions {
		if !met[i] {
			errs = append(errs, fmt.Errorf("not seen: %s", c.what))
		}
	}
	return nil, errors.Join(errs...)
}

// receiver is where a reflector stores the objects of one kind. It passes each change on as soon as it is received.
type receiver struct {
	watcher *watcher
	known   map[string]client.Object
	listed  chan struct{}
	once    sync.Once
}

// await waits until the receiver has received what exists.
func (r *receiver) await(ctx context.Context) error {
	select {
	case <-r.listed:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("watching the cluster: %w", ctx.Err())
	}
}

func (r *receiver) Add(object any) error {
	o, ok := object.(client.Object)
	if !ok {
		return fmt.Errorf("a watch has returned a %T", object)
	}
	r.known[client.ObjectKeyFromObject(o).String()] = o
	r.watcher.tell(event{object: o, at: time.Now()})
	return nil
}

func (r *receiver) Update(object any) error { return r.Add(object) }

func (r *receiver) Delete(object any) error {
	o, ok := object.(client.Object)
	if !ok {
		return fmt.Errorf("a watch has returned a %T", object)
	}
	delete(r.known, client.ObjectKeyFromObject(o).String())
	r.watcher.tell(event{object: o, deleted: true, at: time.Now()})
	return nil
}

// Replace receives all objects: at first, and after a watch has failed.
func (r *receiver) Replace(objects []any, _ string) error {
	gone := r.known
	r.known = map[string]client.Object{}
	for _, object := range objects {
		if err := r.Add(object); err != nil {
			return err
		}
	}
	for key, o := range gone {
		if r.known[key] == nil {
			r.watcher.tell(event{object: o, deleted: true, at: time.Now()})
		}
	}
	r.once.Do(func() { close(r.listed) })
	return nil
}

func (r *receiver) Resync() error { return nil }

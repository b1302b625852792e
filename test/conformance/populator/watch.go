package main

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

const (
	group = "hello.example.com"
	kind  = "Hello"
)

var hellos = schema.GroupVersionResource{Group: group, Version: "v1alpha1", Resource: "hellos"}

// byUID is an index of claims. A user's claim that names a Hello has its own UID as the key. A prime has the UID in its
// name as the key.
const byUID = "uid"

// controller populates the volumes of claims that name a Hello. Its queue has the claims' UIDs. The names of a
// population's pod and prime derive from the UID, so that both can be removed even if the claim is gone.
type controller struct {
	client           kubernetes.Interface
	namespace, image string

	// pods has only the pods of the namespace.
	claims, volumes, classes, pods, hellos cache.SharedIndexInformer

	queue workqueue.TypedRateLimitingInterface[string]
}

func newController(client kubernetes.Interface, objects dynamic.Interface, namespace, image string) *controller {
	everywhere := informers.NewSharedInformerFactory(client, 0)
	here := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace))
	return &controller{
		client: client, namespace: namespace, image: image,
		claims:  everywhere.Core().V1().PersistentVolumeClaims().Informer(),
		volumes: everywhere.Core().V1().PersistentVolumes().Informer(),
		classes: everywhere.Storage().V1().StorageClasses().Informer(),
		pods:    here.Core().V1().Pods().Informer(),
		hellos:  dynamicinformer.NewDynamicSharedInformerFactory(objects, 0).ForResource(hellos).Informer(),
		queue:   workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]()),
	}
}

// run handles claims until the context ends.
func (c *controller) run(ctx context.Context) error {
	index := func(object any) ([]string, error) { return c.uidsOf(object), nil }
	if err := c.claims.AddIndexers(cache.Indexers{byUID: index}); err != nil {
		return fmt.Errorf("adding an index: %w", err)
	}
	handler := cache.ResourceEventHandlerFuncs{AddFunc: c.seen, UpdateFunc: func(before, after any) { c.seen(before); c.seen(after) }, DeleteFunc: c.seen}
	var synced []cache.InformerSynced
	for _, informer := range []cache.SharedIndexInformer{c.claims, c.volumes, c.classes, c.pods, c.hellos} {
		registration, err := informer.AddEventHandler(handler)
		if err != nil {
			return fmt.Errorf("watching: %w", err)
		}
		go informer.RunWithContext(ctx)
		synced = append(synced, registration.HasSynced)
	}
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		return nil
	}
	context.AfterFunc(ctx, c.queue.ShutDown)
	for c.next(ctx) {
	}
	return nil
}

func (c *controller) next(ctx context.Context) bool {
	uid, shutdown := c.queue.Get()
	if shutdown {
		return false
	}
	defer c.queue.Done(uid)
	if err := c.reconcile(ctx, uid); err != nil {
		slog.Error("cannot populate yet", "claim", uid, "error", err)
		c.queue.AddRateLimited(uid)
		return true
	}
	c.queue.Forget(uid)
	return true
}

// seen queues the claims that an object affects.
func (c *controller) seen(object any) {
	if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = gone.Obj
	}
	for _, uid := range c.uidsOf(object) {
		c.queue.Add(uid)
	}
}

// uidsOf returns the UIDs of the claims that an object affects.
func (c *controller) uidsOf(object any) []string {
	switch o := object.(type) {
	case *corev1.PersistentVolumeClaim:
		if o.Namespace == c.namespace {
			return uidIn(o.Name, primePrefix)
		}
		if namesHello(o) {
			return []string{string(o.UID)}
		}
		return nil
	case *corev1.Pod:
		return uidIn(o.Name, podPrefix)
	case *corev1.PersistentVolume:
		if ref := o.Spec.ClaimRef; ref != nil && ref.Namespace == c.namespace {
			return uidIn(ref.Name, primePrefix)
		}
		return nil
	case *storagev1.StorageClass, *unstructured.Unstructured:
		return c.claims.GetIndexer().ListIndexFuncValues(byUID)
	}
	return nil
}

func namesHello(claim *corev1.PersistentVolumeClaim) bool {
	ref := claim.Spec.DataSourceRef
	return ref != nil && ref.APIGroup != nil && *ref.APIGroup == group && ref.Kind == kind &&
		(ref.Namespace == nil || *ref.Namespace == claim.Namespace)
}

func uidIn(name, prefix string) []string {
	if uid, ok := strings.CutPrefix(name, prefix); ok {
		return []string{uid}
	}
	return nil
}

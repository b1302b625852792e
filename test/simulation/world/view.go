package world

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// View is the cache of one agent. It has an informer for each kind that the agent reads. Each informer lags behind the
// store by its own number of events.
type View struct {
	world   *World
	by      string
	options cache.Options
	indexes map[string]client.IndexerFunc // by kind and field

	// mu is for the goroutines of the agent. While the world takes a step, they may run, too.
	mu        sync.Mutex
	informers []*informer
}

var _ cache.Cache = (*View)(nil)

// NewView returns the cache of an agent that starts now.
func NewView(w *World, by string, options cache.Options) *View {
	return &View{world: w, by: by, options: options, indexes: map[string]client.IndexerFunc{}}
}

// informer caches the objects of one kind and passes their events to handlers.
type informer struct {
	view     *View
	table    *table
	metadata bool // caches only the metadata of objects
	selector cache.ByObject

	at       int       // number of events of the table that it has processed
	until    time.Time // no event arrives before this time
	objects  map[Key]client.Object
	handlers []toolscache.ResourceEventHandler
}

// of returns the informer for the kind of an object or list. If the view has no such informer, of adds one. A new
// informer starts with the current objects of the store.
func (v *View) of(example runtime.Object) *informer {
	v.mu.Lock()
	defer v.mu.Unlock()
	kind := v.world.Store.kindOf(example)
	_, metadata := example.(*metav1.PartialObjectMetadata)
	if _, list := example.(*metav1.PartialObjectMetadataList); list {
		metadata = true
	}
	for _, i := range v.informers {
		if i.table.kind.Kind == kind && i.metadata == metadata {
			return i
		}
	}
	i := &informer{view: v, table: v.world.Store.table(kind), metadata: metadata, objects: map[Key]client.Object{}}
	for object, selector := range v.options.ByObject {
		if v.world.Store.kindOf(object) == kind {
			i.selector = selector
		}
	}
	i.at = len(i.table.events)
	for key, s := range i.table.objects {
		if seen := i.see(s.object); seen != nil {
			i.objects[key] = seen
		}
	}
	v.informers = append(v.informers, i)
	slices.SortFunc(v.informers, func(a, b *informer) int { return strings.Compare(a.table.kind.Kind, b.table.kind.Kind) })
	return i
}

// follows reports whether an event concerns the informer: its cache has the object, or the object matches its selector
// after the event.
func (i *informer) follows(e Event) bool {
	_, seen := i.objects[e.Key]
	return seen || e.After != nil && i.selects(e.After)
}

func (i *informer) selects(object client.Object) bool {
	if s := i.selector.Label; s != nil && !s.Matches(labels.Set(object.GetLabels())) {
		return false
	}
	s := i.selector.Field
	if s == nil {
		return true
	}
	known := fields.Set{metav1.ObjectNameField: object.GetName()}
	if pod, ok := object.(*corev1.Pod); ok {
		known["spec.nodeName"] = pod.Spec.NodeName
		known["status.phase"] = string(cmp.Or(pod.Status.Phase, corev1.PodPending))
	}
	return s.Matches(known)
}

// see returns the cached form of an object: a transformed copy, or only the metadata. It returns nil if the object is
// nil or does not match the selector of the informer.
func (i *informer) see(object client.Object) client.Object {
	if object == nil || !i.selects(object) {
		return nil
	}
	kept := object.DeepCopyObject().(client.Object)
	if i.metadata {
		partial := metadataOf(kept)
		partial.SetGroupVersionKind(i.table.kind)
		return partial
	}
	transform := i.selector.Transform
	if transform == nil {
		return kept
	}
	trimmed, err := transform(kept)
	if err != nil {
		panic(err)
	}
	return trimmed.(client.Object)
}

// Choices adds one choice for each informer with a pending event: the next event arrives. It skips the events that
// do not concern the informer.
func (v *View) Choices(add func(Choice)) {
	for _, i := range v.informers {
		for i.at < len(i.table.events) && !i.follows(i.table.events[i.at]) {
			i.at++
		}
		if i.at >= len(i.table.events) || time.Now().Before(i.until) {
			continue
		}
		add(Choice{What: v.by + " sees " + i.table.events[i.at].Key.String(), Weight: 4, Do: i.deliver})
	}
}

// Hold delays all events of one informer for a time. The number selects the informer. Hold returns the kind of the
// informer.
func (v *View) Hold(number int, wait time.Duration) string {
	i := v.informers[number%len(v.informers)]
	i.until = time.Now().Add(wait)
	v.world.After(wait, func() {})
	return i.table.kind.Kind
}

// deliver processes the next event: it updates the cache and calls the handlers.
func (i *informer) deliver() {
	e := i.table.events[i.at]
	i.at++
	after := i.see(e.After)
	before, seen := i.replace(e.Key, after)
	switch {
	case after == nil && !seen:
	case after == nil:
		i.tell(func(h toolscache.ResourceEventHandler) { h.OnDelete(before) })
	case !seen:
		i.tell(func(h toolscache.ResourceEventHandler) { h.OnAdd(after, false) })
	default:
		i.tell(func(h toolscache.ResourceEventHandler) { h.OnUpdate(before, after) })
	}
}

// replace puts an object into the cache in place of the former one, which it returns; nil removes that.
func (i *informer) replace(key Key, after client.Object) (before client.Object, seen bool) {
	i.view.mu.Lock()
	defer i.view.mu.Unlock()
	before, seen = i.objects[key]
	if after == nil {
		delete(i.objects, key)
	} else {
		i.objects[key] = after
	}
	return before, seen
}

func (i *informer) tell(tell func(toolscache.ResourceEventHandler)) {
	for _, handler := range i.handlers {
		tell(handler)
	}
}

// Relist simulates the loss of a watch: one informer skips all pending events and lists the objects again. Its handlers
// see the difference between the old cache and the new list, but no states in between. The number selects the informer.
// Relist returns the kind of the informer, or an empty string if the view has no informers.
func (v *View) Relist(number int) string {
	if len(v.informers) == 0 {
		return ""
	}
	i := v.informers[number%len(v.informers)]
	i.until = time.Time{}
	missed := map[Key]bool{}
	for _, e := range i.table.events[i.at:] {
		missed[e.Key] = true
	}
	i.at = len(i.table.events)
	keys := make([]Key, 0, len(missed))
	for key := range missed {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, Key.compare)
	for _, key := range keys {
		after := i.see(i.table.objects[key].object)
		before, seen := i.replace(key, after)
		switch {
		case after == nil && seen:
			i.tell(func(h toolscache.ResourceEventHandler) {
				h.OnDelete(toolscache.DeletedFinalStateUnknown{Key: key.Namespace + "/" + key.Name, Obj: before})
			})
		case after == nil:
		case !seen:
			i.tell(func(h toolscache.ResourceEventHandler) { h.OnAdd(after, false) })
		default:
			// If an object was removed and created again in the meantime, a relist reports an update.
			i.tell(func(h toolscache.ResourceEventHandler) { h.OnUpdate(before, after) })
		}
	}
	return i.table.kind.Kind
}

// Get implements client.Reader.
func (v *View) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	i := v.of(into)
	at := Key{Kind: i.table.kind.Kind, Namespace: key.Namespace, Name: key.Name}
	v.mu.Lock()
	found, ok := i.objects[at]
	v.mu.Unlock()
	if !ok {
		return i.table.notFound(at)
	}
	return copyInto(found, into)
}

// List implements client.Reader.
func (v *View) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	i := v.of(list)
	return setItems(list, i.selected((&client.ListOptions{}).ApplyOptions(options)))
}

// selected returns the cached objects that the options select, sorted by their keys.
func (i *informer) selected(options *client.ListOptions) []runtime.Object {
	i.view.mu.Lock()
	defer i.view.mu.Unlock()
	keys := make([]Key, 0, len(i.objects))
	for key, object := range i.objects {
		if selects(options, object, i.view.indexed) {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, Key.compare)
	found := make([]runtime.Object, len(keys))
	for n, key := range keys {
		found[n] = i.objects[key]
	}
	return found
}

func (v *View) indexed(object client.Object, field string) []string {
	if field == metav1.ObjectNameField {
		return []string{object.GetName()}
	}
	return v.indexes[v.world.Store.kindOf(object)+" "+field](object)
}

// IndexField implements client.FieldIndexer.
func (v *View) IndexField(_ context.Context, object client.Object, field string, extract client.IndexerFunc) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.indexes[v.world.Store.kindOf(object)+" "+field] = extract
	return nil
}

// GetInformer implements cache.Informers.
func (v *View) GetInformer(_ context.Context, object client.Object, _ ...cache.InformerGetOption) (cache.Informer, error) {
	return v.of(object), nil
}

// GetInformerForKind implements cache.Informers.
func (v *View) GetInformerForKind(_ context.Context, kind schema.GroupVersionKind, _ ...cache.InformerGetOption) (cache.Informer, error) {
	return v.of(v.world.Store.table(kind.Kind).example), nil
}

// RemoveInformer implements cache.Informers.
func (v *View) RemoveInformer(context.Context, client.Object) error { return nil }

// Start implements cache.Informers.
func (v *View) Start(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// WaitForCacheSync implements cache.Informers.
func (v *View) WaitForCacheSync(context.Context) bool { return true }

// AddEventHandler implements cache.Informer.
func (i *informer) AddEventHandler(handler toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandlerWithOptions(handler, toolscache.HandlerOptions{})
}

// AddEventHandlerWithResyncPeriod implements cache.Informer.
func (i *informer) AddEventHandlerWithResyncPeriod(handler toolscache.ResourceEventHandler, _ time.Duration) (toolscache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandlerWithOptions(handler, toolscache.HandlerOptions{})
}

// AddEventHandlerWithOptions implements cache.Informer. It calls OnAdd of the handler at once for each cached object.
func (i *informer) AddEventHandlerWithOptions(handler toolscache.ResourceEventHandler, _ toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error) {
	i.view.mu.Lock()
	i.handlers = append(i.handlers, handler)
	i.view.mu.Unlock()
	keys := make([]Key, 0, len(i.objects))
	for key := range i.objects {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, Key.compare)
	for _, key := range keys {
		handler.OnAdd(i.objects[key], true)
	}
	return registration{}, nil
}

// RemoveEventHandler implements cache.Informer.
func (i *informer) RemoveEventHandler(toolscache.ResourceEventHandlerRegistration) error { return nil }

// AddIndexers implements cache.Informer.
func (i *informer) AddIndexers(toolscache.Indexers) error {
	return errors.New("the world's informers have no indexers of their own")
}

// HasSynced implements cache.Informer.
func (i *informer) HasSynced() bool { return true }

// HasSyncedChecker implements cache.Informer.
func (i *informer) HasSyncedChecker() toolscache.DoneChecker { return synced{} }

// synced is a DoneChecker that is always done.
type synced struct{}

func (synced) Name() string { return "the world" }

func (synced) Done() <-chan struct{} {
	done := make(chan struct{})
	close(done)
	return done
}

// IsStopped implements cache.Informer.
func (i *informer) IsStopped() bool { return false }

// registration is the registration of an event handler. It is always synced, because AddEventHandlerWithOptions has
// already passed all cached objects to the handler.
type registration struct {
	toolscache.ResourceEventHandlerRegistration
}

func (registration) HasSynced() bool { return true }

// String returns the kind of each informer with the number of processed events and the number of all events.
func (v *View) String() string {
	var texts []string
	for _, i := range v.informers {
		texts = append(texts, fmt.Sprintf("%s %d/%d", i.table.kind.Kind, i.at, len(i.table.events)))
	}
	return strings.Join(texts, ", ")
}

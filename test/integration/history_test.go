package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// history has all versions of objects that there were while a test ran.
type history struct {
	c *cluster

	mu   sync.Mutex
	seen map[string][]client.Object // by kind, namespace and name
	gone map[string]bool
}

// watchObjects begins a history of all objects of the kinds of some lists.
func watchObjects(t *testing.T, c *cluster, lists ...client.ObjectList) *history {
	t.Helper()
	h := &history{c: c, seen: map[string][]client.Object{}, gone: map[string]bool{}}
	for _, list := range lists {
		w, err := c.Admin.Watch(t.Context(), list)
		if err != nil {
			t.Fatal(err)
		}
		var reading sync.WaitGroup
		reading.Go(func() { h.read(w) })
		t.Cleanup(func() {
			w.Stop()
			reading.Wait()
		})
	}
	return h
}

func (h *history) read(w watch.Interface) {
	for event := range w.ResultChan() {
		object, ok := event.Object.(client.Object)
		if !ok {
			continue
		}
		h.mu.Lock()
		key := keyOf(object)
		h.seen[key] = append(h.seen[key], object)
		h.gone[key] = event.Type == watch.Deleted
		h.mu.Unlock()
	}
}

func keyOf(object client.Object) string {
	return fmt.Sprintf("%T %s", object, client.ObjectKeyFromObject(object))
}

// versions returns the versions of an object so far, and whether it is gone.
func (h *history) versions(object client.Object) (all []client.Object, gone bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	key := keyOf(object)
	return slices.Clone(h.seen[key]), h.gone[key]
}

// first returns the first version of an object of which something is true.
func first[T client.Object](t *testing.T, h *history, object T, what string, condition func(T) bool) T {
	t.Helper()
	var found T
	eventually(t, fmt.Sprintf("%T %s: %s", object, object.GetName(), what), func(context.Context) (bool, string) {
		versions, _ := h.versions(object)
		for _, version := range versions {
			if v, ok := version.(T); ok && condition(v) {
				found = v
				return true, ""
			}
		}
		return false, fmt.Sprintf("there were %d versions", len(versions))
	})
	return found
}

// statuses returns the statuses that an object has had until its end, one after the other.
func (h *history) statuses(t *testing.T, object client.Object) []string {
	t.Helper()
	var versions []client.Object
	eventually(t, fmt.Sprintf("the end of %T %s is seen", object, object.GetName()), func(context.Context) (bool, string) {
		all, gone := h.versions(object)
		versions = all
		return gone, fmt.Sprintf("there were %d versions", len(all))
	})
	var statuses []string
	for _, version := range versions {
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(version)
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(fields["status"])
		if err != nil {
			t.Fatal(err)
		}
		statuses = append(statuses, string(text))
	}
	return slices.Compact(statuses)
}

// finalizers returns the finalizers that an object has had at some time.
func (h *history) finalizers(object client.Object) []string {
	var all []string
	versions, _ := h.versions(object)
	for _, version := range versions {
		all = append(all, version.GetFinalizers()...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

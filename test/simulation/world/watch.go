package world

import (
	"context"

	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// watcher is an open watch of an agent. The world decides when the watcher receives each event.
type watcher struct {
	world   *World
	by      string
	table   *table
	options *client.ListOptions
	at      int
	events  chan watch.Event
	ended   bool
}

// Watch implements client.WithWatch. The watch delivers only events that occur after the API server has handled the
// call.
func (c *Client) Watch(ctx context.Context, list client.ObjectList, options ...client.ListOption) (watch.Interface, error) {
	o := (&client.ListOptions{}).ApplyOptions(options)
	kind := c.kindOf(list)
	w := &watcher{world: c.World, by: c.By, options: o, events: make(chan watch.Event, 1)}
	if err := c.ask(ctx, false, "watch "+kind, func() error {
		w.table = c.World.Store.table(kind)
		w.at = len(w.table.events)
		c.World.Add(w)
		return nil
	}); err != nil {
		return nil, err
	}
	return w, nil
}

// Choices implements Actor.
func (w *watcher) Choices(add func(Choice)) {
	w.world.mu.Lock()
	ended := w.ended
	w.world.mu.Unlock()
	if ended {
		w.world.Remove(w)
		return
	}
	for w.at < len(w.table.events) && !w.concerns(w.table.events[w.at]) {
		w.at++
	}
	if w.at < len(w.table.events) && len(w.events) == 0 {
		add(Choice{What: w.by + " hears of " + w.table.events[w.at].Key.String(), Weight: 4, Do: w.deliver})
	}
}

func (w *watcher) concerns(e Event) bool {
	return e.After != nil && selects(w.options, e.After, fieldOf) || e.Before != nil && selects(w.options, e.Before, fieldOf)
}

func (w *watcher) deliver() {
	e := w.table.events[w.at]
	w.at++
	switch {
	case e.After == nil:
		w.events <- watch.Event{Type: watch.Deleted, Object: e.Before.DeepCopyObject()}
	case e.Before == nil:
		w.events <- watch.Event{Type: watch.Added, Object: e.After.DeepCopyObject()}
	default:
		w.events <- watch.Event{Type: watch.Modified, Object: e.After.DeepCopyObject()}
	}
}

// Stop implements watch.Interface.
func (w *watcher) Stop() {
	w.world.mu.Lock()
	defer w.world.mu.Unlock()
	w.ended = true
}

// ResultChan implements watch.Interface.
func (w *watcher) ResultChan() <-chan watch.Event { return w.events }

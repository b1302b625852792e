package world

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Direct is an API client without delays and injected faults. Its calls take effect at once and are never parked. It is
// for webhooks, which run inside a request to the API server. Direct supports Get, List and Patch only.
type Direct struct {
	client.Client

	Store *Store
	By    string
}

// Get implements client.Reader.
func (d Direct) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	at := Key{Kind: d.Store.kindOf(into), Namespace: key.Namespace, Name: key.Name}
	found := d.Store.Find(at)
	if found == nil {
		return d.Store.table(at.Kind).notFound(at)
	}
	return copyInto(found, into)
}

// List implements client.Reader.
func (d Direct) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	return setItems(list, d.Store.selected(d.Store.kindOf(list), 0, options))
}

// Patch implements client.Writer.
func (d Direct) Patch(_ context.Context, object client.Object, patch client.Patch, _ ...client.PatchOption) error {
	return d.Store.Patch(d.By, object, patch, false)
}

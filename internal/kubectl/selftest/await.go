package selftest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// objects maps namespace and name to objects.
type objects map[client.ObjectKey]client.Object

// errWatchEnded means that the API server ended a watch, which is normal: the next watch continues.
var errWatchEnded = errors.New("the watch has ended")

// watchPause is the pause after a watch that could not be opened.
const watchPause = time.Second

// await watches the objects of list until check returns done or an error, or ctx ends. Check gets all objects, at
// first and after each change.
//
// The informer behind client-go's UntilWithSync retries every error of the API server, also Forbidden, and writes it to
// the log. A user without access must get that error at once.
func await(ctx context.Context, c client.WithWatch, list client.ObjectList, check func(objects) (bool, error), options ...client.ListOption) error {
	for {
		err := awaitOnce(ctx, c, list.DeepCopyObject().(client.ObjectList), check, options)
		if !errors.Is(err, errWatchEnded) {
			return err
		}
		timer := time.NewTimer(watchPause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		case <-timer.C:
		}
	}
}

func awaitOnce(ctx context.Context, c client.WithWatch, list client.ObjectList, check func(objects) (bool, error), options []client.ListOption) error {
	if err := c.List(ctx, list, options...); err != nil {
		return ended(ctx, err)
	}
	seen := objects{}
	items, err := meta.ExtractList(list)
	if err != nil {
		return fmt.Errorf("reading a list: %w", err)
	}
	for _, item := range items {
		if object, ok := item.(client.Object); ok {
			seen[client.ObjectKeyFromObject(object)] = object
		}
	}
	if done, err := check(seen); done || err != nil {
		return err
	}
	from := &client.ListOptions{}
	from.ApplyOptions(options)
	from.Raw = from.AsListOptions()
	from.Raw.ResourceVersion = list.GetResourceVersion()
	watcher, err := c.Watch(ctx, list, from)
	if err != nil {
		return ended(ctx, err)
	}
	defer watcher.Stop()
	return follow(ctx, watcher, seen, check)
}

// follow keeps seen up to date with a watch.
func follow(ctx context.Context, watcher watch.Interface, seen objects, check func(objects) (bool, error)) error {
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case event, open := <-watcher.ResultChan():
			object, ok := event.Object.(client.Object)
			switch {
			case !open || event.Type == watch.Error:
				return ended(ctx, errWatchEnded)
			case !ok || event.Type == watch.Bookmark:
				continue
			case event.Type == watch.Deleted:
				delete(seen, client.ObjectKeyFromObject(object))
			default:
				seen[client.ObjectKeyFromObject(object)] = object
			}
			if done, err := check(seen); done || err != nil {
				return err
			}
		}
	}
}

// ended classifies the error of an API call: ctx has ended; or errWatchEnded if the API server does not answer at the
// moment; or an error that will not go away.
func ended(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case apierrors.IsForbidden(err), apierrors.IsNotFound(err), apierrors.IsUnauthorized(err), apierrors.IsMethodNotSupported(err), meta.IsNoMatchError(err):
		return err
	default:
		return errWatchEnded
	}
}

// only is a list option that selects one object.
func only(namespace, name string) []client.ListOption {
	options := []client.ListOption{client.MatchingFields{"metadata.name": name}}
	if namespace != "" {
		options = append(options, client.InNamespace(namespace))
	}
	return options
}

// gone waits until a list is empty.
func gone(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
	return await(ctx, c, list, func(seen objects) (bool, error) { return len(seen) == 0, nil }, options...)
}

// race runs all functions and waits for all. It returns the result of the one that ended first.
func race(ctx context.Context, functions ...func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	results := make(chan error, len(functions))
	var all sync.WaitGroup
	for _, function := range functions {
		all.Go(func() { results <- function(ctx) })
	}
	first := <-results
	cancel()
	all.Wait()
	return first
}

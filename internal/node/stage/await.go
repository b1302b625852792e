package stage

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// watchPeriod limits a watch, so that a lost connection is noticed.
const watchPeriod = 30 * time.Second

// await watches the object of a name until it is as it has to be, or gone. List and now are empty objects of its kind;
// now has the last state of the object then.
func await[T client.Object](ctx context.Context, c client.WithWatch, list client.ObjectList, name string, now T, done func(T) bool) error {
	for {
		if err := c.Get(ctx, client.ObjectKey{Name: name}, now); apierrors.IsNotFound(err) {
			return nil
		} else if err != nil {
			return fmt.Errorf("getting %T %q: %w", now, name, err)
		}
		if done(now) {
			return nil
		}
		if reached, err := watchOnce(ctx, c, list, now, done); err != nil || reached {
			return err
		}
	}
}

// watchOnce is await with one watch. It returns false when the watch ends.
func watchOnce[T client.Object](ctx context.Context, c client.WithWatch, list client.ObjectList, now T, done func(T) bool) (bool, error) {
	seconds := int64(watchPeriod.Seconds())
	events, err := c.Watch(ctx, list, &client.ListOptions{
		FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, now.GetName()),
		Raw:           &metav1.ListOptions{ResourceVersion: now.GetResourceVersion(), TimeoutSeconds: &seconds},
	})
	if err != nil {
		return false, fmt.Errorf("watching %T %q: %w", now, now.GetName(), err)
	}
	defer events.Stop()
	for {
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case event, open := <-events.ResultChan():
			if !open || event.Type == watch.Error {
				return false, ctx.Err()
			}
			if object, is := event.Object.(T); is && (event.Type == watch.Deleted || done(object)) {
				return true, nil
			}
		}
	}
}

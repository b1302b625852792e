package world

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
)

// Client is the API client of an agent. Each call is parked until the world continues it.
type Client struct {
	// World contains the API server.
	World *World

	// By is the name of the agent. Life is the context of the agent. After Life ends, all calls fail and have no effect.
	By   string
	Life context.Context //nolint:containedctx // the context of the agent, not of a call

	// Hears, if not nil, is called after each answer of the API server. date is the time of the answer in whole seconds,
	// like the Date header of a response. took is the duration of the call.
	Hears func(date time.Time, took time.Duration)
}

var _ client.WithWatch = (*Client)(nil)

// Get implements client.Reader.
func (c *Client) Get(ctx context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	at := Key{Kind: c.kindOf(into), Namespace: key.Namespace, Name: key.Name}
	var found client.Object
	if err := c.ask(ctx, false, "get "+at.String(), func() error {
		t := c.World.Store.table(at.Kind)
		if found = t.objects[at].object; found == nil {
			return t.notFound(at)
		}
		return nil
	}); err != nil {
		return err
	}
	return copyInto(found, into)
}

// List implements client.Reader.
func (c *Client) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	kind := c.kindOf(list)
	var found []runtime.Object
	if err := c.ask(ctx, false, "list "+kind, func() error {
		found = c.World.Store.selected(kind, c.World.age(options), options)
		return nil
	}); err != nil {
		return err
	}
	return setItems(list, found)
}

// Create implements client.Writer.
func (c *Client) Create(ctx context.Context, object client.Object, _ ...client.CreateOption) error {
	if _, asks := object.(*authorizationv1.SelfSubjectAccessReview); asks {
		return nil // no agent has rights on add-ons, which the world lacks
	}
	return c.send(ctx, "create", object, func(sent client.Object) error { return c.World.Store.Create(c.By, sent) })
}

// Delete implements client.Writer.
func (c *Client) Delete(ctx context.Context, object client.Object, options ...client.DeleteOption) error {
	o := (&client.DeleteOptions{}).ApplyOptions(options)
	key := Key{Kind: c.kindOf(object), Namespace: object.GetNamespace(), Name: object.GetName()}
	return c.ask(ctx, true, "delete "+key.String(), func() error {
		return c.World.Store.Delete(c.By, key, o.Preconditions, o.GracePeriodSeconds)
	})
}

// Update implements client.Writer.
func (c *Client) Update(ctx context.Context, object client.Object, _ ...client.UpdateOption) error {
	return c.send(ctx, "update", object, func(sent client.Object) error { return c.World.Store.Update(c.By, sent, false) })
}

// Patch implements client.Writer.
func (c *Client) Patch(ctx context.Context, object client.Object, patch client.Patch, _ ...client.PatchOption) error {
	return c.patch(ctx, "patch", object, patch, false)
}

// errNone is the error for requests that the world does not support. No agent sends them.
var errNone = errors.New("the world has no such request")

// Apply implements client.Writer.
func (c *Client) Apply(context.Context, runtime.ApplyConfiguration, ...client.ApplyOption) error {
	return errNone
}

// DeleteAllOf implements client.Writer.
func (c *Client) DeleteAllOf(context.Context, client.Object, ...client.DeleteAllOfOption) error {
	return errNone
}

// Status implements client.StatusClient.
func (c *Client) Status() client.SubResourceWriter { return statusWriter{c} }

// SubResource implements client.SubResourceClientConstructor. It supports the subresource binding only and returns nil
// for all others. Status returns the client for the status.
func (c *Client) SubResource(name string) client.SubResourceClient {
	if name != "binding" {
		return nil
	}
	return binder{statusWriter{c}}
}

// Scheme implements client.Client.
func (c *Client) Scheme() *runtime.Scheme { return c.World.Store.scheme }

// RESTMapper implements client.Client.
func (c *Client) RESTMapper() meta.RESTMapper { return nil }

// GroupVersionKindFor implements client.Client.
func (c *Client) GroupVersionKindFor(object runtime.Object) (schema.GroupVersionKind, error) {
	return c.World.Store.table(c.kindOf(object)).kind, nil
}

// IsObjectNamespaced implements client.Client.
func (c *Client) IsObjectNamespaced(object runtime.Object) (bool, error) {
	return isNamespaced(c.kindOf(object)), nil
}

func isNamespaced(kind string) bool {
	switch kind {
	case "Pod", "PersistentVolumeClaim", "PodDisruptionBudget", "VolumeSnapshot":
		return true
	}
	return false
}

func (c *Client) kindOf(object runtime.Object) string { return c.World.Store.kindOf(object) }

func (c *Client) keyOf(object client.Object) string {
	return Key{Kind: c.kindOf(object), Namespace: object.GetNamespace(), Name: object.GetName()}.String()
}

// send makes a parked call that passes a copy of an object to write. If the call succeeds, send copies the result of
// write into the object.
func (c *Client) send(ctx context.Context, verb string, object client.Object, write func(sent client.Object) error) error {
	sent, ok := object.DeepCopyObject().(client.Object)
	if !ok {
		return fmt.Errorf("%T is no object", object)
	}
	if err := c.ask(ctx, true, verb+" "+c.keyOf(object), func() error { return write(sent) }); err != nil {
		return err
	}
	return copyInto(sent, object)
}

func (c *Client) patch(ctx context.Context, verb string, object client.Object, patch client.Patch, status bool) error {
	data, err := patch.Data(object)
	if err != nil {
		return err
	}
	raw := client.RawPatch(patch.Type(), data)
	return c.send(ctx, verb, object, func(sent client.Object) error { return c.World.Store.Patch(c.By, sent, raw, status) })
}

func (c *Client) ask(ctx context.Context, writes bool, what string, do func() error) error {
	if err := c.Life.Err(); err != nil {
		return err
	}
	asked, answered := time.Now(), time.Time{}
	err := c.World.Ask(ctx, &Call{By: c.By, What: c.By + " " + what, Writes: writes, Pass: string(controller.ReconcileIDFromContext(ctx)), do: func() error {
		if err := c.Life.Err(); err != nil {
			return err
		}
		answered = time.Now()
		return do()
	}})
	if status := (apierrors.APIStatus)(nil); c.Hears != nil && !answered.IsZero() && (err == nil || errors.As(err, &status)) {
		c.Hears(answered.Truncate(time.Second), time.Since(asked)) // the answer has arrived
	}
	return err
}

// statusWriter writes the status of objects.
type statusWriter struct{ *Client }

func (s statusWriter) Create(context.Context, client.Object, client.Object, ...client.SubResourceCreateOption) error {
	return errNone
}

func (s statusWriter) Apply(context.Context, runtime.ApplyConfiguration, ...client.SubResourceApplyOption) error {
	return errNone
}

func (s statusWriter) Update(ctx context.Context, object client.Object, _ ...client.SubResourceUpdateOption) error {
	return s.send(ctx, "update status of", object, func(sent client.Object) error { return s.World.Store.Update(s.By, sent, true) })
}

func (s statusWriter) Patch(ctx context.Context, object client.Object, patch client.Patch, _ ...client.SubResourcePatchOption) error {
	return s.patch(ctx, "patch status of", object, patch, true)
}

// binder binds pods to nodes.
type binder struct{ statusWriter }

func (b binder) Get(context.Context, client.Object, client.Object, ...client.SubResourceGetOption) error {
	return errNone
}

func (b binder) Create(ctx context.Context, object, binding client.Object, _ ...client.SubResourceCreateOption) error {
	to, ok := binding.(*corev1.Binding)
	if !ok {
		return errNone
	}
	return b.ask(ctx, true, "bind "+b.keyOf(object), func() error {
		pod := Object[*corev1.Pod](b.World.Store, object.GetNamespace(), object.GetName())
		if pod == nil {
			return b.World.Store.table("Pod").notFound(b.World.Store.KeyOf(object))
		}
		return Change(b.World.Store, b.By, pod, func(p *corev1.Pod) {
			p.Spec.NodeName = to.Target.Name
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue})
		})
	})
}

// age returns how many events of a kind the answer to a list lacks. With the resource version "0", the API server answers
// from its memory, which may be old.
func (w *World) age(options []client.ListOption) int {
	o := (&client.ListOptions{}).ApplyOptions(options)
	if o.Raw == nil || o.Raw.ResourceVersion != "0" || w.Rand.IntN(3) > 0 {
		return 0
	}
	return 1 + w.Rand.IntN(4)
}

// selected returns the objects of a kind that match the list options, as they were before the newest events.
func (s *Store) selected(kind string, without int, options []client.ListOption) []runtime.Object {
	o := (&client.ListOptions{}).ApplyOptions(options)
	var found []runtime.Object
	for _, object := range s.before(kind, without) {
		if selects(o, object, fieldOf) {
			found = append(found, object)
		}
	}
	return found
}

// selects reports whether an object matches the list options. The function values returns the values of a field of the
// object.
func selects(o *client.ListOptions, object client.Object, values func(object client.Object, field string) []string) bool {
	if o.Namespace != "" && object.GetNamespace() != o.Namespace {
		return false
	}
	if o.LabelSelector != nil && !o.LabelSelector.Matches(labels.Set(object.GetLabels())) {
		return false
	}
	if o.FieldSelector == nil {
		return true
	}
	for _, requirement := range o.FieldSelector.Requirements() {
		found := false
		for _, value := range values(object, requirement.Field) {
			found = found || value == requirement.Value
		}
		if !found {
			return false
		}
	}
	return true
}

// fieldOf returns the value of a field of an object. It panics if the simulated API server has no field selector for
// the field.
func fieldOf(object client.Object, field string) []string {
	switch field {
	case metav1.ObjectNameField:
		return []string{object.GetName()}
	case "spec.nodeName":
		if pod, ok := object.(*corev1.Pod); ok {
			return []string{pod.Spec.NodeName}
		}
	}
	panic("the world's API server has no field " + field)
}

// setItems fills a list with copies of objects.
func setItems(list client.ObjectList, objects []runtime.Object) error {
	if partial, ok := list.(*metav1.PartialObjectMetadataList); ok {
		for _, object := range objects {
			partial.Items = append(partial.Items, *metadataOf(object.DeepCopyObject().(client.Object)))
		}
		return nil
	}
	items := reflect.ValueOf(list).Elem().FieldByName("Items")
	if !items.IsValid() {
		return fmt.Errorf("%T has no items", list)
	}
	filled := reflect.MakeSlice(items.Type(), 0, len(objects))
	for _, object := range objects {
		filled = reflect.Append(filled, reflect.ValueOf(object.DeepCopyObject()).Elem())
	}
	items.Set(filled)
	return nil
}

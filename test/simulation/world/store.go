package world

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Key identifies an object.
type Key struct {
	Kind, Namespace, Name string
}

func (k Key) String() string {
	if k.Namespace == "" {
		return k.Kind + " " + k.Name
	}
	return k.Kind + " " + k.Namespace + "/" + k.Name
}

func (k Key) compare(other Key) int {
	if c := strings.Compare(k.Namespace, other.Namespace); c != 0 {
		return c
	}
	return strings.Compare(k.Name, other.Name)
}

// Event is a change of an object. Before is nil if the object was created. After is nil if the object was removed.
type Event struct {
	Key           Key
	At            time.Time
	Before, After client.Object
}

// stored is one version of an object and its JSON encoding. Both are immutable. The encoding has no resource version.
type stored struct {
	object client.Object
	raw    []byte
}

// table contains all objects of a kind and all their events since the start of the simulation.
type table struct {
	kind    schema.GroupVersionKind
	example client.Object
	sorted  []Key
	objects map[Key]stored
	events  []Event
}

// Hook is a function that the store calls before each write. It rejects the write if it returns an error. before is nil
// if the write creates an object. after is nil if the write removes an object.
type Hook func(by string, before, after client.Object) error

// Store is the state of the API server. Its methods take effect at once. Agents use the store through a Client, with
// parked calls.
type Store struct {
	scheme  *runtime.Scheme
	tables  map[string]*table
	kinds   map[reflect.Type]*table // by the Go type of their objects
	version int64
	uids    int64
	hooks   []Hook

	// Name is part of the UIDs of all objects, so that stores with different names have different UIDs.
	Name uint32

	// Writes counts the writes that created, changed or removed an object.
	Writes int
}

// NewStore returns an empty store. Each example is an object of a kind that the store supports. The scheme must contain
// all these kinds.
func NewStore(scheme *runtime.Scheme, examples ...client.Object) *Store {
	s := &Store{scheme: scheme, tables: map[string]*table{}, kinds: map[reflect.Type]*table{}}
	for _, example := range examples {
		kinds, _, err := scheme.ObjectKinds(example)
		if err != nil {
			panic(err) // the scheme lacks a kind of the simulation
		}
		t := &table{kind: kinds[0], example: example, objects: map[Key]stored{}}
		s.tables[kinds[0].Kind], s.kinds[reflect.TypeOf(example)] = t, t
	}
	return s
}

// Hook registers a hook for all later writes.
func (s *Store) Hook(h Hook) { s.hooks = append(s.hooks, h) }

// KeyOf returns the key of an object.
func (s *Store) KeyOf(object client.Object) Key {
	return Key{Kind: s.kindOf(object), Namespace: object.GetNamespace(), Name: object.GetName()}
}

func (s *Store) kindOf(object runtime.Object) string {
	if t, ok := s.kinds[reflect.TypeOf(object)]; ok {
		return t.kind.Kind
	}
	if kind := object.GetObjectKind().GroupVersionKind().Kind; kind != "" {
		return strings.TrimSuffix(kind, "List")
	}
	kinds, _, err := s.scheme.ObjectKinds(object)
	if err != nil {
		panic(err)
	}
	return strings.TrimSuffix(kinds[0].Kind, "List")
}

// mapper returns a mapper of all kinds of the store.
func (s *Store) mapper() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	for kind, t := range s.tables {
		scope := meta.RESTScopeRoot
		if isNamespaced(kind) {
			scope = meta.RESTScopeNamespace
		}
		mapper.Add(t.kind, scope)
	}
	return mapper
}

func (s *Store) table(kind string) *table {
	t, ok := s.tables[kind]
	if !ok {
		panic("the world has no kind " + kind)
	}
	return t
}

func (t *table) resource() schema.GroupResource {
	return schema.GroupResource{Group: t.kind.Group, Resource: strings.ToLower(t.kind.Kind) + "s"}
}

func (t *table) notFound(key Key) error { return apierrors.NewNotFound(t.resource(), key.Name) }

func (t *table) conflict(key Key, why string) error {
	return apierrors.NewConflict(t.resource(), key.Name, fmt.Errorf("%s", why))
}

// Find returns an object, or nil if the object does not exist. The caller must not change the object.
func (s *Store) Find(key Key) client.Object { return s.table(key.Kind).objects[key].object }

// Len returns the number of objects of a kind.
func (s *Store) Len(kind string) int { return len(s.table(kind).sorted) }

// All returns the objects of a kind, sorted by namespace and name. The caller must not change the objects.
func (s *Store) All(kind string) []client.Object {
	t := s.table(kind)
	all := make([]client.Object, 0, len(t.sorted))
	for _, key := range t.sorted {
		all = append(all, t.objects[key].object)
	}
	return all
}

// before returns the objects of a kind as they were before the newest events, sorted by namespace and name.
func (s *Store) before(kind string, events int) []client.Object {
	if events == 0 {
		return s.All(kind)
	}
	t := s.table(kind)
	former := make(map[Key]client.Object, len(t.objects))
	for key, now := range t.objects {
		former[key] = now.object
	}
	for _, e := range slices.Backward(t.events[max(0, len(t.events)-events):]) {
		former[e.Key] = e.Before
	}
	var all []client.Object
	for _, key := range slices.SortedFunc(maps.Keys(former), Key.compare) {
		if object := former[key]; object != nil {
			all = append(all, object)
		}
	}
	return all
}

// Objects returns the objects of type T, sorted by namespace and name. The caller must not change the objects.
func Objects[T client.Object](s *Store) []T {
	t := tableOf[T](s)
	all := make([]T, 0, len(t.sorted))
	for _, key := range t.sorted {
		all = append(all, t.objects[key].object.(T))
	}
	return all
}

// Object returns an object of type T, or nil if the object does not exist. The caller must not change the object.
func Object[T client.Object](s *Store, namespace, name string) T {
	var none T
	t := tableOf[T](s)
	found, ok := t.objects[Key{Kind: t.kind.Kind, Namespace: namespace, Name: name}].object.(T)
	if !ok {
		return none
	}
	return found
}

func tableOf[T client.Object](s *Store) *table {
	var example T
	t, ok := s.kinds[reflect.TypeOf(example)]
	if !ok {
		panic(fmt.Sprintf("the world has no kind %T", example))
	}
	return t
}

// Create adds an object to the store and clears its status, as the API server does. It copies the stored object, with
// UID and resource version, into object.
func (s *Store) Create(by string, object client.Object) error {
	key := s.KeyOf(object)
	t := s.table(key.Kind)
	if _, exists := t.objects[key]; exists {
		return apierrors.NewAlreadyExists(t.resource(), key.Name)
	}
	made := object.DeepCopyObject().(client.Object)
	s.uids++
	made.SetUID(types.UID(fmt.Sprintf("%08x-0000-4000-8000-%012d", s.Name, s.uids)))
	made.SetCreationTimestamp(metav1.NewTime(time.Now()))
	made.SetGeneration(1)
	made.SetDeletionTimestamp(nil)
	clearStatus(made)
	if err := s.admit(by, nil, made); err != nil {
		return err
	}
	made, err := s.put(t, key, nil, made)
	if err != nil {
		return err
	}
	return copyInto(made, object)
}

func (s *Store) admit(by string, before, after client.Object) error {
	for _, hook := range s.hooks {
		if err := hook(by, before, after); err != nil {
			return err
		}
	}
	return nil
}

// put stores an object under the next resource version and returns the stored object. The stored object is decoded from
// JSON, so that its metadata times have no fractions of seconds, as with a real API server.
func (s *Store) put(t *table, key Key, before, after client.Object) (client.Object, error) {
	after.SetResourceVersion("")
	after.GetObjectKind().SetGroupVersionKind(t.kind)
	raw, err := json.Marshal(after)
	if err != nil {
		return nil, err
	}
	if before != nil && bytes.Equal(raw, t.objects[key].raw) {
		return before, nil // a write without changes causes no event and no new resource version
	}
	kept := shallow(t.example)
	if err := json.Unmarshal(raw, kept); err != nil {
		return nil, err
	}
	s.version++
	s.Writes++
	kept.SetResourceVersion(fmt.Sprint(s.version))
	if before == nil {
		at, _ := slices.BinarySearchFunc(t.sorted, key, Key.compare)
		t.sorted = slices.Insert(t.sorted, at, key)
	}
	t.objects[key] = stored{object: kept, raw: raw}
	t.events = append(t.events, Event{Key: key, At: time.Now(), Before: before, After: kept})
	return kept, nil
}

// Change applies the function change to a copy of the stored object and stores the result. The function may change the
// status and all other fields. Change returns a NotFound error if the store has no object with this key and UID. It is
// for the simulated users and components of Kubernetes. Agents use a Client instead.
func Change[T client.Object](s *Store, by string, object T, change func(T)) error {
	key := s.KeyOf(object)
	t := s.table(key.Kind)
	before := t.objects[key].object
	if before == nil || before.GetUID() != object.GetUID() {
		return t.notFound(key)
	}
	after := before.DeepCopyObject().(T)
	change(after)
	_, err := s.replace(by, t, key, after)
	return err
}

// replace stores a new version of an existing object. If the object is being deleted and nothing holds the new version
// any more, replace then removes the object.
func (s *Store) replace(by string, t *table, key Key, after client.Object) (client.Object, error) {
	before := t.objects[key].object
	after.SetUID(before.GetUID())
	after.SetCreationTimestamp(before.GetCreationTimestamp())
	after.SetDeletionTimestamp(before.GetDeletionTimestamp())
	after.SetGeneration(before.GetGeneration())
	if before.GetDeletionTimestamp() != nil {
		for _, finalizer := range after.GetFinalizers() {
			if !slices.Contains(before.GetFinalizers(), finalizer) {
				return nil, apierrors.NewInvalid(t.kind.GroupKind(), key.Name, nil)
			}
		}
	}
	if specDiffers(before, after) {
		after.SetGeneration(before.GetGeneration() + 1)
	}
	if err := s.admit(by, before, after); err != nil {
		return nil, err
	}
	kept, err := s.put(t, key, before, after)
	if err != nil {
		return nil, err
	}
	if gone(kept) {
		return kept, s.remove(by, t, key, kept)
	}
	return kept, nil
}

// gone reports whether the store can remove an object: the object is being deleted, has no finalizers, and has no grace
// period left. A pod with a node usually has a grace period until its kubelet deletes it with grace period 0.
func gone(object client.Object) bool {
	if object.GetDeletionTimestamp() == nil || len(object.GetFinalizers()) > 0 {
		return false
	}
	grace := object.GetDeletionGracePeriodSeconds()
	return grace == nil || *grace == 0
}

func (s *Store) remove(by string, t *table, key Key, object client.Object) error {
	if err := s.admit(by, object, nil); err != nil {
		return err
	}
	s.version++
	s.Writes++
	delete(t.objects, key)
	at, _ := slices.BinarySearchFunc(t.sorted, key, Key.compare)
	t.sorted = slices.Delete(t.sorted, at, at+1)
	t.events = append(t.events, Event{Key: key, At: time.Now(), Before: object})
	return nil
}

// Events returns all events of a kind since the start of the simulation.
func (s *Store) Events(kind string) []Event { return s.table(kind).events }

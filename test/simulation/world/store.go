package world

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Key names an object.
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

// Event is a change of an object. Before is nil for one that has come, and After for one that has gone.
type Event struct {
	Key           Key
	At            time.Time
	Before, After client.Object
}

// stored is an object of the store, which never changes, and its encoding.
type stored struct {
	object client.Object
	raw    []byte
}

// table is all objects of a kind, and all that ever happened to them.
type table struct {
	kind    schema.GroupVersionKind
	example client.Object
	sorted  []Key
	objects map[Key]stored
	events  []Event
}

// Hook sees a write before it takes place, and may refuse it. Before is nil where an object is created, after
// where it goes.
type Hook func(by string, before, after client.Object) error

// Store is the API server's: what it has is the truth. Its methods take effect at once.
type Store struct {
	scheme  *runtime.Scheme
	tables  map[string]*table
	kinds   map[reflect.Type]*table // by the type of their objects
	version int64
	uids    int64
	hooks   []Hook

	// Name tells the UIDs of this store from those of others.
	Name uint32

	// Writes counts those that changed something.
	Writes int
}

// NewStore returns an empty store for kinds of a scheme, each given by an example.
func NewStore(scheme *runtime.Scheme, examples ...client.Object) *Store {
	s := &Store{scheme: scheme, tables: map[string]*table{}, kinds: map[reflect.Type]*table{}}
	for _, example := range examples {
		kinds, _, err := scheme.ObjectKinds(example)
		if err != nil {
			panic(err) // a kind that the simulation's author has not registered
		}
		t := &table{kind: kinds[0], example: example, objects: map[Key]stored{}}
		s.tables[kinds[0].Kind], s.kinds[reflect.TypeOf(example)] = t, t
	}
	return s
}

// Hook has all later writes shown to a hook first.
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

// Find returns an object, which must not be changed, or nil.
func (s *Store) Find(key Key) client.Object { return s.table(key.Kind).objects[key].object }

// Len returns how many objects of a kind there are.
func (s *Store) Len(kind string) int { return len(s.table(kind).sorted) }

// All returns the objects of a kind, which must not be changed, in the order of their names.
func (s *Store) All(kind string) []client.Object {
	t := s.table(kind)
	all := make([]client.Object, 0, len(t.sorted))
	for _, key := range t.sorted {
		all = append(all, t.objects[key].object)
	}
	return all
}

// Objects returns the objects of T, which must not be changed, in the order of their names.
func Objects[T client.Object](s *Store) []T {
	t := tableOf[T](s)
	all := make([]T, 0, len(t.sorted))
	for _, key := range t.sorted {
		all = append(all, t.objects[key].object.(T))
	}
	return all
}

// Object returns an object of T, which must not be changed, or nil.
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

// Create adds an object, and fills in what the API server makes of it.
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

// put writes an object under the next version, and returns what is stored. What JSON does not keep, such as
// parts of seconds, is lost as it is in the real world.
func (s *Store) put(t *table, key Key, before, after client.Object) (client.Object, error) {
	after.SetResourceVersion("")
	after.GetObjectKind().SetGroupVersionKind(t.kind)
	raw, err := json.Marshal(after)
	if err != nil {
		return nil, err
	}
	if before != nil && bytes.Equal(raw, t.objects[key].raw) {
		return before, nil // a write that changes nothing is none
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

// Change has an object changed by a function, as its status or as the rest of it, and reports whether it
// exists. It is for those who live in the world, not for agents.
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

// replace writes another version of an object that exists, or removes it where nothing holds it any more.
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

// gone reports whether nothing holds an object that is deleted. A pod that has a node is held by its kubelet
// until its grace period is none.
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

// Events returns all that ever happened to the objects of a kind.
func (s *Store) Events(kind string) []Event { return s.table(kind).events }

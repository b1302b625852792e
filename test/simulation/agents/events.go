package agents

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"

	"github.com/albertofaria/pav/test/simulation/world"
)

// The recorder of a process limits the events of each object, as client-go does: it accepts a burst of events, then one
// event per refill time. It drops all others.
const (
	burst  = 25
	refill = 5 * time.Minute
)

// Events are the events of all agents.
type Events struct {
	World *world.World

	warnings map[string][]string // warnings by object
	dropped  []string
}

// recorder is the event recorder of one process. Each process has its own budgets, so a restart resets them.
type recorder struct {
	*Events

	budgets map[string]*budget
}

// Recorder returns the event recorder of a new process.
func (e *Events) Recorder() record.EventRecorder {
	return &recorder{Events: e, budgets: map[string]*budget{}}
}

// budget is the number of events that an object may still have.
type budget struct {
	left  float64
	since time.Time
}

// NewEvents returns Events without any event.
func NewEvents(w *world.World) *Events {
	return &Events{World: w, warnings: map[string][]string{}}
}

// Event implements record.EventRecorder.
func (e *recorder) Event(object runtime.Object, kind, reason, message string) {
	name := describe(object)
	if !e.spend(name + " " + uidOf(object)) {
		e.dropped = append(e.dropped, fmt.Sprintf("%s: %s: %s", name, reason, message))
		e.World.Counts["events beyond the budget"]++
		return
	}
	if kind == corev1.EventTypeWarning {
		e.warnings[name] = append(e.warnings[name], reason+": "+message)
	}
}

func (e *recorder) spend(name string) bool {
	now := time.Now()
	b := e.budgets[name]
	if b == nil {
		b = &budget{left: burst, since: now}
		e.budgets[name] = b
	}
	b.left = min(burst, b.left+now.Sub(b.since).Seconds()/refill.Seconds())
	b.since = now
	if b.left < 1 {
		return false
	}
	b.left--
	return true
}

// Eventf implements record.EventRecorder.
func (e *recorder) Eventf(object runtime.Object, kind, reason, format string, arguments ...any) {
	e.Event(object, kind, reason, fmt.Sprintf(format, arguments...))
}

// AnnotatedEventf implements record.EventRecorder.
func (e *recorder) AnnotatedEventf(object runtime.Object, _ map[string]string, kind, reason, format string, arguments ...any) {
	e.Eventf(object, kind, reason, format, arguments...)
}

// uidOf returns the UID of an event's object. Another object with the same name has a budget of its own.
func uidOf(object runtime.Object) string {
	switch o := object.(type) {
	case *corev1.ObjectReference:
		return string(o.UID)
	case interface{ GetUID() types.UID }:
		return string(o.GetUID())
	}
	return ""
}

func describe(object runtime.Object) string {
	if ref, ok := object.(*corev1.ObjectReference); ok {
		return ref.Kind + " " + ref.Namespace + "/" + ref.Name
	}
	accessor, ok := object.(interface {
		GetNamespace() string
		GetName() string
	})
	if !ok {
		return fmt.Sprintf("%T", object)
	}
	return fmt.Sprintf("%T %s/%s", object, accessor.GetNamespace(), accessor.GetName())
}

// Warnings returns the warnings about a claim.
func (e *Events) Warnings(claim *corev1.PersistentVolumeClaim) []string {
	return append(e.warnings[describe(claim)], e.warnings["PersistentVolumeClaim "+claim.Namespace+"/"+claim.Name]...)
}

// All returns all warnings.
func (e *Events) All() []string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(e.warnings)) {
		all = append(all, e.warnings[name]...)
	}
	return all
}

// Dropped returns the events that exceeded a budget and are lost.
func (e *Events) Dropped() []string { return e.dropped }

package ledger

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/albertofaria/pav/internal/controller/rule"
	"github.com/albertofaria/pav/internal/observability"
	"github.com/albertofaria/pav/internal/reconcile"
)

// Record is an object of PaV's own whose status records work.
type Record interface {
	client.Object

	// StatusConditions returns where the conditions of the status are.
	StatusConditions() *[]metav1.Condition

	// Stamp notes the generation that the status is based on, and the version of the agent that writes it.
	Stamp(generation int64, version string)
}

// copyable is a record with the methods that are generated for its kind.
type copyable[R any] interface {
	Record
	DeepCopy() R
	DeepCopyInto(R)
}

// Writer writes the statuses of one kind of record.
type Writer[R copyable[R]] struct {
	Client client.Client

	// Expectations are told of each write.
	Expectations *reconcile.Expectations

	// Version is the version of the agent.
	Version string

	// Now returns the time of the cluster.
	Now func() time.Time
}

// Patch writes a changed status, unless the record was written by another process meanwhile. After that, record is the object
// that was written. It reports whether something was written. The error is reconcile.ErrStale if the record is gone.
func (w *Writer[R]) Patch(ctx context.Context, record R, change func(R)) (bool, error) {
	changed := record.DeepCopy()
	change(changed)
	if equality.Semantic.DeepEqual(record, changed) {
		return false, nil
	}
	w.date(*record.StatusConditions(), *changed.StatusConditions())
	changed.Stamp(record.GetGeneration(), w.Version)
	patch := client.MergeFromWithOptions(record, client.MergeFromWithOptimisticLock{})
	if err := w.Client.Status().Patch(ctx, changed, patch); apierrors.IsNotFound(err) {
		return false, reconcile.ErrStale
	} else if err != nil {
		return false, fmt.Errorf("updating the status of %s %q: %w", w.kind(record), record.GetName(), err)
	}
	w.Expectations.Replace(record.GetName(), record.GetResourceVersion(), changed.GetResourceVersion())
	changed.DeepCopyInto(record)
	return true, nil
}

// kind returns the kind of a record, which objects in the cache do not have with them.
func (w *Writer[R]) kind(record R) string {
	gvk, err := apiutil.GVKForObject(record, w.Client.Scheme())
	if err != nil {
		return fmt.Sprintf("%T", record)
	}
	return gvk.Kind
}

// date sets the times of conditions that are new, or whose status has changed, to the time of the cluster:
// meta.SetStatusCondition uses the clock of the machine.
func (w *Writer[R]) date(before, after []metav1.Condition) {
	for i := range after {
		was := meta.FindStatusCondition(before, after[i].Type)
		if was == nil || !was.LastTransitionTime.Equal(&after[i].LastTransitionTime) {
			after[i].LastTransitionTime = metav1.NewTime(w.Now())
		}
	}
}

// Has reports whether a condition is already false with the reason and message of the decision.
func Has(record Record, d rule.Decision) bool {
	c := meta.FindStatusCondition(*record.StatusConditions(), d.Condition)
	return c != nil && c.Status == metav1.ConditionFalse && c.Reason == d.Reason && c.Message == d.Message
}

// False returns a condition that is false for a generation of its object.
func False(generation int64, kind, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: metav1.ConditionFalse,
		Reason: reason, Message: observability.Clip(message, observability.MaxCondition), ObservedGeneration: generation}
}

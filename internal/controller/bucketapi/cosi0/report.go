package cosi0

import (
	"context"

	cosiv0 "github.com/albertofaria/pav/internal/api/cosi/proposal"
	"github.com/albertofaria/pav/internal/controller/bucketapi"
	"github.com/albertofaria/pav/internal/controller/rule"
	"github.com/albertofaria/pav/internal/observability"
	"github.com/albertofaria/pav/internal/reconcile"
)

// refuse tells the user of a Bucket why it is not served. What could change that is watched, except for objects that PaV may not read; it is
// said again, and tried again, because of these, and because events expire.
func (r *Reconciler) refuse(ctx context.Context, o observation, d rule.Decision) error {
	due, next := r.repeats.Due(o.name.String(), string(o.uid)+" "+d.Message, r.Now())
	if due {
		r.tell(o, bucketapi.EventType(d), d.Reason, d.Message)
	}
	if o.wanted() && o.object.Status.Phase == "" && !o.isForeign() {
		if err := r.setPhase(ctx, o.object, cosiv0.BucketPending); err != nil {
			return err
		}
	}
	return &reconcile.Later{After: next}
}

// tell records an event on the Bucket, if it still exists.
func (r *Reconciler) tell(o observation, eventType, reason, message string) {
	if o.object != nil {
		r.Events.Event(o.object, eventType, reason, observability.Clip(message, observability.MaxNote))
	}
}

// markPending says that a Bucket waits.
func (r *Reconciler) markPending(ctx context.Context, o observation, _ rule.Decision) error {
	return r.setPhase(ctx, o.object, cosiv0.BucketPending)
}

// setPhase writes the phase of a Bucket, unless the Bucket has changed since it was read.
func (r *Reconciler) setPhase(ctx context.Context, object *cosiv0.Bucket, phase cosiv0.BucketPhase) error {
	if object.Status.Phase == phase {
		return nil
	}
	changed := object.DeepCopy()
	changed.Status.Phase = phase
	return bucketapi.PatchStatus(ctx, r.Client, object, changed)
}

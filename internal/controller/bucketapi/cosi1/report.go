package cosi1

import (
	"context"

	"github.com/albertofaria/pav/internal/controller/bucketapi"
	"github.com/albertofaria/pav/internal/controller/rule"
	"github.com/albertofaria/pav/internal/observability"
	"github.com/albertofaria/pav/internal/reconcile"
)

// refuseClaim tells the user of a claim why it is not served. What could change that is watched, except for objects that PaV may not read; it
// is said again, and tried again, because of these, and because events expire.
func (r *Reconciler) refuseClaim(_ context.Context, o claimObservation, d rule.Decision) error {
	due, next := r.repeats.Due(kindClaim+" "+o.name.String(), string(o.uid)+" "+d.Message, r.Now())
	if due {
		r.tellClaim(o, bucketapi.EventType(d), d.Reason, d.Message)
	}
	return &reconcile.Later{After: next}
}

// refuseAccess is refuseClaim for an access.
func (r *Reconciler) refuseAccess(_ context.Context, o accessObservation, d rule.Decision) error {
	due, next := r.repeats.Due(kindAccess+" "+o.name.String(), string(o.uid)+" "+d.Message, r.Now())
	if due && o.access != nil {
		r.Events.Event(o.access, bucketapi.EventType(d), d.Reason, observability.Clip(d.Message, observability.MaxNote))
	}
	return &reconcile.Later{After: next}
}

// tellClaim records an event on the claim, if it still exists.
func (r *Reconciler) tellClaim(o claimObservation, eventType, reason, message string) {
	if o.claim != nil {
		r.Events.Event(o.claim, eventType, reason, observability.Clip(message, observability.MaxNote))
	}
}

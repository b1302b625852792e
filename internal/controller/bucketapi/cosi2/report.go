package cosi2

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	cosiv2 "github.com/albertofaria/pav/internal/api/cosi/v1alpha2"
	"github.com/albertofaria/pav/internal/controller/bucketapi"
	"github.com/albertofaria/pav/internal/controller/rule"
	"github.com/albertofaria/pav/internal/observability"
	"github.com/albertofaria/pav/internal/reconcile"
)

// refuseClaim tells the user of a claim why it is not served: by an event, and in the status of a claim that is wanted. What could change
// that is watched, except for objects that PaV may not read; it is said again, and tried again, because of these, and because events
// expire.
func (r *Reconciler) refuseClaim(ctx context.Context, o claimObservation, d rule.Decision) error {
	due, next := r.repeats.Due(kindClaim+" "+o.name.String(), string(o.uid)+" "+d.Message, r.Now())
	if due {
		r.tellClaim(o, bucketapi.EventType(d), d.Reason, d.Message)
	}
	if o.wanted() && !says(o.claim.Status.Error, d) {
		refused := o.claim.DeepCopy()
		refused.Status.Error = errorAt(metav1.NewTime(r.Now()), d.Message)
		if err := bucketapi.PatchStatus(ctx, r.Client, o.claim, refused); err != nil {
			return err
		}
	}
	return &reconcile.Later{After: next}
}

// refuseAccess is refuseClaim for an access.
func (r *Reconciler) refuseAccess(ctx context.Context, o accessObservation, d rule.Decision) error {
	due, next := r.repeats.Due(kindAccess+" "+o.name.String(), string(o.uid)+" "+d.Message, r.Now())
	if due && o.access != nil {
		r.Events.Event(o.access, bucketapi.EventType(d), d.Reason, observability.Clip(d.Message, observability.MaxNote))
	}
	if o.wanted() && !says(o.access.Status.Error, d) {
		refused := o.access.DeepCopy()
		refused.Status.Error = errorAt(metav1.NewTime(r.Now()), d.Message)
		if err := bucketapi.PatchStatus(ctx, r.Client, o.access, refused); err != nil {
			return err
		}
	}
	return &reconcile.Later{After: next}
}

// says reports whether an object shows the message of a decision.
func says(shown *cosiv2.TimestampedError, d rule.Decision) bool {
	return shown != nil && shown.Message == errorAt(metav1.Time{}, d.Message).Message
}

// tellClaim records an event on the claim, if it still exists.
func (r *Reconciler) tellClaim(o claimObservation, eventType, reason, message string) {
	if o.claim != nil {
		r.Events.Event(o.claim, eventType, reason, observability.Clip(message, observability.MaxNote))
	}
}

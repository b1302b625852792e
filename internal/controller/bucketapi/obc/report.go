package obc

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	objectbucketv1 "github.com/albertofaria/pav/internal/api/objectbucket/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/bucketapi"
	"github.com/albertofaria/pav/internal/controller/rule"
	"github.com/albertofaria/pav/internal/observability"
	"github.com/albertofaria/pav/internal/reconcile"
)

// refuse tells the user of a claim why it is not served. What could change that is watched, except for objects that PaV may not read; it is
// said again, and tried again, because of these, and because events expire.
func (r *Reconciler) refuse(ctx context.Context, o observation, d rule.Decision) error {
	eventType := corev1.EventTypeNormal
	if d.Warning {
		eventType = corev1.EventTypeWarning
	}
	due, next := r.repeats.Due(o.name.String(), string(o.uid)+" "+d.Message, r.Now())
	if due {
		r.tell(o, eventType, d.Reason, d.Message)
	}
	if o.wanted() && o.claim.Status.Phase == "" && !o.isForeign() {
		if err := r.setPhase(ctx, o.claim, objectbucketv1.ClaimPending); err != nil {
			return err
		}
	}
	return &reconcile.Later{After: next}
}

// tell records an event on the claim, if it still exists.
func (r *Reconciler) tell(o observation, eventType, reason, message string) {
	if o.claim != nil {
		r.Events.Event(o.claim, eventType, reason, observability.Clip(message, observability.MaxNote))
	}
}

// markPending says that a claim waits.
func (r *Reconciler) markPending(ctx context.Context, o observation, _ rule.Decision) error {
	return r.setPhase(ctx, o.claim, objectbucketv1.ClaimPending)
}

// setPhase writes the phase of a claim, unless the claim has changed since it was read.
func (r *Reconciler) setPhase(ctx context.Context, claim *objectbucketv1.ObjectBucketClaim, phase objectbucketv1.ClaimPhase) error {
	if claim.Status.Phase == phase {
		return nil
	}
	changed := claim.DeepCopy()
	changed.Status.Phase = phase
	if err := bucketapi.PatchStatus(ctx, r.Client, claim, changed); err != nil {
		return err
	}
	*claim = *changed
	return nil
}

// patchClaim changes a claim besides its status, unless it has changed since it was read. After that, claim is what was written.
func (r *Reconciler) patchClaim(ctx context.Context, claim *objectbucketv1.ObjectBucketClaim, change func(*objectbucketv1.ObjectBucketClaim)) error {
	changed := claim.DeepCopy()
	change(changed)
	if equality.Semantic.DeepEqual(claim, changed) {
		return nil
	}
	if err := bucketapi.Patch(ctx, r.Client, claim, changed); err != nil {
		return err
	}
	*claim = *changed
	return nil
}

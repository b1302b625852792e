package metrics

import (
	"cmp"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

func (c *Gauges) collectBuckets(to chan<- prometheus.Metric, at time.Time) {
	phases, fails := Series{}, Series{}
	for _, object := range c.Buckets.List() {
		bucket, ok := object.(*pavv1.PavBucket)
		if !ok {
			continue
		}
		name, phase := bucket.Spec.Provisioner, cmp.Or(bucket.Status.Phase, pavv1.BucketPending)
		phases[Labels{name, string(phase)}]++
		if step, since := bucketFailure(&bucket.Status, phase); step != "" {
			fails.AtLeast(Labels{name, step}, at.Sub(since).Seconds())
		}
	}
	phases.Send(bucketsDesc, to)
	fails.Send(bucketFailingDesc, to)
}

// bucketFailure is failure for a bucket.
func bucketFailure(status *pavv1.PavBucketStatus, phase pavv1.BucketPhase) (step string, since time.Time) {
	switch {
	case status.DeletionFailure != nil && phase == pavv1.BucketPending:
		return StepRevert, began(status.Conditions, pavv1.BucketDeleted, status.DeletionFailure.Time)
	case status.DeletionFailure != nil:
		return StepDelete, began(status.Conditions, pavv1.BucketDeleted, status.DeletionFailure.Time)
	case status.Failure != nil && phase == pavv1.BucketPending:
		return StepCreate, began(status.Conditions, pavv1.BucketCreated, status.Failure.Time)
	case status.Failure != nil && phase == pavv1.BucketReady:
		return StepUpdate, began(status.Conditions, pavv1.BucketUpdated, status.Failure.Time)
	}
	return "", time.Time{}
}

func (c *Gauges) collectAccesses(to chan<- prometheus.Metric, at time.Time) {
	phases, fails, ends := Series{}, Series{}, Series{}
	for _, object := range c.Accesses.List() {
		access, ok := object.(*pavv1.PavBucketAccess)
		if !ok {
			continue
		}
		name, status := access.Spec.Provisioner, &access.Status
		phases[Labels{name, string(cmp.Or(status.Phase, pavv1.AccessPending))}]++
		if status.Failure != nil {
			step, condition := StepGrant, pavv1.AccessGranted
			if status.Current != nil {
				step, condition = StepRotate, pavv1.AccessRotated
			}
			fails.AtLeast(Labels{name, step}, at.Sub(began(status.Conditions, condition, status.Failure.Time)).Seconds())
		}
		if status.RevocationFailure != nil {
			fails.AtLeast(Labels{name, StepRevoke}, at.Sub(began(status.Conditions, pavv1.AccessRevokedCondition, status.RevocationFailure.Time)).Seconds())
		}
		if status.Current != nil && status.Current.ExpiresAt != nil {
			ends.AtMost(Labels{name}, status.Current.ExpiresAt.Sub(at).Seconds())
		}
	}
	phases.Send(accessesDesc, to)
	fails.Send(accessFailingDesc, to)
	ends.Send(accessExpiryDesc, to)
}

package metrics

import (
	"cmp"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// Store is a cache of objects of one kind. The objects are shared, and only read.
type Store interface {
	List() []any
}

// Gauges is a prometheus.Collector for the records, pods and provisioners of the controller agent. It reads caches
// whenever it is collected, so a deleted object has no series.
type Gauges struct {
	// Volumes has PavVolumes, Snapshots PavSnapshots, Buckets PavBuckets, Accesses PavBucketAccesses, and Provisioners PavProvisioners.
	Volumes, Snapshots, Buckets, Accesses, Provisioners Store

	// Pods returns how many workflow pods each provisioner has in each state: PodsWaiting, PodsRunning, PodsBlocked.
	Pods func() map[string]map[string]int

	// Leads reports whether this replica is the leader. Other replicas export nothing.
	Leads func() bool

	// Now returns the time of the cluster; time.Now if it is nil.
	Now func() time.Time
}

var (
	volumesDesc = Volumes.Desc()
	failingDesc = VolumeFailing.Desc()
	pendingDesc = VolumePending.Desc()
	podsDesc    = WorkflowPods.Desc()

	snapshotsDesc, snapshotFailingDesc, snapshotPendingDesc = Snapshots.Desc(), SnapshotFailing.Desc(), SnapshotPending.Desc()

	bucketsDesc, bucketFailingDesc                    = Buckets.Desc(), BucketFailing.Desc()
	accessesDesc, accessFailingDesc, accessExpiryDesc = Accesses.Desc(), AccessFailing.Desc(), AccessExpiry.Desc()

	conditionDesc = ProvisionerCondition.Desc()
)

// Describe implements prometheus.Collector.
func (c *Gauges) Describe(descs chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{
		volumesDesc, failingDesc, pendingDesc, snapshotsDesc, snapshotFailingDesc, snapshotPendingDesc,
		bucketsDesc, bucketFailingDesc, accessesDesc, accessFailingDesc, accessExpiryDesc, podsDesc, conditionDesc,
	} {
		descs <- desc
	}
}

// Collect implements prometheus.Collector.
func (c *Gauges) Collect(to chan<- prometheus.Metric) {
	if !c.Leads() {
		return
	}
	now := time.Now
	if c.Now != nil {
		now = c.Now
	}
	c.collectVolumes(to, now())
	c.collectSnapshots(to, now())
	c.collectBuckets(to, now())
	c.collectAccesses(to, now())
	c.collectProvisioners(to)
	for name, counts := range c.Pods() {
		for state, count := range counts {
			to <- prometheus.MustNewConstMetric(podsDesc, prometheus.GaugeValue, float64(count), name, state)
		}
	}
}

func (c *Gauges) collectVolumes(to chan<- prometheus.Metric, at time.Time) {
	phases, fails, pends := Series{}, Series{}, Series{}
	for _, object := range c.Volumes.List() {
		volume, ok := object.(*pavv1.PavVolume)
		if !ok {
			continue
		}
		name, phase := volume.Spec.Provisioner, string(cmp.Or(volume.Status.Phase, pavv1.VolumePending))
		phases[Labels{name, phase}]++
		if step, since := failure(&volume.Status); step != "" {
			fails.AtLeast(Labels{name, step}, at.Sub(since).Seconds())
		}
		if since := inTransit(volume); !since.IsZero() {
			pends.AtLeast(Labels{name, phase}, at.Sub(since).Seconds())
		}
	}
	phases.Send(volumesDesc, to)
	fails.Send(failingDesc, to)
	pends.Send(pendingDesc, to)
}

// failure returns the step whose last attempt failed, or "", and since when the work that it is part of is under way:
// the status has only the time of the last failure.
func failure(status *pavv1.PavVolumeStatus) (step string, since time.Time) {
	making := status.Phase == "" || status.Phase == pavv1.VolumePending
	switch {
	case status.DeletionFailure != nil && making:
		return StepRevert, began(status.Conditions, pavv1.VolumeDeleted, status.DeletionFailure.Time)
	case status.DeletionFailure != nil:
		return StepDelete, began(status.Conditions, pavv1.VolumeDeleted, status.DeletionFailure.Time)
	case status.Failure != nil && making:
		return status.Failure.Workflow, began(status.Conditions, pavv1.VolumeProvisioned, status.Failure.Time)
	case status.ChangeFailure(pavv1.WorkflowExpansion) != nil:
		return StepExpand, began(status.Conditions, pavv1.VolumeExpanded, status.Expansion.Failure.Time)
	case status.ChangeFailure(pavv1.WorkflowModification) != nil:
		return StepModify, began(status.Conditions, pavv1.VolumeModified, status.Modification.Failure.Time)
	}
	return "", time.Time{}
}

// began returns since when a condition is false, or the other time if it is not.
func began(conditions []metav1.Condition, kind string, otherwise metav1.Time) time.Time {
	c := meta.FindStatusCondition(conditions, kind)
	if c == nil || c.Status != metav1.ConditionFalse {
		return otherwise.Time
	}
	return c.LastTransitionTime.Time
}

// inTransit returns since when a volume is being provisioned, expanded, modified or deleted, or the zero time.
func inTransit(volume *pavv1.PavVolume) time.Time {
	switch volume.Status.Phase {
	case pavv1.VolumeDeleting:
		var asked metav1.Time
		if volume.DeletionTimestamp != nil {
			asked = *volume.DeletionTimestamp
		}
		return began(volume.Status.Conditions, pavv1.VolumeDeleted, asked)
	case pavv1.VolumePending:
		return began(volume.Status.Conditions, pavv1.VolumeProvisioned, metav1.Time{})
	default:
		if grows := began(volume.Status.Conditions, pavv1.VolumeExpanded, metav1.Time{}); !grows.IsZero() {
			return grows
		}
		return began(volume.Status.Conditions, pavv1.VolumeModified, metav1.Time{})
	}
}

func (c *Gauges) collectProvisioners(to chan<- prometheus.Metric) {
	for _, object := range c.Provisioners.List() {
		p, ok := object.(*pavv1.PavProvisioner)
		if !ok {
			continue
		}
		for i := range p.Status.Conditions {
			is, value := &p.Status.Conditions[i], 0.0
			if is.Status == metav1.ConditionTrue {
				value = 1
			}
			to <- prometheus.MustNewConstMetric(conditionDesc, prometheus.GaugeValue, value, p.Name, is.Type)
		}
	}
}

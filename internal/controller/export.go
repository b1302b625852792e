package controller

import (
	"context"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/controller/queue"
	"github.com/albertofaria/pav/internal/observability"
	"github.com/albertofaria/pav/internal/observability/metrics"
)

// export exports the agent's metrics until the context ends, and returns the counters of workflows. Pods returns the
// counts of workflow pods, once the agent is the leader.
func export(ctx context.Context, mgr ctrl.Manager, now func() time.Time, pods func() map[string]queue.Counts) (*metrics.Workflows, error) {
	volumes, err := observability.StoreOf(ctx, mgr.GetCache(), &pavv1.PavVolume{})
	if err != nil {
		return nil, err
	}
	snapshots, err := observability.StoreOf(ctx, mgr.GetCache(), &pavv1.PavSnapshot{})
	if err != nil {
		return nil, err
	}
	buckets, err := observability.StoreOf(ctx, mgr.GetCache(), &pavv1.PavBucket{})
	if err != nil {
		return nil, err
	}
	accesses, err := observability.StoreOf(ctx, mgr.GetCache(), &pavv1.PavBucketAccess{})
	if err != nil {
		return nil, err
	}
	provisioners, err := observability.StoreOf(ctx, mgr.GetCache(), &pavv1.PavProvisioner{})
	if err != nil {
		return nil, err
	}
	workflows := metrics.NewWorkflows(metrics.In(provisioners), now)
	leads := func() bool {
		select {
		case <-mgr.Elected():
			return true
		default:
			return false
		}
	}
	return workflows, metrics.Register(ctx, ctrlmetrics.Registry, workflows, &metrics.Gauges{
		Volumes: volumes, Snapshots: snapshots, Buckets: buckets, Accesses: accesses, Provisioners: provisioners,
		Pods: func() map[string]map[string]int { return byState(pods()) }, Leads: leads, Now: now,
	})
}

// byState returns counts of pods by the states of the metric.
func byState(counts map[string]queue.Counts) map[string]map[string]int {
	states := make(map[string]map[string]int, len(counts))
	for provisioner, c := range counts {
		states[provisioner] = map[string]int{metrics.PodsWaiting: c.Waiting, metrics.PodsRunning: c.Running, metrics.PodsBlocked: c.Suspended}
	}
	return states
}

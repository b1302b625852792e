package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/node/csi"
	"github.com/albertofaria/pav/internal/observability"
	"github.com/albertofaria/pav/internal/observability/metrics"
)

// export exports the agent's metrics until the context ends.
func export(ctx context.Context, mgr manager.Manager, clusterTime func() time.Time) (*metrics.Workflows, *metrics.Calls, error) {
	provisioners, err := observability.StoreOf(ctx, mgr.GetCache(), &pavv1.PavProvisioner{})
	if err != nil {
		return nil, nil, err
	}
	workflows, calls := metrics.NewWorkflows(metrics.In(provisioners), clusterTime), metrics.NewCalls(metrics.In(provisioners))
	return workflows, calls, metrics.Register(ctx, ctrlmetrics.Registry, workflows, calls)
}

// addProbes adds the health probes. The agent is alive while kubelet can find the sockets of its drivers, which a
// restarted agent would create again; it is ready when it serves all drivers.
func addProbes(ctx context.Context, mgr manager.Manager, registry *csi.Registry) error {
	filled := &observability.Filled{}
	readiness := &csi.Readiness{Filled: filled.Check, Reader: mgr.GetClient(), Registry: registry}
	if err := errors.Join(
		mgr.Add(filled),
		mgr.AddHealthzCheck("ping", healthz.Ping),
		mgr.AddHealthzCheck("sockets", registry.Alive),
		mgr.AddReadyzCheck("drivers", readiness.Check),
	); err != nil {
		return fmt.Errorf("adding probes: %w", err)
	}
	return metrics.Register(ctx, ctrlmetrics.Registry, registry)
}

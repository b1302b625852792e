package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	runtimeclient "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/healthz"

	"github.com/albertofaria/pav/internal/admission"
	cosiv0 "github.com/albertofaria/pav/internal/api/cosi/proposal"
	cosiv1 "github.com/albertofaria/pav/internal/api/cosi/v1alpha1"
	cosiv2 "github.com/albertofaria/pav/internal/api/cosi/v1alpha2"
	objectbucketv1 "github.com/albertofaria/pav/internal/api/objectbucket/v1alpha1"
	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/clock"
	"github.com/albertofaria/pav/internal/definition"
	"github.com/albertofaria/pav/internal/observability"
	"github.com/albertofaria/pav/internal/reconcile"
	"github.com/albertofaria/pav/internal/template"
)

// leaseName is the name of the leader's Lease, and of the agent in events.
const leaseName = "pav-controller"

// Run runs the controller agent until the context ends.
func Run(ctx context.Context, cfg *rest.Config, o Options, log logr.Logger) error {
	if err := o.Validate(); err != nil {
		return err
	}
	cfg = rest.CopyConfig(cfg)
	cfg.QPS, cfg.Burst = o.QPS, o.Burst
	cluster := clock.New(time.Now)
	cfg.Wrap(cluster.Transport)
	mgr, err := newManager(cfg, o, log)
	if err != nil {
		return err
	}
	if err := reconcile.RegisterIndexes(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	if err := register(ctx, mgr, cluster.Now, o); err != nil {
		return err
	}
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("running the controller agent: %w", err)
	}
	return nil
}

func newManager(cfg *rest.Config, o Options, log logr.Logger) (ctrl.Manager, error) {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("registering Kubernetes' kinds: %w", err)
	}
	if err := pavv1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("registering PaV's kinds: %w", err)
	}
	if err := errors.Join(apiextensionsv1.AddToScheme(scheme), snapshotv1.AddToScheme(scheme), objectbucketv1.AddToScheme(scheme), cosiv0.AddToScheme(scheme), cosiv1.AddToScheme(scheme), cosiv2.AddToScheme(scheme)); err != nil {
		return nil, fmt.Errorf("registering the kinds of add-ons: %w", err)
	}
	caching, err := CacheOptions(o)
	if err != nil {
		return nil, err
	}
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme:                  scheme,
		Logger:                  log,
		Cache:                   caching,
		Metrics:                 observability.MetricsServer(o.MetricsAddress),
		HealthProbeBindAddress:  o.ProbeAddress,
		LeaderElection:          o.LeaderElect,
		LeaderElectionID:        leaseName,
		LeaderElectionNamespace: o.Namespace,
		LeaseDuration:           new(o.LeaseDuration),
		RenewDeadline:           new(o.LeaseDuration * 2 / 3),
		RetryPeriod:             new(o.LeaseDuration * 2 / 15),
		// The caller of Run ends the process after it, so that there cannot be two leaders.
		LeaderElectionReleaseOnCancel: true,
		// Names are unique by construction, and one process may run the agent again after it has ended.
		// controller-runtime's priority queue can prevent its workers from ending: it offers an item, with its locks
		// held, to workers that have ended (handleReadyItems in v0.24).
		Controller: config.Controller{SkipNameValidation: new(true), UsePriorityQueue: new(false)},
	})
	if err != nil {
		return nil, fmt.Errorf("making the manager: %w", err)
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return nil, fmt.Errorf("adding the health check: %w", err)
	}
	filled := &observability.Filled{}
	if err := errors.Join(mgr.Add(filled), mgr.AddReadyzCheck("caches", filled.Check)); err != nil {
		return nil, fmt.Errorf("adding the readiness check: %w", err)
	}
	if err := mgr.Add(observability.ReturnMemory()); err != nil {
		return nil, fmt.Errorf("adding what returns memory: %w", err)
	}
	if o.ProfilingAddress != "" {
		if err := mgr.Add(observability.Profiling(o.ProfilingAddress)); err != nil {
			return nil, fmt.Errorf("adding the server of profiles: %w", err)
		}
	}
	return mgr, nil
}

// register adds the reconcilers, and the webhook if the agent serves it.
func register(ctx context.Context, mgr ctrl.Manager, now func() time.Time, o Options) error {
	events, err := observability.NewRecorder(ctx, mgr.GetConfig(), mgr.GetHTTPClient(), mgr.GetScheme(), leaseName)
	if err != nil {
		return err
	}
	direct, err := runtimeclient.New(mgr.GetConfig(), runtimeclient.Options{Scheme: mgr.GetScheme(), HTTPClient: mgr.GetHTTPClient()})
	if err != nil {
		return fmt.Errorf("making the client that runs pods: %w", err)
	}
	reconcilers := NewReconcilers(Parts{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Direct: direct, Events: events,
		Templates: template.NewEvaluator(o.Templates), Definitions: definition.NewChecker(o.Templates), PodDefaults: o.PodDefaults, Pods: o.Pods, StartupTaint: o.StartupTaint, CrossNamespaceSources: o.CrossNamespaceSources,
		Version: o.Version, Now: now,
	})
	if reconcilers.volumes.Metrics, err = export(ctx, mgr, now, reconcilers.PodCounts); err != nil {
		return err
	}
	reconcilers.snapshots.Metrics = reconcilers.volumes.Metrics
	if o.serves() {
		hook := &admission.Webhook{
			Definitions: reconcilers.parts.Definitions, Templates: reconcilers.parts.Templates, PodDefaults: o.PodDefaults,
			Namespace: o.Namespace, Address: o.WebhookAddress, ClientCA: o.WebhookClientCA, Lifetimes: o.Certificates, Now: now,
		}
		if err := hook.Register(ctx, mgr); err != nil {
			return fmt.Errorf("registering the webhook: %w", err)
		}
	}
	return reconcilers.Register(mgr, func() controller.Options {
		return controller.Options{MaxConcurrentReconciles: o.Workers, RateLimiter: reconcile.Backoff()}
	})
}

package controller

import (
	"fmt"
	"time"

	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	runtimeclient "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/albertofaria/pav/internal/controller/access"
	"github.com/albertofaria/pav/internal/controller/addon"
	"github.com/albertofaria/pav/internal/controller/attempt"
	"github.com/albertofaria/pav/internal/controller/bucket"
	"github.com/albertofaria/pav/internal/controller/bucketapi/cosi0"
	"github.com/albertofaria/pav/internal/controller/bucketapi/cosi1"
	"github.com/albertofaria/pav/internal/controller/bucketapi/cosi2"
	"github.com/albertofaria/pav/internal/controller/bucketapi/obc"
	"github.com/albertofaria/pav/internal/controller/claim"
	"github.com/albertofaria/pav/internal/controller/cleanup"
	"github.com/albertofaria/pav/internal/controller/eviction"
	"github.com/albertofaria/pav/internal/controller/label"
	"github.com/albertofaria/pav/internal/controller/provisioner"
	"github.com/albertofaria/pav/internal/controller/queue"
	"github.com/albertofaria/pav/internal/controller/snapshot"
	"github.com/albertofaria/pav/internal/controller/startup"
	"github.com/albertofaria/pav/internal/controller/turn"
	"github.com/albertofaria/pav/internal/controller/volume"
	"github.com/albertofaria/pav/internal/definition"
	"github.com/albertofaria/pav/internal/reconcile"
	"github.com/albertofaria/pav/internal/template"
	"github.com/albertofaria/pav/internal/workflow"
)

// Parts are the dependencies of the reconcilers.
type Parts struct {
	// Client reads from the cache and writes. Live reads from the API server. Direct reads from the API server and
	// writes: it runs pods.
	Client runtimeclient.Client
	Live   runtimeclient.Reader
	Direct runtimeclient.Client

	// Events records events.
	Events record.EventRecorder

	// Templates evaluates the fields of definitions, and Definitions checks definitions.
	Templates   *template.Evaluator
	Definitions *definition.Checker

	// PodDefaults are those of all workflow pods.
	PodDefaults workflow.Defaults

	// Pods limits how many validation, creation, expansion, modification and deletion pods run at once.
	Pods queue.Limits

	// CrossNamespaceSources says whether claims may name sources of other namespaces.
	CrossNamespaceSources bool

	// StartupTaint says whether the startup taint of nodes is removed.
	StartupTaint bool

	// Version is the version of the agent.
	Version string

	// Now returns the time of the cluster; time.Now if it is nil.
	Now func() time.Time
}

// Reconcilers are all reconcilers of the agent.
type Reconcilers struct {
	parts     Parts
	pool      *attempt.Pool
	volumes   *volume.Reconciler
	snapshots *snapshot.Reconciler
	buckets   *bucket.Reconciler
	accesses  *access.Reconciler
}

// NewReconcilers returns the reconcilers of an agent. A pass makes about a dozen reads from the API server. If a
// fifth of the reads fail, a pass would hardly ever succeed, so each read is repeated by itself.
func NewReconcilers(p Parts) *Reconcilers {
	p.Live, p.Direct = reconcile.RetryingReader{Reader: p.Live}, reconcile.RetryingClient{Client: p.Direct}
	if p.Now == nil {
		p.Now = time.Now
	}
	pool, runner := attempt.NewPool(p.Pods), &workflow.Runner{Client: p.Direct}
	r := &Reconcilers{
		parts: p, pool: pool,
		volumes: &volume.Reconciler{
			Client: p.Client, Live: p.Live, Runner: runner, Events: p.Events,
			Templates: p.Templates, PodDefaults: p.PodDefaults, Pool: pool, Version: p.Version, Now: p.Now,
		},
		snapshots: &snapshot.Reconciler{
			Client: p.Client, Live: p.Live, Runner: runner, Events: p.Events,
			Templates: p.Templates, PodDefaults: p.PodDefaults, Pool: pool, Version: p.Version, Now: p.Now,
		},
	}
	turns := turn.New(r.wake)
	r.buckets = &bucket.Reconciler{
		Client: p.Client, Live: p.Live, Runner: runner, Events: p.Events,
		Templates: p.Templates, PodDefaults: p.PodDefaults, Pool: pool, Turns: turns, Version: p.Version, Now: p.Now,
	}
	r.accesses = &access.Reconciler{
		Client: p.Client, Live: p.Live, Secrets: p.Direct, Runner: runner, Events: p.Events,
		Templates: p.Templates, PodDefaults: p.PodDefaults, Pool: pool, Turns: turns, Version: p.Version, Now: p.Now,
	}
	r.buckets.AdoptOthers, r.accesses.AdoptOthers = r.accesses.Adopt, r.buckets.Adopt
	return r
}

// wake brings the next pass of the owner of a turn.
func (r *Reconcilers) wake(owner string) {
	if name, ok := bucket.OwnerOfTurn(owner); ok {
		r.buckets.Wake(name)
	}
	if name, ok := access.OwnerOfTurn(owner); ok {
		r.accesses.Wake(name)
	}
}

// PodCounts returns the counts of validation, creation, expansion, modification and deletion pods, by provisioner.
func (r *Reconcilers) PodCounts() map[string]queue.Counts { return r.pool.All() }

// Register adds the reconcilers to the manager, in the order of a volume's life. Each has its own options.
func (r *Reconcilers) Register(mgr ctrl.Manager, options func() controller.Options) error {
	p := r.parts
	claims := &claim.Reconciler{Client: p.Client, Live: p.Live, Events: p.Events, CrossNamespaceSources: p.CrossNamespaceSources, Now: p.Now}
	reconcilers := []interface {
		Register(mgr ctrl.Manager, options controller.Options) error
	}{
		&provisioner.Reconciler{Client: p.Client, Live: p.Live, Definitions: p.Definitions, Now: p.Now},
		claims,
		r.volumes,
		r.buckets,
		r.accesses,
		&snapshot.Installer{Client: p.Client, Snapshots: r.snapshots, Claims: claims},
		&addon.Installer{Name: "object-bucket-claims", Direct: p.Direct, Addon: &obc.Reconciler{
			Client: p.Client, Live: p.Live, Direct: p.Direct, Events: p.Events, Templates: p.Templates, Now: p.Now,
		}},
		// A cluster has one of the two versions of COSI.
		&addon.Installer{Name: "cosi", Direct: p.Direct, Addon: &cosi1.Reconciler{
			Client: p.Client, Live: p.Live, Events: p.Events, Templates: p.Templates, Now: p.Now,
		}},
		&addon.Installer{Name: "cosi-v1alpha2", Direct: p.Direct, Addon: &cosi2.Reconciler{
			Client: p.Client, Live: p.Live, Events: p.Events, Templates: p.Templates, Now: p.Now,
		}},
		// The chart gives the rights for it only if it is asked for.
		&addon.Installer{Name: "cosi-proposal", Direct: p.Direct, Addon: &cosi0.Reconciler{
			Client: p.Client, Live: p.Live, Events: p.Events, Templates: p.Templates, Now: p.Now,
		}},
		&label.Reconciler{Client: p.Client},
		&cleanup.StageReconciler{Client: p.Client, Live: p.Live, Now: p.Now},
		&cleanup.MissingDriverReconciler{Client: p.Client, Live: p.Live, Events: p.Events},
		&eviction.BudgetReconciler{Client: p.Client, Live: p.Live},
		&eviction.DrainReconciler{Client: p.Client, Live: p.Live, Now: p.Now},
	}
	if p.StartupTaint {
		reconcilers = append(reconcilers, &startup.Reconciler{Client: p.Client, Live: p.Live, Now: p.Now})
	}
	for _, reconciler := range reconcilers {
		if err := reconciler.Register(mgr, options()); err != nil {
			return fmt.Errorf("registering %T: %w", reconciler, err)
		}
	}
	return nil
}

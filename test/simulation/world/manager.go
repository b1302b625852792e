package world

import (
	"context"
	"slices"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// Manager runs the controllers of an agent on a view and a client of the world. It replaces the manager of
// controller-runtime. Manager implements only the methods that the agents use.
type Manager struct {
	manager.Manager

	// Client reads from View and writes to the API server. Live reads from and writes to the API server.
	Client client.Client
	Live   *Client
	View   *View

	// Log is the logger of the agent.
	Log logr.Logger

	mu        sync.Mutex
	runnables []manager.Runnable
	life      context.Context //nolint:containedctx // the context of the agent; nil before Start
}

var _ ctrl.Manager = (*Manager)(nil)

// NewManager returns the manager of an agent.
func NewManager(view *View, live *Client, log logr.Logger) *Manager {
	return &Manager{View: view, Live: live, Log: log, Client: cached{Client: live, view: view}}
}

// cached is a client that reads from a view and writes to the API server.
type cached struct {
	*Client

	view *View
}

func (c cached) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	return c.view.Get(ctx, key, into, options...)
}

func (c cached) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	return c.view.List(ctx, list, options...)
}

// Add implements manager.Manager. If the agent has started, the runnable starts at once.
func (m *Manager) Add(r manager.Runnable) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.life != nil {
		run(m.life, r)
		return nil
	}
	m.runnables = append(m.runnables, r)
	return nil
}

// Start implements manager.Manager.
func (m *Manager) Start(ctx context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.life = ctx
	for _, r := range slices.Clone(m.runnables) {
		run(ctx, r)
	}
	return nil
}

func run(ctx context.Context, r manager.Runnable) {
	go func() {
		if err := r.Start(ctx); err != nil {
			panic(err) // controllers with a View as cache end without errors
		}
	}()
}

// GetClient implements cluster.Cluster.
func (m *Manager) GetClient() client.Client { return m.Client }

// GetAPIReader implements cluster.Cluster.
func (m *Manager) GetAPIReader() client.Reader { return m.Live }

// GetCache implements cluster.Cluster.
func (m *Manager) GetCache() cache.Cache { return m.View }

// GetFieldIndexer implements cluster.Cluster.
func (m *Manager) GetFieldIndexer() client.FieldIndexer { return m.View }

// GetScheme implements cluster.Cluster.
func (m *Manager) GetScheme() *runtime.Scheme { return m.Live.Scheme() }

// GetRESTMapper implements cluster.Cluster.
func (m *Manager) GetRESTMapper() meta.RESTMapper { return m.Live.World.Store.mapper() }

// GetLogger implements manager.Manager.
func (m *Manager) GetLogger() logr.Logger { return m.Log }

// GetControllerOptions implements manager.Manager.
func (m *Manager) GetControllerOptions() config.Controller {
	yes, no := true, false
	return config.Controller{SkipNameValidation: &yes, UsePriorityQueue: &no}
}

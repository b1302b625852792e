package node

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/clock"
	"github.com/albertofaria/pav/internal/mount"
	"github.com/albertofaria/pav/internal/node/collect"
	"github.com/albertofaria/pav/internal/node/csi"
	"github.com/albertofaria/pav/internal/node/flush"
	"github.com/albertofaria/pav/internal/node/monitor"
	"github.com/albertofaria/pav/internal/node/pavdir"
	"github.com/albertofaria/pav/internal/node/stage"
	"github.com/albertofaria/pav/internal/observability"
	"github.com/albertofaria/pav/internal/reconcile"
	"github.com/albertofaria/pav/internal/template"
	"github.com/albertofaria/pav/internal/workflow"
)

// Run runs the node agent until ctx ends. Mounts and workflow pods outlive it: the next agent continues its work.
func Run(ctx context.Context, config *rest.Config, o Options, log logr.Logger) (err error) {
	if err := o.Validate(); err != nil {
		return err
	}
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = o.QPS, o.Burst
	cluster := clock.New(time.Now)
	config.Wrap(cluster.Transport)
	if err := mount.Supported(); err != nil {
		return fmt.Errorf("this node cannot serve PaV volumes: %w", err)
	}
	host, boot, err := openHost(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, host.Close()) }()

	log = log.WithValues(observability.Node, o.NodeName)
	mgr, err := newManager(config, o, log)
	if err != nil {
		return err
	}
	notifier := stage.NewNotifier()
	dirs, err := pavdir.New(host, o.KubeletDir, notifier.Wake)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dirs.Close()) }()
	stager, live, err := newStager(ctx, mgr, config, cluster.Now, o, host, dirs, notifier, boot)
	if err != nil {
		return err
	}
	registry, err := csi.NewRegistry(o.KubeletDir, csi.KubeletRecord{Node: o.NodeName, Reader: live}, log.WithName("register"))
	if err != nil {
		return err
	}
	defer registry.Close()
	watcher := monitor.New(stager, monitor.Config{
		Prober: stage.Host{Namespace: host}, OrphanGrace: o.OrphanGrace, Log: log.WithName("monitor"),
	})
	if err := setUp(ctx, mgr, o, dirs, notifier, stager, watcher, registry, live); err != nil {
		return err
	}
	collector := collect.New(live, dirs, boot, log.WithName("collect"))
	if err := errors.Join(reportResults(mgr, config, o.NodeName, collector), stageAhead(ctx, mgr, config, o.NodeName, watcher)); err != nil {
		return err
	}
	pav := csi.ForPav(o.NodeName, boot, o.Version, live, dirs, collector, notifier)
	if err := addPavDriver(mgr, registry, pav, collector.Sweep); err != nil {
		return err
	}
	// The manager fills its caches first, which takes until the API server answers.
	if err := serveRecorded(ctx, registry, stager, services(o, stager, live)); err != nil {
		return err
	}
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("running the node agent: %w", err)
	}
	if registry.Empty() {
		// PaV is being uninstalled. Its directory is removed, unless something is left in it.
		return dirs.RemoveRoot(context.WithoutCancel(ctx))
	}
	return nil
}

// setUp adds the watches of the API server, and the monitor, to the manager.
func setUp(ctx context.Context, mgr manager.Manager, o Options, dirs *pavdir.Directories, notifier *stage.Notifier, stager *stage.Stager, watcher *monitor.Monitor, registry *csi.Registry, live client.Reader) error {
	if err := addProbes(ctx, mgr, registry); err != nil {
		return err
	}
	if err := mgr.Add(observability.ReturnMemory()); err != nil {
		return fmt.Errorf("adding what returns memory: %w", err)
	}
	if err := mgr.Add(watcher); err != nil {
		return fmt.Errorf("setting up the monitor: %w", err)
	}
	if err := monitor.WatchPods(ctx, mgr, notifier, watcher); err != nil {
		return err
	}
	if err := monitor.WatchStages(ctx, mgr, notifier, watcher); err != nil {
		return err
	}
	if err := flush.Watch(mgr, flush.New(stager, dirs)); err != nil {
		return fmt.Errorf("watching requests to write volumes back: %w", err)
	}
	return csi.WatchProvisioners(mgr, registry, stager, services(o, stager, live))
}

// services returns the services of a provisioner's driver.
func services(o Options, stager *stage.Stager, live client.Reader) func(name string, topologyKeys []string) csi.Services {
	return func(name string, topologyKeys []string) csi.Services {
		return csi.ForProvisioner(name, o.NodeName, o.Version, stager, csi.Topology{Keys: topologyKeys, Nodes: live})
	}
}

// serveRecorded serves the drivers of the recorded volumes, for a kubelet that knows their sockets: staged volumes
// can be published and unpublished without an API server.
func serveRecorded(ctx context.Context, registry *csi.Registry, stager *stage.Stager, services func(name string, topologyKeys []string) csi.Services) error {
	names, err := stager.RecordedDrivers(ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := registry.Serve(name, services(name, nil)); err != nil {
			return err
		}
	}
	return nil
}

// addPavDriver adds the driver of /pav to the manager, and the removal of leftover directories.
func addPavDriver(mgr manager.Manager, registry *csi.Registry, pav csi.Services, sweep manager.RunnableFunc) error {
	if err := mgr.Add(sweep); err != nil {
		return err
	}
	return csi.WatchPavDriver(mgr, registry, pav)
}

// reportResults adds the watch of the controller agent's pods on the node, whose results the collector reports.
func reportResults(mgr manager.Manager, config *rest.Config, nodeName string, collector *collect.Collector) error {
	caching, err := collect.CacheOptions(nodeName)
	if err != nil {
		return err
	}
	pods, err := newCache(mgr, config, caching)
	if err != nil {
		return fmt.Errorf("setting up the cache of the controller agent's pods: %w", err)
	}
	if err := mgr.Add(pods); err != nil {
		return fmt.Errorf("watching the controller agent's pods: %w", err)
	}
	return collect.WatchPods(mgr, pods, collector)
}

// stageAhead adds the watches of the volumes that were provisioned for pods of the node, and of the pods that come to it. The
// manager does not wait for them.
func stageAhead(ctx context.Context, mgr manager.Manager, config *rest.Config, nodeName string, watcher *monitor.Monitor) error {
	caching, err := monitor.CacheOptions(nodeName)
	if err != nil {
		return err
	}
	for _, watch := range []struct {
		caching cache.Options
		start   func(context.Context, cache.Cache, *monitor.Monitor) error
	}{{caching, monitor.WatchVolumes}, {monitor.ArrivalOptions(nodeName), monitor.WatchArrivals}} {
		objects, err := newCache(mgr, config, watch.caching)
		if err != nil {
			return fmt.Errorf("setting up a cache for staging ahead: %w", err)
		}
		if err := watch.start(ctx, objects, watcher); err != nil {
			return err
		}
		if err := mgr.Add(manager.RunnableFunc(objects.Start)); err != nil {
			return fmt.Errorf("watching for volumes to stage ahead: %w", err)
		}
	}
	return nil
}

// newCache returns a cache beside that of the manager.
func newCache(mgr manager.Manager, config *rest.Config, caching cache.Options) (cache.Cache, error) {
	caching.Scheme, caching.Mapper, caching.HTTPClient = mgr.GetScheme(), mgr.GetRESTMapper(), mgr.GetHTTPClient()
	return cache.New(config, caching)
}

func newManager(config *rest.Config, o Options, log logr.Logger) (manager.Manager, error) {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(pavv1.AddToScheme(scheme))
	caching, err := CacheOptions(o.NodeName)
	if err != nil {
		return nil, err
	}
	mgr, err := ctrl.NewManager(config, manager.Options{
		Logger:                 log.V(1),
		Scheme:                 scheme,
		Metrics:                observability.MetricsServer(o.MetricsAddress),
		HealthProbeBindAddress: o.ProbeAddress,
		// controller-runtime's priority queue can prevent its workers from ending: it offers an item, with its locks
		// held, to workers that have ended (handleReadyItems in v0.24).
		Controller: ctrlconfig.Controller{UsePriorityQueue: new(false), CacheSyncTimeout: longestOutage},
		// An agent that starts while the API server is down cannot ask it for its kinds.
		MapperProvider: newMapper,
		Cache:          caching,
	})
	if err != nil {
		return nil, fmt.Errorf("setting up the node agent: %w", err)
	}
	if o.ProfilingAddress != "" {
		err = mgr.Add(observability.Profiling(o.ProfilingAddress))
	}
	return mgr, err
}

// CacheOptions limits the cache to objects of the node.
func CacheOptions(nodeName string) (cache.Options, error) {
	ours, err := labels.Parse(pavv1.NodeLabel + "=" + workflow.Hash(nodeName))
	if err != nil {
		return cache.Options{}, fmt.Errorf("selecting the node's pods: %w", err)
	}
	return cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Pod{}:          {Label: ours},
			&pavv1.PavStage{}:      {Label: ours},
			&storagev1.CSIDriver{}: {Field: fields.OneTermEqualSelector("metadata.name", pavv1.Driver)},
		},
	}, nil
}

// longestOutage is how long the API server may be down before an agent that has just started gives up. That should
// never happen: the next agent would have to start again.
const longestOutage = 365 * 24 * time.Hour

// newMapper returns a REST mapper of the kinds that the agent reads and writes.
func newMapper(*rest.Config, *http.Client) (meta.RESTMapper, error) {
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, kind := range []string{"Pod", "PersistentVolumeClaim"} {
		mapper.Add(corev1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	for _, kind := range []string{"PersistentVolume", "Node", "Namespace"} {
		mapper.Add(corev1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeRoot)
	}
	for _, kind := range []string{"PavProvisioner", "PavVolume", "PavStage", "PavSnapshot", "PavBucket", "PavBucketAccess"} {
		mapper.Add(pavv1.GroupVersion.WithKind(kind), meta.RESTScopeRoot)
	}
	for _, kind := range []string{"CSIDriver", "CSINode"} {
		mapper.Add(storagev1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeRoot)
	}
	return mapper, nil
}

// newStager returns the Stager, and a client that reads from the API server, for decisions about effects.
func newStager(ctx context.Context, mgr manager.Manager, config *rest.Config, clusterTime func() time.Time, o Options, host *mount.Namespace, dirs *pavdir.Directories, notifier *stage.Notifier, boot pavdir.Boot) (*stage.Stager, client.Client, error) {
	direct, err := client.NewWithWatch(config, client.Options{Scheme: mgr.GetScheme(), HTTPClient: mgr.GetHTTPClient()})
	if err != nil {
		return nil, nil, fmt.Errorf("setting up the API client: %w", err)
	}
	reader := reconcile.RetryingWatcher{WithWatch: direct}
	events, err := observability.NewRecorder(ctx, config, mgr.GetHTTPClient(), mgr.GetScheme(), "pav-node")
	if err != nil {
		return nil, nil, err
	}
	workflows, calls, err := export(ctx, mgr, clusterTime)
	if err != nil {
		return nil, nil, err
	}
	stager := stage.New(stage.Config{
		Client:    reader,
		Catalogue: stage.NewIndex(mgr.GetClient(), reader),
		Dirs:      dirs,
		Mounts:    stage.Host{Namespace: host},
		Notifier:  notifier,
		Events:    events,
		Templates: template.NewEvaluator(o.Templates),

		PodDefaults: o.PodDefaults,

		Workflows: workflows,
		Calls:     calls,
		Node:      o.NodeName,
		Boot:      boot,
		Version:   o.Version,

		ClusterTime: clusterTime,
	})
	return stager, reader, nil
}

package addon

import (
	"context"
	"fmt"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/albertofaria/pav/internal/observability"
	"github.com/albertofaria/pav/internal/reconcile"
)

const (
	// rightsDelay is how long the agent waits before it asks for its rights again. An administrator who gives them need not wait: a
	// restart of the agent, or a change of a definition, asks at once.
	rightsDelay = 2 * time.Minute

	// discoveryDelay is how long the API server may take to serve a resource that is established.
	discoveryDelay = time.Second
)

// Reconciler is a reconciler of kinds that are add-ons.
type Reconciler interface {
	// Resources are all that the reconciler watches of the add-on.
	Resources() []schema.GroupVersionResource

	// Index adds the indexes of its kinds to the cache.
	Index(ctx context.Context, indexer client.FieldIndexer) error

	// Register adds the reconciler to the manager, which is running.
	Register(mgr ctrl.Manager, options controller.Options) error
}

// Installer registers a reconciler, once.
type Installer struct {
	// Name is the name of the add-on, in lower case with hyphens.
	Name string

	// Direct asks the API server for the rights of the agent.
	Direct client.Client

	// Addon is the reconciler.
	Addon Reconciler

	mgr        ctrl.Manager
	options    controller.Options
	controller controller.Controller
	watched    map[string]client.Reader // the caches of the definitions, by their names
	indexed    bool
	installed  bool
}

// Register adds the installer to the manager.
func (i *Installer) Register(mgr ctrl.Manager, options controller.Options) error {
	i.mgr, i.options, i.watched = mgr, options, map[string]client.Reader{}
	name := i.Name + "-definitions"
	var err error
	i.controller, err = controller.New(name, mgr, controller.Options{
		Reconciler: i, RateLimiter: reconcile.Backoff(), LogConstructor: observability.Requests(mgr.GetLogger(), name, "addon", nil),
	})
	if err != nil {
		return fmt.Errorf("making the installer of %s: %w", i.Name, err)
	}
	return i.controller.Watch(source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[ctrl.Request]) error {
		queue.Add(i.request())
		return nil
	}))
}

// request is the only request: the pass that it brings looks at all definitions.
func (i *Installer) request() ctrl.Request {
	return ctrl.Request{NamespacedName: client.ObjectKey{Name: i.Name}}
}

// Reconcile implements reconcile.Reconciler.
func (i *Installer) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	if i.installed {
		return ctrl.Result{}, nil
	}
	for _, look := range []func(context.Context, schema.GroupVersionResource) (string, error){i.watch, i.isServed, i.mayWatch} {
		for _, resource := range i.Addon.Resources() {
			missing, err := look(ctx, resource)
			if err != nil {
				return reconcile.Result(err)
			}
			if missing != "" {
				ctrl.LoggerFrom(ctx).V(1).Info("an add-on is not there", "missing", missing)
				return ctrl.Result{}, nil // its definition brings the next pass
			}
		}
	}
	if err := i.install(ctx); err != nil {
		return ctrl.Result{}, err
	}
	i.installed = true
	ctrl.LoggerFrom(ctx).Info("the cluster has an add-on")
	return ctrl.Result{}, nil
}

// install registers the reconciler. A pass that fails is repeated, and an index can only be added once.
func (i *Installer) install(ctx context.Context) error {
	if !i.indexed {
		if err := i.Addon.Index(ctx, i.mgr.GetFieldIndexer()); err != nil {
			return err
		}
		i.indexed = true
	}
	return i.Addon.Register(i.mgr, i.options)
}

// watch watches the definition of a resource. The agent has the right to do so for definitions of some names only, so that each has a cache
// of its own, which selects the name.
func (i *Installer) watch(ctx context.Context, resource schema.GroupVersionResource) (string, error) {
	name := definitionOf(resource)
	if i.watched[name] != nil {
		return "", nil
	}
	attributes := authorizationv1.ResourceAttributes{Group: apiextensionsv1.GroupName, Resource: "customresourcedefinitions", Name: name}
	if err := i.demand(ctx, attributes); err != nil {
		return "", err
	}
	definitions, err := cache.New(i.mgr.GetConfig(), cache.Options{
		HTTPClient: i.mgr.GetHTTPClient(), Scheme: i.mgr.GetScheme(), Mapper: i.mgr.GetRESTMapper(),
		ByObject: map[client.Object]cache.ByObject{
			&apiextensionsv1.CustomResourceDefinition{}: {Field: fields.OneTermEqualSelector(metav1.ObjectNameField, name), Transform: trim},
		},
	})
	if err != nil {
		return "", fmt.Errorf("making a cache of the definition %q: %w", name, err)
	}
	if err := i.mgr.Add(definitions); err != nil {
		return "", fmt.Errorf("adding a cache of the definition %q: %w", name, err)
	}
	if !definitions.WaitForCacheSync(ctx) { // there is nothing in it yet, but it must have been started
		return "", fmt.Errorf("starting a cache of the definition %q: %w", name, context.Cause(ctx))
	}
	i.watched[name] = definitions
	return "", i.controller.Watch(source.Kind[client.Object](definitions, &apiextensionsv1.CustomResourceDefinition{},
		handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []ctrl.Request { return []ctrl.Request{i.request()} })))
}

// definitionOf returns the name of the definition of a resource.
func definitionOf(resource schema.GroupVersionResource) string {
	return resource.Resource + "." + resource.Group
}

// trim removes from a definition the schemas, which are almost all of it.
func trim(object any) (any, error) {
	if definition, ok := object.(*apiextensionsv1.CustomResourceDefinition); ok {
		definition.ManagedFields = nil
		for j := range definition.Spec.Versions {
			definition.Spec.Versions[j].Schema = nil
		}
	}
	return object, nil
}

// isServed returns what is missing of a resource, or "".
func (i *Installer) isServed(ctx context.Context, resource schema.GroupVersionResource) (string, error) {
	name := definitionOf(resource)
	definition, err := reconcile.Optional(ctx, i.watched[name], client.ObjectKey{Name: name}, &apiextensionsv1.CustomResourceDefinition{})
	if err != nil {
		return "", err
	}
	if missing := missingOf(definition, resource); missing != "" {
		return missing, nil
	}
	if _, err := i.mgr.GetRESTMapper().KindFor(resource); meta.IsNoMatchError(err) {
		return "", &reconcile.Later{After: discoveryDelay}
	} else if err != nil {
		return "", fmt.Errorf("asking whether there are %s: %w", name, err)
	}
	return "", nil
}

// missingOf returns what is missing of a resource according to its definition, or "".
func missingOf(definition *apiextensionsv1.CustomResourceDefinition, resource schema.GroupVersionResource) string {
	if definition == nil || definition.DeletionTimestamp != nil {
		return "the definition " + definitionOf(resource)
	}
	served, established := false, false
	for _, version := range definition.Spec.Versions {
		served = served || version.Name == resource.Version && version.Served
	}
	for _, c := range definition.Status.Conditions {
		established = established || c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
	}
	if !served || !established {
		return fmt.Sprintf("version %s of %s", resource.Version, definitionOf(resource))
	}
	return ""
}

// mayWatch returns an error if the agent has no right to watch a resource.
func (i *Installer) mayWatch(ctx context.Context, resource schema.GroupVersionResource) (string, error) {
	return "", i.demand(ctx, authorizationv1.ResourceAttributes{Group: resource.Group, Version: resource.Version, Resource: resource.Resource})
}

// demand returns reconcile.Later if the agent may not list and watch objects.
func (i *Installer) demand(ctx context.Context, objects authorizationv1.ResourceAttributes) error {
	for _, verb := range []string{"list", "watch"} {
		objects.Verb = verb
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &objects}}
		if err := i.Direct.Create(ctx, review); err != nil && !apierrors.IsForbidden(err) {
			return fmt.Errorf("asking for the right to %s %s.%s: %w", verb, objects.Resource, objects.Group, err)
		}
		if !review.Status.Allowed {
			ctrl.LoggerFrom(ctx).V(1).Info("the agent has no right to use an add-on", "verb", verb, "resource", objects.Resource, "group", objects.Group, "name", objects.Name)
			return &reconcile.Later{After: rightsDelay}
		}
	}
	return nil
}

package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/kubectl/agent"
	"github.com/albertofaria/pav/internal/workflow"
)

// leaseName is the name of the Lease of the controller agent's leader.
const leaseName = "pav-controller"

// page is the page size of lists.
const page = 500

// gatherer reads objects. What cannot be read is left out, and everything else is still read.
type gatherer struct {
	client.Reader
	*Facts
}

// Gather reads everything that the checks depend on. The error is that the cluster cannot be reached, or does not know the
// user.
func Gather(ctx context.Context, reader client.Reader, version string, now func() time.Time) (*Facts, error) {
	g := &gatherer{reader, &Facts{Version: version, Unread: map[right]string{}}}
	var err error
	if g.Namespace, err = agent.Namespace(ctx, reader); err != nil {
		return nil, err
	}
	// Of two kinds, the one that refers to the other is read first: what it refers to is gone if it is not found later.
	for _, gather := range []func(context.Context) error{
		g.definitions, g.agentObjects, g.admission, g.services, g.bucketAPIs,
		g.workflowPods, g.stages, g.snapshots, g.accesses, g.buckets, g.volumes, g.provisioners, g.persistentVolumes, g.claims,
		g.nodes, g.drivers, g.namespaces,
	} {
		if err := gather(ctx); err != nil {
			return nil, err
		}
	}
	g.Now = now()
	return g.Facts, nil
}

// get reads an object. found is false if it does not exist, or cannot be read.
func (g *gatherer) get(ctx context.Context, may right, key client.ObjectKey, object client.Object) (found bool, err error) {
	err = g.Get(ctx, key, object)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, g.unread(ctx, may, err)
}

// list reads a list in pages, and calls add for each.
func (g *gatherer) list(ctx context.Context, may right, list client.ObjectList, add func(), options ...client.ListOption) error {
	for {
		paged := append([]client.ListOption{client.Limit(page), client.Continue(list.GetContinue())}, options...)
		if err := g.List(ctx, list, paged...); err != nil {
			return g.unread(ctx, may, err)
		}
		add()
		if list.GetContinue() == "" {
			return nil
		}
		// The next page must not be decoded into what was added.
		if err := meta.SetList(list, nil); err != nil {
			return fmt.Errorf("emptying a list: %w", err)
		}
	}
}

// unread records why something could not be read. It returns the errors after which nothing can be read.
func (g *gatherer) unread(ctx context.Context, may right, err error) error {
	what := strings.Replace(string(may), "the namespace of the agents", "namespace "+g.Namespace, 1)
	refused, answered := errors.AsType[*apierrors.StatusError](err)
	switch {
	case err == nil:
	case ctx.Err() != nil, apierrors.IsUnauthorized(err):
		return fmt.Errorf("trying to %s: %w", what, err)
	case apierrors.IsForbidden(err):
		g.Unread[may] = "you may not " + what
	case meta.IsNoMatchError(err), apierrors.IsNotFound(err):
		g.Unread[may] = "cannot " + what + ": the cluster does not have that kind of object"
	case answered:
		g.Unread[may] = "cannot " + what + ": " + refused.ErrStatus.Message
	default:
		return fmt.Errorf("trying to %s: %w", what, err)
	}
	return nil
}

func (g *gatherer) definitions(ctx context.Context) error {
	g.Definitions = map[string]*apiextensionsv1.CustomResourceDefinition{}
	for _, kind := range kinds {
		name, definition := kind.plural+"."+pavv1.Group, &apiextensionsv1.CustomResourceDefinition{}
		found, err := g.get(ctx, getDefinitions, client.ObjectKey{Name: name}, definition)
		if err != nil {
			return err
		}
		if found {
			g.Definitions[name] = definition
		}
	}
	return nil
}

// agentObjects reads the objects of the agents.
func (g *gatherer) agentObjects(ctx context.Context) error {
	deployment, daemonSet, lease := &appsv1.Deployment{}, &appsv1.DaemonSet{}, &coordinationv1.Lease{}
	found, err := g.get(ctx, getDeployment, client.ObjectKey{Namespace: g.Namespace, Name: agent.Controller}, deployment)
	if found {
		g.Deployment = deployment
	}
	if err != nil {
		return err
	}
	if found, err = g.get(ctx, getDaemonSet, client.ObjectKey{Namespace: g.Namespace, Name: agent.Node}, daemonSet); found {
		g.DaemonSet = daemonSet
	}
	if err != nil {
		return err
	}
	if found, err = g.get(ctx, getLease, client.ObjectKey{Namespace: g.Namespace, Name: leaseName}, lease); found {
		g.Lease = lease
	}
	if err != nil {
		return err
	}
	pods := &corev1.PodList{}
	return g.list(ctx, listAgents, pods, func() { g.Agents = append(g.Agents, pods.Items...) }, client.InNamespace(g.Namespace), agent.All())
}

func (g *gatherer) admission(ctx context.Context) error {
	webhooks := &admissionv1.ValidatingWebhookConfiguration{}
	found, err := g.get(ctx, getWebhooks, client.ObjectKey{Name: agent.Webhooks}, webhooks)
	if found {
		g.Webhooks = webhooks
	}
	if err != nil {
		return err
	}
	g.Policies, g.Bindings = map[string]bool{}, map[string]bool{}
	for _, kind := range []struct {
		name  string
		may   right
		names map[string]bool
	}{{"ValidatingAdmissionPolicyList", listPolicies, g.Policies}, {"ValidatingAdmissionPolicyBindingList", listBindings, g.Bindings}} {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(admissionv1.SchemeGroupVersion.WithKind(kind.name))
		if err := g.list(ctx, kind.may, list, func() {
			for i := range list.Items {
				kind.names[list.Items[i].Name] = true
			}
		}); err != nil {
			return err
		}
	}
	g.BucketRights, err = g.get(ctx, getBucketRights, client.ObjectKey{Name: agent.BucketRights}, &rbacv1.ClusterRoleBinding{})
	return err
}

// services reads the Services of the webhooks, and their endpoints.
func (g *gatherer) services(ctx context.Context) error {
	g.Services = map[types.NamespacedName]bool{}
	if g.Webhooks == nil {
		return nil
	}
	for i := range g.Webhooks.Webhooks {
		ref := g.Webhooks.Webhooks[i].ClientConfig.Service
		if ref == nil {
			continue
		}
		name := types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}
		if _, is := g.Services[name]; is {
			continue
		}
		found, err := g.get(ctx, getService, name, &corev1.Service{})
		if err != nil {
			return err
		}
		g.Services[name] = found
		slices := &discoveryv1.EndpointSliceList{}
		if err := g.list(ctx, listEndpoints, slices, func() { g.Endpoints = append(g.Endpoints, slices.Items...) },
			client.InNamespace(name.Namespace), client.MatchingLabels{discoveryv1.LabelServiceName: name.Name}); err != nil {
			return err
		}
	}
	return nil
}

// namespaces reads the namespaces where workflow pods may be, and their quotas.
func (g *gatherer) namespaces(ctx context.Context) error {
	own := &corev1.Namespace{}
	found, err := g.get(ctx, listNamespaces, client.ObjectKey{Name: workflow.DefaultNamespace}, own)
	if err != nil {
		return err
	}
	if found {
		g.Namespaces = append(g.Namespaces, *own)
	}
	open := &corev1.NamespaceList{}
	if err := g.list(ctx, listNamespaces, open, func() {
		for i := range open.Items {
			if open.Items[i].Name != workflow.DefaultNamespace {
				g.Namespaces = append(g.Namespaces, open.Items[i])
			}
		}
	}, client.MatchingLabels{pavv1.AllowPodsLabel: "true"}); err != nil {
		return err
	}
	for i := range g.Namespaces {
		quotas, in := &corev1.ResourceQuotaList{}, client.InNamespace(g.Namespaces[i].Name)
		if err := g.list(ctx, listQuotas, quotas, func() { g.Quotas = append(g.Quotas, quotas.Items...) }, in); err != nil {
			return err
		}
	}
	return nil
}

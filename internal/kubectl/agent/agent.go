package agent

import (
	"context"
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// DefaultNamespace is the namespace of the agents in deployment.yaml.
const DefaultNamespace = "pav"

// The agents: names of their objects and containers, and values of ComponentLabel.
const (
	Controller = "controller-agent" // a Deployment
	Node       = "node-agent"       // a DaemonSet
)

// ComponentLabel on a pod, a Deployment or a DaemonSet says which agent it is.
const ComponentLabel = "app.kubernetes.io/component"

// Webhooks is the name of the configuration of the controller agent's webhooks.
const Webhooks = "pav-provisioners"

// BucketRights is the ClusterRoleBinding that gives the controller agent what only buckets need.
const BucketRights = "pav-controller-agent-buckets"

// All selects the objects of both agents.
func All() client.MatchingLabels { return client.MatchingLabels{"app.kubernetes.io/name": "pav"} }

// Labels selects the objects of one agent.
func Labels(component string) client.MatchingLabels {
	labels := All()
	labels[ComponentLabel] = component
	return labels
}

// Namespace returns the namespace of the agents' Deployment and DaemonSet. It is DefaultNamespace if there is neither, or
// if the user may not list them in all namespaces.
func Namespace(ctx context.Context, reader client.Reader) (string, error) {
	var found []string
	for kind, component := range map[string]string{"DeploymentList": Controller, "DaemonSetList": Node} {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind(kind))
		if err := reader.List(ctx, list, Labels(component)); apierrors.IsForbidden(err) {
			continue
		} else if err != nil {
			return "", fmt.Errorf("looking up PaV's agents: %w", err)
		}
		for i := range list.Items {
			if item := &list.Items[i]; item.Name == component {
				found = append(found, item.Namespace)
			}
		}
	}
	slices.Sort(found)
	found = slices.Compact(found)
	switch len(found) {
	case 0:
		return DefaultNamespace, nil
	case 1:
		return found[0], nil
	}
	return choose(ctx, reader, found)
}

// choose returns the one of several namespaces that the webhooks are in, which only administrators write: anyone may give
// objects these labels.
func choose(ctx context.Context, reader client.Reader, namespaces []string) (string, error) {
	webhooks := &admissionv1.ValidatingWebhookConfiguration{}
	err := reader.Get(ctx, client.ObjectKey{Name: Webhooks}, webhooks)
	if err != nil && !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err) {
		return "", fmt.Errorf("looking up PaV's webhooks: %w", err)
	}
	for i := range webhooks.Webhooks {
		service := webhooks.Webhooks[i].ClientConfig.Service
		if service != nil && slices.Contains(namespaces, service.Namespace) {
			return service.Namespace, nil
		}
	}
	if slices.Contains(namespaces, DefaultNamespace) {
		return DefaultNamespace, nil
	}
	return namespaces[0], nil
}

package render

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// nodeOf returns the node that a volume is staged on, or may be.
func (c *cluster) nodeOf(ctx context.Context, v *existing, volume map[string]any) (map[string]any, error) {
	if v.stage != nil {
		node, err := c.node(ctx, v.stage.Spec.NodeName)
		if node == nil && err == nil {
			node = placeholderNode(v.stage.Spec.NodeName)
		}
		return node, err
	}
	if v.node != nil || volume == nil {
		return v.node, nil
	}
	return c.anyNode(ctx, selectorOf(volume))
}

// anyNode returns a node that matches a selector, or a made-up one.
func (c *cluster) anyNode(ctx context.Context, selector labels.Selector) (map[string]any, error) {
	node, err := c.keep("nodes with "+selector.String(), func() (map[string]any, error) {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NodeList"))
		if err := c.List(ctx, list, client.Limit(1), client.MatchingLabelsSelector{Selector: selector}); err != nil || len(list.Items) == 0 {
			return nil, err
		}
		return list.Items[0].Object, nil
	})
	if err != nil && !apierrors.IsForbidden(err) {
		return nil, needs("list", "nodes", "", err)
	}
	if node == nil {
		const name = "node-1"
		node = placeholderNode(name)
		c.note(fmt.Sprintf("no Node is known for volumes that are staged nowhere: %q was made up, "+
			"with the labels kubernetes.io/hostname, kubernetes.io/os and kubernetes.io/arch", name))
	}
	return node, nil
}

// selectorOf returns a selector of nodes from the first term of a PersistentVolume's node affinity.
func selectorOf(volume map[string]any) labels.Selector {
	selector := labels.NewSelector()
	terms, _, _ := unstructured.NestedSlice(volume, "spec", "nodeAffinity", "required", "nodeSelectorTerms")
	if len(terms) == 0 {
		return selector
	}
	term, _ := terms[0].(map[string]any)
	expressions, _, _ := unstructured.NestedSlice(term, "matchExpressions")
	for _, each := range expressions {
		expression, _ := each.(map[string]any)
		values, _, _ := unstructured.NestedStringSlice(expression, "values")
		// The operators of labels are those of node selectors, in lower case.
		operator := selection.Operator(strings.ToLower(text(expression, "operator")))
		requirement, err := labels.NewRequirement(text(expression, "key"), operator, values)
		if err == nil {
			selector = selector.Add(*requirement)
		}
	}
	return selector
}

// node returns a Node; nil if there is none, or the user may not read it.
func (c *cluster) node(ctx context.Context, name string) (map[string]any, error) {
	if name == "" {
		return nil, nil
	}
	node, err := c.keep(name, func() (map[string]any, error) {
		return c.get(ctx, "nodes", corev1.SchemeGroupVersion.WithKind("Node"), client.ObjectKey{Name: name})
	})
	if apierrors.IsForbidden(err) {
		c.note("you may not get nodes: their labels were made up")
		return placeholderNode(name), nil
	}
	return node, err
}

// keep returns a Node that was read before, or reads it.
func (c *cluster) keep(key string, read func() (map[string]any, error)) (map[string]any, error) {
	if node, known := c.nodes[key]; known {
		return node, nil
	}
	node, err := read()
	if err != nil {
		return nil, err
	}
	if c.nodes == nil || len(c.nodes) == maxNodes {
		c.nodes = map[string]map[string]any{}
	}
	if node != nil {
		clean(node)
	}
	c.nodes[key] = node
	return node, nil
}

package volume

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/podplan"
	"github.com/albertofaria/pav/internal/podplan/topology"
	"github.com/albertofaria/pav/internal/reconcile"
)

// limited reports whether only some nodes reach the source.
func (o observation) limited() bool {
	return o.volume.Spec.Source != nil && len(o.volume.Spec.Source.AccessibleTopology) > 0
}

// reachSource replaces the node that the scheduler has selected if it does not reach the source: the scheduler knows nothing of where the
// source is. The volume is created where the source is; its PersistentVolume then has the scheduler select another node for the pod. The
// error is a podplan.Error if no node that can run pods reaches the source.
func (r *Reconciler) reachSource(ctx context.Context, o *observation, request *podplan.VolumeRequest) error {
	if request.Node == nil || !o.limited() {
		return nil
	}
	reachable := o.volume.Spec.Source.AccessibleTopology
	labels, _, _ := unstructured.NestedStringMap(request.Node, "metadata", "labels")
	if topology.Matches(reachable, labels) {
		return nil
	}
	requested, err := podplan.RequestedOf(o.volume)
	if err != nil {
		return err
	}
	name, err := r.nodeIn(ctx, reachable, requested.Class.AllowedTopologies, o.volume.Status.Attempt)
	if err != nil {
		return err
	}
	if name == "" {
		return &podplan.Error{Err: fmt.Errorf("%s can be reached from nodes with %s: none of them exists, can run pods, and is among the allowedTopologies of StorageClass %q",
			o.sourceText(), topology.Describe(reachable), requested.Class.Name)}
	}
	if request.Node, err = r.readNode(ctx, name); err != nil {
		return err
	}
	o.selectedNode = name
	return nil
}

// nodeIn returns a node that is in a topology, is allowed by a StorageClass and can run pods; "" if there is none. It prefers nodes without
// taints that keep pods away, and is another one for each attempt.
func (r *Reconciler) nodeIn(ctx context.Context, reachable []pavv1.TopologyLabels, allowed []corev1.TopologySelectorTerm, attempt int32) (string, error) {
	var open, tainted []string
	err := reconcile.Pages(ctx, r.Live, &corev1.NodeList{}, nil, func() { open, tainted = nil, nil }, func(page *corev1.NodeList) {
		for i := range page.Items {
			node := &page.Items[i]
			switch {
			case !canRunPods(node) || !topology.Matches(reachable, node.Labels) || !topology.Allows(allowed, node.Labels):
			case isTainted(node):
				tainted = append(tainted, node.Name)
			default:
				open = append(open, node.Name)
			}
		}
	})
	if err != nil {
		return "", fmt.Errorf("asking for the nodes that reach a source: %w", err)
	}
	names := open
	if len(names) == 0 {
		names = tainted
	}
	if len(names) == 0 {
		return "", nil
	}
	slices.Sort(names)
	return names[int(attempt)%len(names)], nil
}

// canRunPods reports whether a node is ready and not cordoned.
func canRunPods(node *corev1.Node) bool {
	return !node.Spec.Unschedulable && slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// isTainted reports whether a node has a taint that keeps pods away which do not tolerate it.
func isTainted(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Effect != corev1.TaintEffectPreferNoSchedule })
}

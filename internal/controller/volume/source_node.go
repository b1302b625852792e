package volume

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/podplan"
	"github.com/albertofaria/pav/internal/podplan/topology"
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
	name, err := r.nodeIn(ctx, reachable, requested.Class.AllowedTopologies)
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

// nodeIn returns the first node by name that is in a topology, is allowed by a StorageClass and can run pods; "" if there is none.
func (r *Reconciler) nodeIn(ctx context.Context, reachable []pavv1.TopologyLabels, allowed []corev1.TopologySelectorTerm) (string, error) {
	var names []string
	for _, labels := range reachable {
		nodes := &corev1.NodeList{}
		if err := r.Live.List(ctx, nodes, client.MatchingLabels(labels)); err != nil {
			return "", fmt.Errorf("asking for the nodes that reach a source: %w", err)
		}
		for i := range nodes.Items {
			if node := &nodes.Items[i]; canRunPods(node) && topology.Allows(allowed, node.Labels) {
				names = append(names, node.Name)
			}
		}
	}
	if len(names) == 0 {
		return "", nil
	}
	return slices.Min(names), nil
}

// canRunPods reports whether a node is ready and not cordoned.
func canRunPods(node *corev1.Node) bool {
	return !node.Spec.Unschedulable && slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

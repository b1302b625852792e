package watches

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// NodeGoes lets through what can make a node gone.
var NodeGoes = predicate.Funcs{
	CreateFunc: func(e event.CreateEvent) bool { return NodeGone(e.Object) },
	UpdateFunc: func(e event.UpdateEvent) bool { return NodeGone(e.ObjectNew) && !NodeGone(e.ObjectOld) },
}

// NodeGone says whether a *corev1.Node is nil, as there is no such node, or an administrator vouches that nothing runs on it.
func NodeGone(object any) bool {
	node, ok := object.(*corev1.Node)
	return ok && (node == nil || slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool {
		return t.Key == corev1.TaintNodeOutOfService
	}))
}

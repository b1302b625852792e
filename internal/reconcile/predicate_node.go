package reconcile

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// OnNodeGone passes events after which a node may be gone.
var OnNodeGone = predicate.Funcs{
	CreateFunc: func(e event.CreateEvent) bool { return IsNodeGone(e.Object) },
	UpdateFunc: func(e event.UpdateEvent) bool { return IsNodeGone(e.ObjectNew) && !IsNodeGone(e.ObjectOld) },
}

// IsNodeGone reports whether a *corev1.Node is nil, or has the taint with which an administrator confirms that
// nothing runs on it.
func IsNodeGone(object any) bool {
	node, ok := object.(*corev1.Node)
	return ok && (node == nil || slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool {
		return t.Key == corev1.TaintNodeOutOfService
	}))
}

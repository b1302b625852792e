package reconcile

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

func TestNodeGoes(t *testing.T) {
	tainted := func(key string) *corev1.Node {
		return &corev1.Node{Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: key}}}}
	}
	works, gone := tainted(corev1.TaintNodeUnreachable), tainted(corev1.TaintNodeOutOfService)
	if IsNodeGone(works) || !IsNodeGone(gone) || !IsNodeGone((*corev1.Node)(nil)) {
		t.Error("a node is gone where it does not exist, or is out of service")
	}
	if OnNodeGone.Create(event.CreateEvent{Object: works}) || OnNodeGone.Update(event.UpdateEvent{ObjectOld: gone, ObjectNew: gone}) {
		t.Error("what changes nothing is let through")
	}
	if !OnNodeGone.Create(event.CreateEvent{Object: gone}) || !OnNodeGone.Update(event.UpdateEvent{ObjectOld: works, ObjectNew: gone}) ||
		!OnNodeGone.Delete(event.DeleteEvent{Object: works}) {
		t.Error("the end of a node is not let through")
	}
}

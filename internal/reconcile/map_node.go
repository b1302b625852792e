package reconcile

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/observability"
)

// OfNode maps a node to what the workflow pods on it, and the PavStages of it, are mapped to.
func OfNode(cache client.Reader, ofPod, ofStage handler.MapFunc) handler.MapFunc {
	return func(ctx context.Context, node client.Object) []ctrl.Request {
		pods := &corev1.PodList{}
		if err := cache.List(ctx, pods, client.UnsafeDisableDeepCopy); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "cannot look pods up", observability.Node, node.GetName())
			return nil
		}
		var requests []ctrl.Request
		for i := range pods.Items {
			if pod := &pods.Items[i]; pod.Spec.NodeName == node.GetName() {
				requests = append(requests, ofPod(ctx, pod)...)
			}
		}
		stages := &pavv1.PavStageList{}
		if err := cache.List(ctx, stages, client.MatchingFields{StagesByNode: node.GetName()}, client.UnsafeDisableDeepCopy); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "cannot look PavStages up", observability.Node, node.GetName())
			return requests
		}
		for i := range stages.Items {
			requests = append(requests, ofStage(ctx, &stages.Items[i])...)
		}
		return requests
	}
}

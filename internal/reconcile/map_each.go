package reconcile

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
)

// Each maps an object to all that several functions map it to. Each watch of a kind takes memory for all objects of the kind that come at
// once, as at the start of the agent, and does not give it back: several functions should share one.
func Each(functions ...handler.MapFunc) handler.MapFunc {
	return func(ctx context.Context, object client.Object) (requests []ctrl.Request) {
		for _, function := range functions {
			requests = append(requests, function(ctx, object)...)
		}
		return requests
	}
}

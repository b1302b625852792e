package integration

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/test/kubelet"
)

// No pod stays on a simulated node, although requests to delete pods fail, and a PavStage is deleted while nothing is watched.
func TestNode_SimulatedKubelet_LeavesNoPod(t *testing.T) {
	errBusy := errors.New("the API server is busy")
	var requests atomic.Int32
	var watches atomic.Bool
	n := newNode(t, workers(t, nil))
	busy := interceptor.NewClient(n.c.Admin, interceptor.Funcs{
		Delete: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.DeleteOption) error {
			if _, isPod := object.(*corev1.Pod); isPod && requests.Add(1)%2 == 1 {
				return errBusy
			}
			return c.Delete(ctx, object, options...)
		},
		Watch: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) (watch.Interface, error) {
			if _, isStage := list.(*pavv1.PavStageList); isStage && !watches.Load() {
				return nil, errBusy
			}
			return c.Watch(ctx, list, options...)
		},
	})
	const name = "node-of-a-busy-kubelet"
	other := &node{c: n.c, agentConfig: n.c.NodeAgent(name), provisioner: n.provisioner, Kubelet: kubelet.Start(t, busy, name, workers(t, nil))}
	t.Cleanup(func() { other.checkLeft(t) })
	other.run(t)
	v := other.volume(t, "served")
	other.stage(t, v)
	other.unstage(t, v)
	watches.Store(true)
	other.checkLeft(t)
	if requests.Load() < 4 {
		t.Errorf("%d requests to delete pods were made, and half of them were to fail", requests.Load())
	}
}

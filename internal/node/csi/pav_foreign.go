package csi

import (
	"context"
	"errors"

	"golang.org/x/sync/singleflight"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"
)

// maxForeignPods is how many pods are remembered: far more than a node has.
const maxForeignPods = 4096

// foreignPods keeps requests for /pav of pods that PaV did not make from costing more than one look-up a pod: a pod
// can have a thousand such volumes, and kubelet asks for each again and again, all of them at once.
type foreignPods struct {
	refused *lru.Cache // errors by UID
	asked   singleflight.Group
}

func newForeignPods() *foreignPods { return &foreignPods{refused: lru.New(maxForeignPods)} }

// podOf returns what ask does for the pod of a UID. Calls at the same time ask once for all of them, and a refusal is
// remembered. It must be one that never changes.
func (f *foreignPods) podOf(ctx context.Context, uid types.UID, ask func(context.Context) (*corev1.Pod, error)) (*corev1.Pod, error) {
	if refusal, ok := f.refused.Get(uid); ok {
		return nil, refusal.(error)
	}
	answer, err, _ := f.asked.Do(string(uid), func() (any, error) {
		if refusal, ok := f.refused.Get(uid); ok {
			return nil, refusal.(error)
		}
		pod, err := ask(ctx)
		if errors.Is(err, errForeignPod) {
			f.refused.Add(uid, err)
		}
		return pod, err
	})
	if err != nil {
		return nil, err
	}
	return answer.(*corev1.Pod), nil
}

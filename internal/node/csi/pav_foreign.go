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

// foreignPods limits requests for /pav by pods that are not PaV's to one look-up for each pod: a pod can have a
// thousand such volumes, and kubelet repeats the calls for all of them at once.
type foreignPods struct {
	refused *lru.Cache // errors by UID
	asked   singleflight.Group
}

func newForeignPods() *foreignPods { return &foreignPods{refused: lru.New(maxForeignPods)} }

// podOf returns the result of ask for the pod of a UID. Concurrent calls share one call of ask, and a refusal is
// remembered. A refusal must be permanent.
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

package collect

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/albertofaria/pav/internal/node/pavdir"
	"github.com/albertofaria/pav/internal/workflow"
)

// Report reports the files in the /pav of a pod as Unpublish does, but earlier, and does not take them: as soon as the
// containers of the pod have ended, or it has created /pav/ready. Kubelet takes /pav from a pod more than a second
// after its containers have ended. Pod is the pod as the cache has it. Report does nothing if the API server says that it
// is too early, or if the pod has no /pav here. The error is ErrBusy if another call does it.
func (c *Collector) Report(ctx context.Context, pod *corev1.Pod) error {
	id, of, err := c.find(ctx, pod.UID)
	if err != nil || of == nil {
		return err
	}
	if !workflow.Judge(pod).IsOver() {
		if ready, err := c.isReady(ctx, id, *of); err != nil || !ready {
			return err
		}
	}
	release, err := c.claim(id)
	if err != nil {
		return err
	}
	defer release()
	// A call that has ended meanwhile may have removed it.
	if of, _, err = c.dirs.Pod(ctx, id); err != nil || of == nil {
		return err
	}
	return c.tell(ctx, *of, func(pod *corev1.Pod) (*workflow.Result, error) { return c.resultOf(ctx, id, *of, pod) })
}

// find returns the record of a pod with a /pav of its own, and the ID of that volume; nil if there is none.
func (c *Collector) find(ctx context.Context, pod types.UID) (id string, of *pavdir.Pod, err error) {
	ids, err := c.dirs.Pods(ctx)
	for _, id := range ids {
		of, _, failed := c.dirs.Pod(ctx, id)
		if failed == nil && of != nil && of.UID == pod {
			return id, of, nil
		}
		err = errors.Join(err, failed) // it may be the one
	}
	if err != nil {
		return "", nil, fmt.Errorf("looking for the /pav of a pod: %w", err)
	}
	return "", nil, nil
}

// resultOf returns the result of a pod that is over or ready, or nil.
func (c *Collector) resultOf(ctx context.Context, id string, of pavdir.Pod, pod *corev1.Pod) (*workflow.Result, error) {
	switch state := workflow.Judge(pod); {
	case state.IsOver():
		return c.left(ctx, id, of, pod)
	case state != workflow.Running || !workflow.MayBeReady(pod):
		return nil, nil
	}
	if ready, err := c.isReady(ctx, id, of); err != nil || !ready {
		return nil, err
	}
	result, err := c.read(ctx, id, pod)
	if err != nil {
		return nil, err
	}
	result.Ready = true
	return &result, nil
}

// AwaitReady makes the result of a pod be reported as soon as the pod has created /pav/ready. Its /pav must be published.
// Without this, it is reported at the end of the pod, so that errors are only logged.
func (c *Collector) AwaitReady(ctx context.Context, volumeID string, of pavdir.Pod) {
	ready, err := c.isReady(ctx, volumeID, of)
	if err != nil {
		c.log.Error(err, "/pav/ready of a pod cannot be watched for", "directory", volumeID)
	}
	if ready {
		c.enqueue(of)
	}
}

// isReady reports whether a pod has created /pav/ready. If it has not, its creation queues a report.
func (c *Collector) isReady(ctx context.Context, volumeID string, of pavdir.Pod) (bool, error) {
	ready, err := c.dirs.PodReady(ctx, volumeID, func() { c.enqueue(of) })
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, pavdir.ErrLost) {
		return false, nil // it has been taken from the pod
	}
	return ready, err
}

func (c *Collector) enqueue(of pavdir.Pod) {
	c.mu.Lock()
	queue := c.queue
	c.mu.Unlock()
	if queue != nil {
		queue(types.NamespacedName{Namespace: of.Namespace, Name: of.Name})
	}
}

package volume

import (
	"context"
	"fmt"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// adoptAll tells the queue, once, of all pods that an earlier agent has started.
func (r *Reconciler) adoptAll(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.adopted {
		return nil
	}
	volumes := &pavv1.PavVolumeList{}
	if err := r.Client.List(ctx, volumes); err != nil {
		return fmt.Errorf("looking up PavVolumes: %w", err)
	}
	for i := range volumes.Items {
		if v := &volumes.Items[i]; v.Status.Pod != nil && v.Status.Pod.UID != "" || v.Status.CreationPod != nil {
			r.slots.Restore(owner(v))
		}
	}
	r.adopted = true
	return nil
}

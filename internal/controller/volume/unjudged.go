package volume

import (
	"context"
	"fmt"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/albertofaria/pav/internal/reconcile"
)

// unjudgedDelay is how long a pod waits that the webhook could not check.
const unjudgedDelay = 2 * time.Second

// unjudged reports that a pod cannot be created until the webhook answers, as after an installation, and tries again soon.
// The attempt continues and keeps its slot: the pods of other volumes could not be created either.
func (r *Reconciler) unjudged(ctx context.Context, o observation, reason error) error {
	ctrl.LoggerFrom(ctx).Error(reason, "a pod waits for the webhook")
	pod := o.volume.Status.Pod
	d := decision{
		Condition: conditionOf(o.volume.Status.Step), Reason: "PodNotAdmitted", Warning: true,
		// Without the error, whose text may differ each time.
		Message: fmt.Sprintf("pod %s/%s has rights on its node, and waits until PaV's webhook admits it; the webhook does not answer", pod.Namespace, pod.Name),
	}
	if err := r.wait(ctx, o, d); err != nil {
		return err
	}
	return &reconcile.Later{After: unjudgedDelay}
}

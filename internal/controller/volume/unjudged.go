package volume

import (
	"context"
	"fmt"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/albertofaria/pav/internal/reconcile"
)

// unjudgedDelay is how long a pod that could not be judged waits.
const unjudgedDelay = 2 * time.Second

// unjudged tells that a pod waits until the webhook can be asked whether it may be created, as after an installation,
// and tries again soon. The attempt goes on, and keeps its place: there is no use in trying others' pods meanwhile.
func (r *Reconciler) unjudged(ctx context.Context, o snapshot, reason error) error {
	ctrl.LoggerFrom(ctx).Error(reason, "a pod waits for the webhook")
	pod := o.volume.Status.Pod
	d := decision{
		condition: conditionOf(o.volume.Status.Step), reason: "PodNotAdmitted", warning: true,
		// Without the reason's text, which may differ each time.
		message: fmt.Sprintf("pod %s/%s has rights on its node, and waits until PaV's webhook, which does not answer, admits it", pod.Namespace, pod.Name),
	}
	if err := r.wait(ctx, o, d); err != nil {
		return err
	}
	return &reconcile.Later{After: unjudgedDelay}
}

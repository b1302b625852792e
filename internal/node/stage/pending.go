package stage

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/albertofaria/pav/internal/workflow"
)

// waitsForUsers reports whether a wait is for nothing but that kubelet takes /pav from pods that have it: no pod of the
// stage runs.
func waitsForUsers(o observation) bool {
	return o.pavInUse && !slices.ContainsFunc([]workflow.State{o.validationPod, o.stagingPod, o.unstagingPod}, func(pod workflow.State) bool {
		return pod == workflow.Running || pod == workflow.Stopping
	})
}

// usersPatience is how long a call may look, after its time, for what it has waited for.
const usersPatience = 2 * time.Second

// users names what keeps /pav from being free, if that is what a call has waited for.
func (t *task) users(ctx context.Context) string {
	if !t.waiting {
		return ""
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), usersPatience)
	defer cancel()
	var points []string
	for _, name := range t.namesOf(t.Subject) {
		users, err := t.dirs.Users(ctx, name)
		if err != nil {
			return fmt.Sprintf(": its /pav is still mounted: %v", err)
		}
		points = append(points, users...)
	}
	if len(points) == 0 {
		return ""
	}
	return fmt.Sprintf(": its /pav is still mounted at %q, which kubelet unmounts when the pod there has gone", points)
}

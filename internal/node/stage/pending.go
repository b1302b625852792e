package stage

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/albertofaria/pav/internal/workflow"
)

// waitsForUsers reports whether a call waits only until kubelet has unmounted /pav from pods: no pod of the stage
// runs.
func waitsForUsers(o observation) bool {
	return o.pavInUse && !slices.ContainsFunc([]workflow.State{o.validationPod, o.stagingPod, o.unstagingPod}, func(pod workflow.State) bool {
		return pod == workflow.Running || pod == workflow.Stopping
	})
}

// usersPatience is how long a call that has run out of time may take to find out what it waited for.
const usersPatience = 2 * time.Second

// users lists the mounts of /pav that a call has waited for, if it has waited for that.
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
	return fmt.Sprintf(": its /pav is still mounted at %q, which kubelet unmounts when that pod is gone", points)
}

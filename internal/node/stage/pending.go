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
	return o.pavInUse && !slices.ContainsFunc([]workflow.State{o.validationPod, o.stagingPod, o.unstagingPod, o.expansionPod}, func(pod workflow.State) bool {
		return pod == workflow.Running || pod == workflow.Stopping
	})
}

// dependsOnPav reports whether it matters if /pav is still mounted for a pod: for the decision, or for what a call says
// that it waits for.
func (t table) dependsOnPav(o observation) bool {
	free, used := o, o
	free.pavInUse, used.pavInUse = false, true
	d := t.decide(free)
	return d != t.decide(used) || d.step == stepWait && waitsForUsers(used)
}

// observePav gathers whether /pav is still mounted for a pod of the stage, if that matters: only the mount table of the
// node shows it. It must be called after the pods were observed, as kubelet may start a pod and mount /pav for it in
// between: a pod that is seen to have ended has its mount until kubelet unmounts it.
func (t *task) observePav(ctx context.Context, rules table, o *observation) error {
	if o.pavObserved || !rules.dependsOnPav(*o) {
		return nil
	}
	for _, name := range t.namesOf(t.Subject) {
		inUse, err := t.dirs.InUse(ctx, name)
		if err != nil {
			return err
		}
		o.pavInUse = o.pavInUse || inUse
	}
	o.pavObserved = true
	return nil
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

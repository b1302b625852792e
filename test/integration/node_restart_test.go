package integration

import (
	"context"
	"testing"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/mount"
)

// All mounts and pods of a node are gone although the boot ID is the same: the volume is unstaged once, as staging may have
// other effects than mounts, and staged again.
func TestNode_MountsGoneInTheSameBoot_VolumesAreStagedAgain(t *testing.T) {
	for _, kind := range []string{"made", "block"} {
		t.Run(kind, func(t *testing.T) {
			n := newNode(t, workers(t, newDevices(t)))
			agent := n.Launch(t, n.agentConfig, 0)
			v := n.volume(t, kind)
			p := clientOf(v, 1)
			n.stage(t, v)
			n.publish(t, v, p)
			n.wantRead(t, v, p)

			agent.Kill(t)
			for _, path := range []string{"pods", "plugins"} {
				if err := mount.Unmount(lasting(t), n.Dir+"/"+path); err != nil {
					t.Fatal(err)
				}
			}
			if left, err := n.Mounts(); err != nil || len(left) > 0 {
				t.Fatalf("mounts are left: %q, %v", left, err)
			}
			n.run(t)
			n.succeed(t, "staging", func(ctx context.Context) error { return n.Stage(ctx, v) })
			n.publish(t, v, p)
			n.wantRead(t, v, p)
			n.unpublish(t, v, p)
			n.unstage(t, v)
			n.wantRuns(t, v, map[string]int{pavv1.WorkflowStaging: 2, pavv1.WorkflowUnstaging: 2})
			n.checkLeft(t)
		})
	}
}

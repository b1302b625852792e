package stage

import (
	"context"
	"testing"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"

	"github.com/albertofaria/pav/internal/node/nodetest"
	"github.com/albertofaria/pav/internal/node/pavdir"
)

// The mounts of a volume that a client has are gone, although the boot ID is the same.
func TestStage_WhereTheMountsAreGone_JudgesByMountsAndNotByRecords(t *testing.T) {
	for name, test := range map[string]struct {
		change func(t *testing.T, n *testNode, volume, target string)
		want   step
	}{
		"the node, a container, was started again": {
			change: func(t *testing.T, n *testNode, _, _ string) {
				t.Helper()
				n.stager.boot.NodeStart = "2"
			},
			want: stepRevert,
		},
		"everything was stopped and unmounted": {
			change: func(t *testing.T, _ *testNode, volume, target string) {
				t.Helper()
				must(t, unix.Unmount(target, 0))
				must(t, unix.Unmount(volume, 0))
			},
			want: stepRevert,
		},
		"everything was unmounted, and the client goes on": {
			change: func(t *testing.T, n *testNode, volume, target string) {
				t.Helper()
				n.container(t, "client-uid")
				must(t, unix.Unmount(target, 0))
				must(t, unix.Unmount(volume, 0))
			},
			want: stepBlockOnClients,
		},
		"the client's mount is left": {
			change: func(t *testing.T, _ *testNode, volume, _ string) {
				t.Helper()
				must(t, unix.Unmount(volume, 0))
			},
			want: stepBlockOnClients,
		},
		"nothing is gone": {
			change: func(*testing.T, *testNode, string, string) {},
			want:   stepDone,
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			n.stager.boot.NodeStart = "1"
			v := n.staged(t)
			stage, _ := n.stager.names(v)
			n.withVolumes(v, "pv")
			n.ledger(t, v, stage).Status.NodeStart = "1"
			p := n.publicationFor(t, "client-uid")
			p.Client = pavdir.Client{Namespace: "default", Name: "client", UID: "client-uid", Target: p.Target}
			must(t, n.stager.Publish(t.Context(), v, p))

			test.change(t, n, n.Dirs.Volume(stage), p.Target)
			o, err := n.stager.newTask(Subject{Volume: v}, p.Mode).observe(t.Context())
			must(t, err)
			if got := stageTable.decide(o).step; got != test.want {
				t.Errorf("the next step is %s, want %s; it sees %+v", got, test.want, o)
			}
		})
	}
}

// container starts a container of a pod, and returns a function that stops it. It ends with the test.
func (n *testNode) container(t *testing.T, uid types.UID) (stop func() error) {
	t.Helper()
	stop, err := nodetest.Run(context.WithoutCancel(t.Context()), n.Kubelet, uid)
	must(t, err)
	t.Cleanup(func() { must(t, stop()) })
	return stop
}

package stage

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

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

// container simulates a container of a pod: a process with a mount namespace of its own, in which a file of the pod's
// directory is mounted. It ends with the test.
func (n *testNode) container(t *testing.T, uid string) {
	t.Helper()
	hosts := filepath.Join(n.Kubelet, "pods", uid, "etc-hosts")
	must(t, os.WriteFile(hosts, nil, 0o600))
	ctx, cancel := context.WithCancel(t.Context())
	command := exec.CommandContext(ctx, "unshare", "--mount", "--propagation", "private", "sh", "-c", `mount --bind "$1" "$1"; echo ready; cat`, "sh", hosts)
	input, err := command.StdinPipe()
	must(t, err)
	output, err := command.StdoutPipe()
	must(t, err)
	must(t, command.Start())
	t.Cleanup(func() {
		_ = input.Close()
		_ = command.Wait()
		cancel()
	})
	_, err = io.ReadFull(output, make([]byte, len("ready\n")))
	must(t, err)
}

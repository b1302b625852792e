package integration

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/test/kubelet"
)

// BenchmarkNode_Stage measures what the node agent takes of NodeStageVolume: from the call until kubelet sees the staging pod, and from
// /pav/ready until the answer. What is between is the pod's time: it is bound, gets its /pav, and mounts a file system in memory. The
// medians are reported, on a node with no more mounts, which is the floor, and on one with many.
func BenchmarkNode_Stage(b *testing.B) {
	for _, more := range []int{0, 2000} {
		b.Run(fmt.Sprintf("mounts=%d", more), func(b *testing.B) {
			pods := make(chan *kubelet.Pod, 1)
			script := workers(b, &devices{})
			n := newNode(b, func(ctx context.Context, pod *kubelet.Pod) int32 {
				if pod.Workflow() == pavv1.WorkflowStaging {
					pods <- pod
				}
				return script(ctx, pod)
			})
			n.run(b)
			n.succeed(b, "registering", func(ctx context.Context) error {
				_, err := n.Endpoint(ctx, n.provisioner)
				return err
			})
			mountMore(b, more)
			var agents, others []time.Duration
			for b.Loop() {
				agent, other := stageTimes(b, n, pods)
				agents, others = append(agents, agent), append(others, other)
			}
			b.ReportMetric(0, "ns/op") // with all that surrounds the call
			b.ReportMetric(medianMilliseconds(agents), "agent-ms")
			b.ReportMetric(medianMilliseconds(others), "pod-ms")
		})
	}
}

// stageTimes stages a new volume, whose staging pod is received from pods, and unstages it. It returns the time of the agent, and that of
// the pod.
func stageTimes(b *testing.B, n *node, pods <-chan *kubelet.Pod) (agent, pod time.Duration) {
	b.Helper()
	v := n.volume(b, fmt.Sprintf("served-%d", n.volumes))
	awaitBound(b, n.c, claimNamed(v))
	began := time.Now()
	if err := n.Stage(b.Context(), v); err != nil {
		b.Fatal(err)
	}
	ended := time.Now()
	staging := <-pods
	ready, err := os.Stat(filepath.Join(staging.Pav, "ready"))
	if err != nil {
		b.Fatal(err)
	}
	n.unstage(b, v)
	pod = ready.ModTime().Sub(staging.Seen)
	return ended.Sub(began) - pod, pod
}

// mountMore makes as many more mounts on the node until the benchmark ends.
func mountMore(b *testing.B, more int) {
	b.Helper()
	top := b.TempDir()
	if err := unix.Mount("tmpfs", top, "tmpfs", 0, "mode=755"); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := unix.Unmount(top, unix.MNT_DETACH); err != nil {
			b.Error(err)
		}
	})
	for i := range more {
		path := filepath.Join(top, fmt.Sprint(i))
		if err := os.Mkdir(path, 0o750); err != nil {
			b.Fatal(err)
		}
		if err := unix.Mount(path, path, "", unix.MS_BIND, ""); err != nil {
			b.Fatal(err)
		}
	}
}

func medianMilliseconds(durations []time.Duration) float64 {
	slices.Sort(durations)
	return durations[len(durations)/2].Seconds() * 1000
}

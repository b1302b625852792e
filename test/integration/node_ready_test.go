package integration

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/node/nodetest"
	"github.com/albertofaria/pav/test/kubelet"
)

// A staging pod creates /pav/ready before it mounts: the agent has attached a directory of the node's disk, which no client
// may get. The next attempt mounts in time.
func TestNode_MountThatComesAfterReady_IsNotServed(t *testing.T) {
	var n *node
	var late atomic.Int32
	n = newNode(t, func(ctx context.Context, pod *kubelet.Pod) int32 {
		volume := filepath.Join(pod.Pav, "volume")
		if pod.Workflow() != pavv1.WorkflowStaging {
			return unmountByHand(volume)
		}
		if late.Load() > 0 {
			return serveByHand(ctx, pod, func() {}, func() error { return unix.Mount("tmpfs", volume, "tmpfs", 0, "") })
		}
		stop, err := nodetest.Run(context.WithoutCancel(ctx), n.Dir, pod.UID)
		if err != nil {
			t.Error(err)
			return 1
		}
		defer func() {
			if err := stop(); err != nil {
				t.Error(err)
			}
		}()
		return serveByHand(ctx, pod, func() { n.awaitAttached(ctx, t); late.Add(1) }, func() error { return nil },
			func() error { return unix.Mount("tmpfs", volume, "tmpfs", 0, "") })
	})
	n.run(t)
	v := n.volume(t, "served")
	p := clientOf(v, 1)
	ctx, cancel := context.WithTimeout(lasting(t), deadline)
	defer cancel()
	errs := n.Until(ctx, func(ctx context.Context) error { return n.Stage(ctx, v) })
	if late.Load() != 1 {
		t.Fatalf("a mount came late %d times, want once, or this test shows nothing", late.Load())
	}
	if !slices.ContainsFunc(errs, func(err error) bool {
		return err != nil && strings.Contains(err.Error(), "/pav/ready was created too early")
	}) {
		t.Errorf("no call said that /pav/ready was created too early: %v", errs)
	}
	if last := errs[len(errs)-1]; last != nil {
		t.Fatalf("the next attempt: %v", last)
	}
	n.publish(t, v, p)
	if err := os.WriteFile(filepath.Join(n.Target(v, p), "name"), []byte("served"), 0o600); err != nil {
		t.Error(err)
	}
	var stat unix.Statfs_t
	if err := unix.Statfs(n.Target(v, p), &stat); err != nil || stat.Type != unix.TMPFS_MAGIC {
		t.Errorf("the client has a file system of type %x, %v; want the one that was mounted", stat.Type, err)
	}
	n.unpublish(t, v, p)
	n.unstage(t, v)
	n.wantRuns(t, v, map[string]int{pavv1.WorkflowStaging: 2, pavv1.WorkflowUnstaging: 2})
	n.checkLeft(t)
}

// A staging pod mounts, creates /pav/ready, and mounts something else in its place. What it had mounted is served at
// once; a few seconds later it is given to no more clients, the one that has it is left alone, and when that is gone the
// volume is staged again.
func TestNode_MountThatIsReplacedAfterReady_IsGivenToNoMoreClients(t *testing.T) {
	var n *node
	var replaced atomic.Int32
	exchange := make(chan struct{})
	n = newNode(t, func(ctx context.Context, pod *kubelet.Pod) int32 {
		volume := filepath.Join(pod.Pav, "volume")
		if pod.Workflow() != pavv1.WorkflowStaging {
			return unmountByHand(volume)
		}
		mounts := func() error { return unix.Mount("tmpfs", volume, "tmpfs", 0, "") }
		if replaced.Load() > 0 {
			return serveByHand(ctx, pod, func() {}, mounts)
		}
		return serveByHand(ctx, pod, func() { <-exchange; replaced.Add(1) }, mounts,
			func() error { return unix.Unmount(volume, unix.MNT_DETACH) }, mounts)
	})
	n.run(t)
	v := n.volume(t, "served", func(pv *corev1.PersistentVolume) {
		pv.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
	})
	first, second := clientOf(v, 1), clientOf(v, 2)
	n.stage(t, v)
	n.publish(t, v, first)
	file := filepath.Join(n.Target(v, first), "file")
	if err := os.WriteFile(file, []byte("kept"), 0o600); err != nil {
		t.Error(err)
	}
	close(exchange)
	claim := &corev1.PersistentVolumeClaim{}
	if err := n.c.Admin.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: v.Name}, claim); err != nil {
		t.Fatal(err)
	}
	n.wantOneEvent(t, claim, "VolumeDetached", "/pav/ready was created too early")

	// The monitor works on the volume until shortly after its event: kubelet, too, repeats a call that is refused for that.
	eventually(t, "another client is refused because of the first", func(ctx context.Context) (bool, string) {
		err := n.Publish(ctx, v, second)
		if err == nil {
			t.Fatal("another client got the volume")
		}
		return status.Code(err) == codes.Aborted && strings.Contains(err.Error(), first.UID), err.Error()
	})
	if text, err := os.ReadFile(file); err != nil || string(text) != "kept" {
		t.Errorf("the client that has it reads %q, %v", text, err)
	}
	n.unpublish(t, v, first)
	// For kubelet the volume is staged, so it only calls NodePublishVolume.
	n.publish(t, v, second)
	n.unpublish(t, v, second)
	n.unstage(t, v)
	n.wantRuns(t, v, map[string]int{pavv1.WorkflowStaging: 2, pavv1.WorkflowUnstaging: 2})
	n.checkLeft(t)
}

// serveByHand is a staging pod that mounts before it creates /pav/ready, or after it, and runs until it is stopped.
func serveByHand(ctx context.Context, pod *kubelet.Pod, pause func(), before func() error, after ...func() error) int32 {
	if err := os.Mkdir(filepath.Join(pod.Pav, "volume"), 0o755); err != nil {
		return 1
	}
	if err := before(); err != nil {
		return 1
	}
	if err := os.WriteFile(filepath.Join(pod.Pav, "ready"), nil, 0o600); err != nil {
		return 1
	}
	pause()
	for _, act := range after {
		if err := act(); err != nil {
			return 1
		}
	}
	<-ctx.Done()
	return 143
}

func unmountByHand(volume string) int32 {
	if err := unix.Unmount(volume, 0); err != nil {
		return 1
	}
	return 0
}

// awaitAttached waits until the agent has attached something for clients.
func (n *node) awaitAttached(ctx context.Context, t *testing.T) {
	t.Helper()
	attached := func(mount string) bool { return strings.Contains(mount, "/client ") }
	for until := time.Now().Add(deadline); time.Now().Before(until); <-time.After(5 * time.Millisecond) {
		if mounts, err := n.Mounts(); err == nil && slices.ContainsFunc(mounts, attached) || ctx.Err() != nil {
			return
		}
	}
	t.Error("the agent has attached nothing")
}

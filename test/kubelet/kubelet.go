package kubelet

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Kubelet is a simulated node without containers.
type Kubelet struct {
	// Node is the node's name.
	Node string

	// Dir is the kubelet's directory, a file system of its own.
	Dir string

	// Journal records the runs of the node's pods.
	Journal *Journal

	admin  client.WithWatch
	script Script
	pause  time.Duration // between a failed call and its repetition

	moving atomic.Int32 // how many pods are starting or stopping

	mu        sync.Mutex
	workers   map[string]*worker // by UID of the pod
	endpoints map[string]string  // sockets by driver
}

// Script is what a pod does. It returns the exit code of the pod's container. The context ends when the pod is to be
// stopped: then the script must return soon.
type Script func(ctx context.Context, pod *Pod) int32

// Start creates a node, and runs its pods until the test ends. The client must have all permissions.
func Start(tb testing.TB, admin client.WithWatch, node string, script Script) *Kubelet {
	tb.Helper()
	dir, err := os.MkdirTemp("", "pav-") //nolint:usetesting // The paths of tb.TempDir are too long for sockets.
	if err != nil {
		tb.Fatal(err)
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "mode=755"); err != nil {
		tb.Fatal("mounting the node's file system:", err)
	}
	k := &Kubelet{
		Node: node, Dir: dir, Journal: &Journal{}, admin: admin, script: script,
		pause: 20 * time.Millisecond, workers: map[string]*worker{}, endpoints: map[string]string{},
	}
	for _, name := range []string{"plugins", "plugins_registry", "pods"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o750); err != nil {
			tb.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(tb.Context()))
	object := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}
	if err := admin.Create(ctx, object); err != nil {
		tb.Fatal(err)
	}
	var loops sync.WaitGroup
	loops.Go(func() { k.watchPods(ctx) })
	loops.Go(func() { k.watchStages(ctx) })
	tb.Cleanup(func() {
		cancel()
		loops.Wait()
		if err := client.IgnoreNotFound(admin.Delete(context.WithoutCancel(ctx), object)); err != nil {
			tb.Error(err)
		}
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			tb.Error("unmounting the node's file system:", err)
		}
		if err := os.Remove(dir); err != nil {
			tb.Error(err)
		}
	})
	return k
}

// Until repeats a call until it succeeds or ctx ends, as kubelet repeats failed calls. It returns the errors of all
// calls. The last one is nil, unless ctx had ended.
func (k *Kubelet) Until(ctx context.Context, call func(context.Context) error) []error {
	var errs []error
	for {
		err := call(ctx)
		errs = append(errs, err)
		if err == nil || !k.rest(ctx) {
			return errs
		}
	}
}

// rest waits for a moment. It returns false if ctx ends.
func (k *Kubelet) rest(ctx context.Context) bool {
	timer := time.NewTimer(k.pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

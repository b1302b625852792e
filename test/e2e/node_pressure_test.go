package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
)

// requesting lets a pod request more memory than it uses: it is not among the first that kubelet evicts.
var requesting = replacing("      command: [bash, -uc]\n", "      resources: {requests: {memory: 256Mi}}\n      command: [bash, -uc]\n")

// Kubelet evicts pods because the node has little memory. The client of a FUSE volume ends with its grace period, and its
// staging pod is never evicted, although only the client stays within its requests.
func TestNodePressure_StagingPodOutlivesItsClient(t *testing.T) {
	start(t)
	l := newStorage(t, "pressed", fuse)
	claim := l.volume(t, "data", fuse, corev1.ReadWriteOnce)
	l.run(t, edited(l.writingPod(), requesting))
	l.awaitWrites(t)
	staging := runningStagingPod(t, l.name)

	pressNode(t, "node2")
	eventually(t, "the client is evicted", func(ctx context.Context) error { return wantEvent(ctx, l.namespace, "writer", "Evicted") })
	l.awaitReport(t, "ended well\n")
	if wantEvent(t.Context(), staging.Namespace, staging.Name, "Evicted") == nil {
		t.Error("the staging pod was evicted")
	}
	l.end(t, "writer")
	l.awaitEffects(t, claim, "stage", "unstage")
	l.awaitNoStage(t)
}

// The reason why staging pods are critical to their node: with the highest priority that a class of users can have, they
// are evicted before clients that stay within their requests, and the clients lose their volume.
func TestNodePressure_StagingPodOfLowerPriorityIsEvictedFirst(t *testing.T) {
	start(t)
	class := &schedulingv1.PriorityClass{ObjectMeta: objectMeta("", "e2e-highest"), Value: 1_000_000_000, PreemptionPolicy: new(corev1.PreemptNever)}
	must(t, kube.Create(t.Context(), class))
	t.Cleanup(func() { remove(t, class) })
	l := newStorage(t, "lower", fuse, with("stage spec", "priorityClassName: "+class.Name))
	l.volume(t, "data", fuse, corev1.ReadWriteOnce)
	l.run(t, edited(l.writingPod(), requesting))
	l.awaitWrites(t)
	staging := runningStagingPod(t, l.name)

	pressNode(t, "node2")
	eventually(t, "the staging pod is evicted", func(ctx context.Context) error { return wantEvent(ctx, staging.Namespace, staging.Name, "Evicted") })
	l.awaitReport(t, "failed: round")
	l.end(t, "writer")
	l.awaitNoStage(t)
}

// awaitWrites waits until the writing pod has written to its volume.
func (l *ledger) awaitWrites(t *testing.T) {
	t.Helper()
	eventually(t, "the client writes", func(ctx context.Context) error {
		_, err := inPod(ctx, l.namespace, "writer", "test -s /data/file")
		return err
	})
}

// awaitReport waits until the report of the writing pod begins with a text.
func (l *ledger) awaitReport(t *testing.T, want string) {
	t.Helper()
	eventually(t, "the client reports "+want, func(context.Context) error {
		got, err := readFile(l.directory, "report")
		if err == nil && !strings.HasPrefix(got, want) {
			err = fmt.Errorf("it reports %q", got)
		}
		return err
	})
}

// pressNode makes a kubelet evict pods, as if the node had too little memory, until the test ends. Pods end within their grace
// period. The volumes of the test must be unstaged by then.
func pressNode(t *testing.T, node string) {
	t.Helper()
	t.Cleanup(func() {
		eventually(t, "the node has enough memory", func(ctx context.Context) error {
			found := &corev1.Node{ObjectMeta: objectMeta("", node)}
			if err := kube.Get(ctx, keyOf(found), found); err != nil {
				return err
			}
			for _, taint := range found.Spec.Taints {
				if taint.Key == corev1.TaintNodeMemoryPressure {
					return errors.New("it has the taint of memory pressure")
				}
			}
			return nil
		})
	})
	configureKubelet(t, node, map[string]any{
		"evictionSoft":                     map[string]string{"memory.available": "1Ti"},
		"evictionSoftGracePeriod":          map[string]string{"memory.available": "1s"},
		"evictionMaxPodGracePeriod":        60,
		"evictionPressureTransitionPeriod": "1s",
	})
}

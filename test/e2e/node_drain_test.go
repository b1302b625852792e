package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// writingScript writes to its volume forever, and for a while after it gets the signal to end. It says in
// the storage's directory, which is no volume, how that went.
const writingScript = `
fail() { echo "failed: $1" >> /storage/report; exit 1; }
write() { echo $1 > /data/file && sync /data/file && read -r got < /data/file && test "$got" = $1 || fail "round $1"; }
ending=
trap 'ending=yes' TERM
round=0 left=30
while test $left -gt 0; do
  round=$((round + 1))
  write $round
  test -z "$ending" || left=$((left - 1))
  sleep 0.1
done
echo ended well >> /storage/report
`

// writingPod returns a pod on node2 that runs the script, with /storage.
func (l *ledger) writingPod() string {
	return edited(clientPod("writer", "data", "node2"),
		replacing("      command: [sleep, infinity]\n", "      command: [bash, -uc]\n      args:\n        - |\n"+indent(writingScript, 10)+"\n"),
		replacing("terminationGracePeriodSeconds: 0", "terminationGracePeriodSeconds: 60"),
		replacing("      volumeMounts:\n", "      volumeMounts:\n        - {name: storage, mountPath: /storage}\n"),
		replacing("  volumes:\n", fmt.Sprintf("  volumes:\n    - {name: storage, hostPath: {path: %q}}\n", l.directory)))
}

// A node is drained while a client of a FUSE volume writes: the volume's daemon outlives the client,
// and then nothing of the volume is left on the node.
func TestNodeDrained_DaemonOutlivesItsClient(t *testing.T) {
	start(t)
	l := newStorage(t, "drained", fuse)
	claim := l.volume(t, "data", fuse, corev1.ReadWriteOnce)
	l.run(t, l.writingPod())
	l.awaitWrites(t)
	drain(t, "node2")
	if got, err := readFile(l.directory, "report"); err != nil || got != "ended well\n" {
		t.Errorf("the writer reports %q (%v)", got, err)
	}
	must(t, l.wantEffects(claim, "stage", "unstage"))
	l.awaitNoStage(t)
	eventually(t, "no workflow pod is left on node2", func(ctx context.Context) error {
		pods := &corev1.PodList{}
		if err := kube.List(ctx, pods, client.HasLabels{pavv1.WorkflowLabel}); err != nil {
			return err
		}
		for i := range pods.Items {
			if pods.Items[i].Spec.NodeName == "node2" {
				return fmt.Errorf("workflow pod %s is", pods.Items[i].Name)
			}
		}
		return nil
	})

	// A node without schedulable pods stages no volumes; the volume follows its client.
	l.run(t, clientPod("elsewhere", "data", ""))
	if got := l.sh(t, "elsewhere", "cat /data/file"); strings.TrimSpace(got) == "" {
		t.Errorf("what was written is %q", got)
	}
}

// drain drains a node, which takes pods again when the test ends.
func drain(t *testing.T, node string) {
	t.Helper()
	t.Cleanup(func() {
		ctx, cancel := cleanupContext(t)
		defer cancel()
		if _, err := kubectl(ctx, "", "uncordon", node); err != nil {
			t.Error(err)
		}
		waitAgents(t, "")
	})
	drained := time.Now()
	out, err := kubectl(t.Context(), "", "drain", node, "--ignore-daemonsets", "--delete-emptydir-data", "--force", "--timeout=4m")
	must(t, err)
	t.Logf("draining took %.1f s:\n%s", time.Since(drained).Seconds(), out)
}

// daemonSetOf returns a DaemonSet with the spec of a pod.
func daemonSetOf(name, pod string) string {
	_, spec, _ := strings.Cut(pod, "\nspec:")
	return fmt.Sprintf(`
apiVersion: apps/v1
kind: DaemonSet
metadata:
  name: %[1]s
spec:
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata:
      labels: {app: %[1]s}
    spec:%[2]s`, name, strings.ReplaceAll(spec, "\n", "\n    "))
}

// daemon waits for the only pod of a DaemonSet of the test, and returns its name.
func (l *ledger) daemon(t *testing.T, set string) string {
	t.Helper()
	pods := &corev1.PodList{}
	eventually(t, "DaemonSet "+set+" has a pod", func(ctx context.Context) error {
		err := kube.List(ctx, pods, client.InNamespace(l.namespace), client.MatchingLabels{"app": set})
		if err == nil && len(pods.Items) != 1 {
			return fmt.Errorf("it has %d", len(pods.Items))
		}
		return err
	})
	return pods.Items[0].Name
}

// A node is drained where a DaemonSet uses a FUSE volume. The drain ends, with the volume's daemon; the
// DaemonSet's pod stays, as kubectl leaves it, and gets the volume again, whose daemon is protected when the node
// takes pods again.
func TestNodeDrained_WhereADaemonSetUsesAVolume(t *testing.T) {
	start(t)
	l := newStorage(t, "drained-daemons", fuse)
	l.volume(t, "data", fuse, corev1.ReadWriteOnce)
	// The storage's provisioner goes after its last client.
	t.Cleanup(func() {
		ctx, cancel := cleanupContext(t)
		defer cancel()
		if _, err := kubectl(ctx, "", "delete", "-n", l.namespace, "daemonset", "client", "--ignore-not-found", "--cascade=foreground"); err != nil {
			t.Error(err)
		}
	})
	_, err := kubectl(t.Context(), daemonSetOf("client", edited(clientPod("client", "data", "node2"), following)), "create", "-n", l.namespace, "-f", "-")
	must(t, err)
	daemon := l.daemon(t, "client")
	l.awaitRunning(t, daemon)
	l.run(t, clientPod("ordinary", "data", "node2"))
	l.sh(t, daemon, "echo kept > /data/file && sync /data/file")
	former := runningStagingPod(t, l.name)
	before := l.containers(t, daemon)

	drain(t, "node2")
	if err := l.runs(t.Context(), "ordinary"); !apierrors.IsNotFound(err) {
		t.Errorf("the ordinary pod is not gone: %v", err)
	}
	if after := l.containers(t, daemon); !cmp.Equal(before, after) {
		t.Errorf("the pod of the DaemonSet was %v, and is %v", before, after)
	}
	eventually(t, "the volume is staged again", func(ctx context.Context) error {
		got, err := inPod(ctx, l.namespace, daemon, "cat /data/file")
		if err == nil && got != "kept\n" {
			return fmt.Errorf("the file is %q", got)
		}
		return err
	})
	if now := runningStagingPod(t, l.name); now.UID == former.UID {
		t.Error("the staging pod was not evicted")
	}
	_, err = kubectl(t.Context(), "", "uncordon", "node2")
	must(t, err)
	eventually(t, "the staging pod is protected", func(ctx context.Context) error {
		pods, err := stagingPods(ctx, l.name)
		if err != nil || len(pods) != 1 || pods[0].Labels[pavv1.EvictableLabel] != "" {
			return fmt.Errorf("the staging pods are %+v (%w)", pods, err)
		}
		return nil
	})
}

// A staging pod cannot be evicted while its volume has clients; a client can be.
func TestStagingPodEvicted_IsRefusedWhileTheVolumeIsUsed(t *testing.T) {
	t.Parallel()
	l := newStorage(t, "evicted", fuse)
	l.volume(t, "data", fuse, corev1.ReadWriteOnce)
	l.run(t, clientPod("client", "data", ""))
	pod := runningStagingPod(t, l.name) // The API server evicts one that does not run yet, whatever the budget says.
	evict := fmt.Sprintf(`{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":%q,"namespace":%q}}`, pod.Name, pod.Namespace)
	eventually(t, "the eviction is refused for the sake of the budget", func(ctx context.Context) error {
		_, err := kubectl(ctx, evict, "create", "--raw", fmt.Sprintf("/api/v1/namespaces/%s/pods/%s/eviction", pod.Namespace, pod.Name), "-f", "-")
		if err == nil || !strings.Contains(err.Error(), "disruption budget") {
			return fmt.Errorf("the answer is %w", err)
		}
		return nil
	})
	l.sh(t, "client", "touch /data/file")
}

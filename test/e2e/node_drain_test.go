package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// writingScript writes to its volume for ever, and for a while after it was told to end. It says in
// the storage's folder, which is no volume, how that went.
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

// writingPod returns a pod that runs the script, with /storage.
func (l *ledger) writingPod(name, node string) string {
	return edited(clientPod(name, "data", node),
		replacing("      command: [sleep, infinity]\n", "      command: [bash, -uc]\n      args:\n        - |\n"+indent(writingScript, 10)+"\n"),
		replacing("terminationGracePeriodSeconds: 0", "terminationGracePeriodSeconds: 60"),
		replacing("      volumeMounts:\n", "      volumeMounts:\n        - {name: storage, mountPath: /storage}\n"),
		replacing("  volumes:\n", fmt.Sprintf("  volumes:\n    - {name: storage, hostPath: {path: %q}}\n", l.folder)))
}

// A node is drained while a client of a FUSE volume writes: the volume's daemon outlives the client,
// and then nothing of the volume is left on the node.
func TestNodeDrained_DaemonOutlivesItsClient(t *testing.T) {
	start(t)
	l := newStorage(t, "drained", fuse)
	claim := l.volume(t, "data", fuse, corev1.ReadWriteOnce)
	l.run(t, l.writingPod("writer", "node2"))
	eventually(t, "it writes", func(ctx context.Context) error {
		_, err := inPod(ctx, l.namespace, "writer", "test -s /data/file")
		return err
	})
	t.Cleanup(func() {
		ctx, cancel := cleanupContext(t)
		defer cancel()
		if _, err := kubectl(ctx, "", "uncordon", "node2"); err != nil {
			t.Error(err)
		}
		waitAgents(t, "")
	})
	drained := time.Now()
	out, err := kubectl(t.Context(), "", "drain", "node2", "--ignore-daemonsets", "--delete-emptydir-data", "--force", "--timeout=4m")
	must(t, err)
	t.Logf("draining took %.1f s:\n%s", time.Since(drained).Seconds(), out)
	if got, err := readFile(l.folder, "report"); err != nil || got != "ended well\n" {
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

	// A node that takes no pods stages none; the volume goes where its client goes.
	l.run(t, clientPod("elsewhere", "data", ""))
	if got := l.sh(t, "elsewhere", "cat /data/file"); strings.TrimSpace(got) == "" {
		t.Errorf("what was written is %q", got)
	}
}

// A staging pod cannot be evicted while its volume has clients, and a client's eviction is no problem.
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

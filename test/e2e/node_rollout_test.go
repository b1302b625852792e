package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/test/seed"
)

// often returns how often something is done, which is more where there is time.
func often(few, many int) int {
	if long() {
		return many
	}
	return few
}

// fioScript writes to a volume at random and verifies what it wrote, repeatedly, until it is told
// to stop. It ends with an error at the first that fails, or that is not as it was written.
const fioScript = `
rounds=0
while ! test -e /storage/stop; do
  fio --name=verified --filename=%s --size=1M --rw=randwrite --bs=4k --fsync=16 --verify=crc32c --verify_fatal=1 --output=/tmp/report ||
    { cat /tmp/report; exit 1; }
  rounds=$((rounds + 1))
  echo $rounds > /storage/rounds-$HOSTNAME
done
`

// verifyingPod returns a pod that runs the script, with /storage.
func (l *ledger) verifyingPod(m medium, node string) string {
	pod, file := clientPod(l.name, "data", node), "/data/file"
	if m.mode() == corev1.PersistentVolumeBlock {
		pod, file = blockPod(l.name, node), "/dev/data"
	}
	return edited(pod,
		replacing("busybox:1.37.0", toolsImage),
		replacing("  terminationGracePeriodSeconds: 0\n", "  restartPolicy: Never\n  terminationGracePeriodSeconds: 0\n"),
		replacing("      command: [sleep, infinity]\n", "      command: [bash, -uc]\n      args:\n        - |\n"+indent(fmt.Sprintf(fioScript, file), 10)+
			"\n      volumeMounts:\n        - {name: storage, mountPath: /storage}\n"),
		replacing("/storage}\n      volumeMounts:\n", "/storage}\n"),
		replacing("  volumes:\n", fmt.Sprintf("  volumes:\n    - {name: storage, hostPath: {path: %q}}\n", l.directory)))
}

// verified returns how many rounds the storage's verifying pod has done.
func (l *ledger) verified(ctx context.Context) (int, error) {
	if err := l.runs(ctx, l.name); err != nil {
		log, _ := kubectl(ctx, "", "logs", "-n", l.namespace, l.name)
		return 0, fmt.Errorf("%w: %s", err, log)
	}
	text, err := readFile(l.directory, "rounds-"+l.name)
	if err != nil {
		return 0, err
	}
	rounds := 0
	_, err = fmt.Sscan(text, &rounds)
	return rounds, err
}

// awaitRounds waits until the verifying pod has done more rounds.
func (l *ledger) awaitRounds(t *testing.T, more int) {
	t.Helper()
	before := -1
	eventually(t, fmt.Sprintf("%s does %d more rounds", l.name, more), func(ctx context.Context) error {
		rounds, err := l.verified(ctx)
		if err != nil {
			return err
		}
		if before < 0 {
			before = rounds
		}
		if rounds < before+more {
			return fmt.Errorf("%d rounds, and %d at first", rounds, before)
		}
		return nil
	})
}

// mountsOn returns the mounts that PaV made on a node, with their numbers, which no two mounts share.
func mountsOn(ctx context.Context, node string) ([]string, error) {
	text, err := onNode(ctx, node, "cat", "/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	var found []string
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if point := fields[4]; strings.HasPrefix(point, pavDir+"/stages") || strings.Contains(point, "/pvc-") {
			found = append(found, fields[0]+" "+point)
		}
	}
	slices.Sort(found)
	return found, nil
}

// The node agents are replaced while clients of all media write and verify: no error, no new mount, no new staging pod.
func TestNodeAgentsRolledOut_WritesAreVerified(t *testing.T) {
	start(t)
	storages := map[string]*ledger{}
	for _, m := range []medium{directories, fuse, ext4, devices} {
		l := newStorage(t, "rollout-"+m.name, m)
		l.volume(t, "data", m, corev1.ReadWriteOnce)
		l.run(t, l.verifyingPod(m, "node2"))
		storages[m.name] = l
	}
	for _, l := range storages {
		l.awaitRounds(t, 1)
	}
	staged := stagedPods(t, storages)
	before, err := mountsOn(t.Context(), "node2")
	must(t, err)
	for i := range often(2, 10) {
		_, err := kubectl(t.Context(), "", "-n", "pav", "rollout", "restart", "daemonset/node-agent")
		must(t, err)
		_, err = kubectl(t.Context(), "", "-n", "pav", "rollout", "status", "daemonset/node-agent", "--timeout=10m")
		must(t, err)
		waitAgents(t, "")
		for _, l := range storages {
			l.awaitRounds(t, 2)
		}
		after, err := mountsOn(t.Context(), "node2")
		must(t, err)
		if diff := cmp.Diff(before, after); diff != "" {
			t.Fatalf("rollout %d changed mounts (-before +after):\n%s", i+1, diff)
		}
	}
	if diff := cmp.Diff(staged, stagedPods(t, storages)); diff != "" {
		t.Errorf("staging pods were disturbed (-before +after):\n%s", diff)
	}
	for _, l := range storages {
		must(t, os.WriteFile(filepath.Join(l.directory, "stop"), nil, 0o644)) //nolint:gosec // A pod reads it.
	}
	for name, l := range storages {
		eventually(t, "the client of "+name+" succeeds", func(ctx context.Context) error {
			pod := &corev1.Pod{}
			if err := kube.Get(ctx, client.ObjectKey{Namespace: l.namespace, Name: l.name}, pod); err != nil {
				return err
			}
			if pod.Status.Phase != corev1.PodSucceeded {
				return fmt.Errorf("it is %s", pod.Status.Phase)
			}
			return nil
		})
	}
}

// stagedPods returns the staging pods of the storages, with their restarts.
func stagedPods(t *testing.T, storages map[string]*ledger) map[string]int32 {
	t.Helper()
	found := map[string]int32{}
	for _, l := range storages {
		pods, err := stagingPods(t.Context(), l.name)
		must(t, err)
		for i := range pods {
			found[pods[i].Name+" "+string(pods[i].UID)] = restarts(&pods[i])
		}
	}
	return found
}

// Ten clients share a volume on a node, and are replaced one by one at random: the volume is staged once, and unstaged once
// after the last client.
func TestTenClients_ComeAndGo(t *testing.T) {
	t.Parallel()
	random := seed.Random(t)
	l := newStorage(t, "ten-clients", fuse)
	claim := l.volume(t, "data", fuse, corev1.ReadWriteMany)
	var clients []string
	for i := range 10 {
		clients = append(clients, fmt.Sprintf("client-%d", i))
		l.pending(t, clientPod(clients[i], "data", "node1"))
	}
	l.awaitRunning(t, clients[0])
	l.sh(t, clients[0], "echo hello > /data/file")
	for i := range often(8, 200) {
		// The first client stays, as otherwise all might be starting and the volume unused.
		chosen := 1 + random.IntN(len(clients)-1)
		pod := &corev1.Pod{ObjectMeta: objectMeta(l.namespace, clients[chosen])}
		must(t, kube.Delete(t.Context(), pod, client.GracePeriodSeconds(int64(random.IntN(2)))))
		clients[chosen] = fmt.Sprintf("client-%d", 10+i)
		l.pending(t, clientPod(clients[chosen], "data", "node1"))
		waited := clients[random.IntN(len(clients))]
		l.awaitRunning(t, waited)
		if got := l.sh(t, waited, "cat /data/file"); got != "hello\n" {
			t.Fatalf("after %d changes, pod %s reads %q", i+1, waited, got)
		}
	}
	for _, name := range clients {
		l.awaitRunning(t, name)
		l.sh(t, name, "grep -q hello /data/file")
	}
	must(t, l.wantEffects(claim, "stage"))
	pod, err := onlyStagingPod(t.Context(), l.name)
	must(t, err)
	if pod.Labels[pavv1.WorkflowLabel] != pavv1.WorkflowStaging || restarts(pod) != 0 {
		t.Errorf("the staging pod %s has restarted %d times", pod.Name, restarts(pod))
	}
	for _, name := range clients {
		must(t, kube.Delete(t.Context(), &corev1.Pod{ObjectMeta: objectMeta(l.namespace, name)}))
	}
	l.end(t, clients...)
	l.awaitEffects(t, claim, "stage", "unstage")
	l.awaitNoStage(t)
}

package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// onControlPlane does something to components of the first node.
func onControlPlane(t *testing.T, operation string, components ...string) {
	t.Helper()
	for _, component := range components {
		onCluster(t, "node", component, operation, "node1")
	}
}

// apiServerBack waits until the API server answers.
func apiServerBack(t *testing.T) {
	t.Helper()
	eventually(t, "the API server is back", func(ctx context.Context) error { return kube.List(ctx, &corev1.NodeList{}) })
}

// backUpEtcd copies the files of etcd, and returns a function that restores them, and restarts whatever watches Kubernetes' API.
func backUpEtcd(t *testing.T) (restore func()) {
	t.Helper()
	t.Cleanup(func() { onControlPlane(t, "start", "etcd", "kube-apiserver") }) // In case the test ends between.
	files := filepath.Join(filepath.Dir(os.Getenv("KUBECONFIG")), "nodes", "node1", "disk", "etcd")
	backup := filepath.Join(t.TempDir(), "etcd")
	replace := func(to, from string) {
		must(t, os.RemoveAll(to))
		out, err := exec.CommandContext(t.Context(), "cp", "-a", from, to).CombinedOutput()
		if err != nil {
			t.Fatalf("copying etcd's files: %v: %s", err, out)
		}
	}
	onControlPlane(t, "stop", "kube-apiserver", "etcd")
	replace(backup, files)
	onControlPlane(t, "start", "etcd", "kube-apiserver")
	apiServerBack(t)
	return func() {
		onControlPlane(t, "stop", "kube-apiserver", "etcd")
		replace(files, backup)
		onControlPlane(t, "start", "etcd", "kube-apiserver")
		apiServerBack(t)
		onControlPlane(t, "restart", "kube-controller-manager", "kube-scheduler", "snapshot-controller")
		for _, node := range nodes {
			onCluster(t, "node", "kubelet", "restart", node)
			onCluster(t, "node", "kube-proxy", "restart", node)
		}
	}
}

// A backup of etcd is restored, as docs/operating.md has it. A volume in use stays in use. One that was deleted since is
// known again, cannot be staged, and can be deleted again. One that was made since is not known any more: it is unmounted, as its pod is
// not known either, and its data stays.
func TestRestored_EtcdOlderThanTheStorage(t *testing.T) {
	start(t)
	l := newLedger(t, "restored")
	used, deleted := l.volume(t, "used", directories, corev1.ReadWriteOnce), l.volume(t, "deleted", directories, corev1.ReadWriteOnce)
	l.run(t, clientPod("user", "used", "node2"))
	l.sh(t, "user", "echo before > /data/file")
	user := &corev1.Pod{}
	must(t, kube.Get(t.Context(), client.ObjectKey{Namespace: l.namespace, Name: "user"}, user))
	restore := backUpEtcd(t)

	waitAgents(t, "")
	l.sh(t, "user", "echo since >> /data/file")
	remove(t, deleted.DeepCopy())
	l.awaitEffects(t, deleted, "create", "delete")
	later := l.volume(t, "later", directories, corev1.ReadWriteOnce)
	t.Cleanup(func() { l.forget(t, later) })
	l.run(t, clientPod("later", "later", "node2"))
	l.sh(t, "later", "echo later > /data/file")
	_, err := kubectl(t.Context(), "", "-n", "pav", "scale", "deployment/controller-agent", "--replicas=0")
	must(t, err)
	eventually(t, "no controller agent runs", func(ctx context.Context) error {
		pods, err := agents(ctx)
		for i := range pods {
			if component(&pods[i]) == controllerAgent {
				return fmt.Errorf("%s exists", pods[i].Name)
			}
		}
		return err
	})

	restore()
	eventually(t, "node2 is ready again", nodeReady)
	waitAgents(t, "")
	eventually(t, "node2 has only the volume that is known", func(ctx context.Context) error {
		mounts, err := onNode(ctx, "node2", "cat", "/proc/self/mountinfo")
		if err == nil && strings.Contains(mounts, volumeName(later)) {
			err = fmt.Errorf("the volume that was made later is mounted:\n%s", mounts)
		}
		return err
	})
	if text, err := readFile(l.directory, "volumes", volumeName(later), "file"); err != nil || text != "later\n" {
		t.Errorf("the volume that was made later has %q (%v)", text, err)
	}
	must(t, l.wantEffects(later, "create"))

	// The volume in use.
	now := &corev1.Pod{}
	must(t, kube.Get(t.Context(), keyOf(user), now))
	if now.UID != user.UID || now.Status.ContainerStatuses[0].ContainerID != user.Status.ContainerStatuses[0].ContainerID {
		t.Errorf("the pod that uses a volume was replaced: it was %+v, and is %+v", user.Status, now.Status)
	}
	if text := l.sh(t, "user", "echo after >> /data/file; cat /data/file"); text != "before\nsince\nafter\n" {
		t.Errorf("the volume in use has %q", text)
	}
	must(t, l.wantEffects(used, "create"))

	// The one that was deleted.
	l.pending(t, clientPod("vain", "deleted", "node2"))
	eventually(t, "an event of the pod says that its volume cannot be staged", func(ctx context.Context) error {
		return wantEvent(ctx, l.namespace, "vain", "FailedMount", "staging failed")
	})
	l.end(t, "vain")
	remove(t, deleted)
	l.awaitEffects(t, deleted, "create", "delete", "delete")

	// A claim of the name of the one that is not known any more.
	again := l.volume(t, "later", directories, corev1.ReadWriteOnce)
	l.run(t, clientPod("later", "later", "node2"))
	if text := l.sh(t, "later", "ls /data"); text != "" {
		t.Errorf("the new volume has the files %q", text)
	}
	must(t, l.wantEffects(again, "create"))
	l.end(t, "user", "later")
	l.awaitNoStage(t)
}

// forget removes the storage of a volume that PaV does not know any more, as an administrator would.
func (l *ledger) forget(t *testing.T, claim *corev1.PersistentVolumeClaim) {
	t.Helper()
	volume := volumeName(claim)
	if err := kube.Get(t.Context(), client.ObjectKey{Name: volume}, &pavv1.PavVolume{}); err == nil {
		return // It goes with its claim.
	}
	must(t, os.RemoveAll(filepath.Join(l.directory, "volumes", volume)))
	journal, err := os.OpenFile(filepath.Join(l.directory, "journal"), os.O_APPEND|os.O_WRONLY, 0)
	must(t, err)
	_, err = fmt.Fprintln(journal, "delete", volume, "by-hand")
	must(t, err)
	must(t, journal.Close())
}

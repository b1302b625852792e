package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// marking returns a provisioner like another one, whose pods also write a line each, "stage" or
// "unstage", to a file of its name in a directory of the node's disk.
func marking(name, stage, directory string) string {
	mark := func(word string) string {
		return "echo " + word + " >> /marks/" + name + "; sync /marks/" + name + "; "
	}
	yaml := provisioner(name, mark("stage")+stage, mark("unstage")+unstageBoth)
	yaml = strings.ReplaceAll(yaml, "            securityContext:", "            volumeMounts: [{name: marks, mountPath: /marks}]\n            securityContext:")
	return strings.ReplaceAll(yaml, "        containers:", "        volumes: [{name: marks, hostPath: {path: "+directory+", type: DirectoryOrCreate}}]\n        containers:")
}

// wantMarks objects unless the pods of a marking provisioner have run in this order.
func wantMarks(ctx context.Context, node, directory, provisioner string, want ...string) error {
	got, err := onNode(ctx, node, "cat", directory+"/"+provisioner)
	if err != nil {
		return err
	}
	if diff := cmp.Diff(want, strings.Fields(got)); diff != "" {
		return fmt.Errorf("the pods of %s that have run (-want +got):\n%s", provisioner, diff)
	}
	return nil
}

// onlyStagingPod returns the staging pod of a provisioner, of which there is to be but one.
func onlyStagingPod(ctx context.Context, provisioner string) (*corev1.Pod, error) {
	pods, err := stagingPods(ctx, provisioner)
	if err == nil && len(pods) != 1 {
		err = fmt.Errorf("there are %d staging pods of %s, want one", len(pods), provisioner)
	}
	if err != nil {
		return nil, err
	}
	return &pods[0], nil
}

// A reboot removes all mounts, but no other effects of staging: each volume is unstaged once, and then staged again.
func TestNodeRebooted_VolumesAreStagedAgain(t *testing.T) {
	namespace := start(t)
	directory := "/srv/marks-" + namespace
	t.Cleanup(func() { removeMarks(t, "node2", directory) })
	apply(t, namespace, documents(
		marking(completing, stageCompleting, directory), storageClass(completing), claim(completing, completing, "ReadWriteOnce"),
		marking(running, stageRunning, directory), storageClass(running), claim(running, running, "ReadWriteMany"),
		localVolumes(t, "ReadWriteOnce")))
	apply(t, namespace, busyPod("client", "node2", "Always", inUse...))
	waitRunning(t, namespace, "client")
	before := &corev1.Pod{ObjectMeta: objectMeta(namespace, "client")}
	must(t, kube.Get(t.Context(), client.ObjectKeyFromObject(before), before))
	staging := map[string]types.UID{}
	wantDone := func(ctx context.Context, provisioner string, want ...string) error {
		if provisioner == completing || provisioner == running {
			return wantMarks(ctx, "node2", directory, provisioner, want...)
		}
		return wantLocalEffects(ctx, "node2", provisioner, want...)
	}
	for _, provisioner := range inUse {
		pod, err := onlyStagingPod(t.Context(), provisioner)
		must(t, err)
		staging[provisioner] = pod.UID
		must(t, wantDone(t.Context(), provisioner, "stage"))
	}

	t.Cleanup(func() { onCluster(t, "node", "start", "node2") }) // In case the reboot is left half done.
	onCluster(t, "node", "reboot", "node2")
	eventually(t, "the client runs again", func(ctx context.Context) error { return runsAgain(ctx, before) })
	u := &usage{namespace: namespace, clients: map[string]corev1.Pod{"node2": *before}}
	u.checkProgress(t)
	for _, provisioner := range inUse {
		must(t, wantDone(t.Context(), provisioner, "stage", "unstage", "stage"))
		eventually(t, "only the new staging pod is left", func(ctx context.Context) error {
			pod, err := onlyStagingPod(ctx, provisioner)
			if err == nil && pod.UID == staging[provisioner] {
				err = fmt.Errorf("the old staging pod of %s still exists", provisioner)
			}
			return err
		})
	}

	remove(t, before)
	for _, provisioner := range inUse {
		eventually(t, "the volume is unstaged", func(ctx context.Context) error {
			return wantDone(ctx, provisioner, "stage", "unstage", "stage", "unstage")
		})
	}
	waitAgents(t, "")
}

// A node that is a container, as those of kind, k3d and minikube are, is started again: its mounts and processes
// are gone, but its boot ID is as before. Volumes are staged again as after a reboot.
func TestNodeRestartedInTheSameBoot_VolumesAreStagedAgain(t *testing.T) {
	namespace := start(t)
	directory := "/srv/marks-" + namespace
	t.Cleanup(func() { removeMarks(t, "node2", directory) })
	apply(t, namespace, documents(
		marking(completing, stageCompleting, directory), storageClass(completing), claim(completing, completing, "ReadWriteOnce"),
		marking(running, stageRunning, directory), storageClass(running), claim(running, running, "ReadWriteMany")))
	apply(t, namespace, busyPod("client", "node2", "Always", completing, running))
	waitRunning(t, namespace, "client")
	before := &corev1.Pod{ObjectMeta: objectMeta(namespace, "client")}
	must(t, kube.Get(t.Context(), client.ObjectKeyFromObject(before), before))

	t.Cleanup(func() { onCluster(t, "node", "start", "node2") }) // In case the restart is left half done.
	boot, err := bootIDOf(t.Context(), "node2")
	must(t, err)
	onCluster(t, "node", "restart", "node2")
	eventually(t, "the client runs again", func(ctx context.Context) error { return runsAgain(ctx, before) })
	if now, err := bootIDOf(t.Context(), "node2"); err != nil || now != boot {
		t.Fatalf("the boot ID is %q, %v; want %q, or this test shows nothing", now, err, boot)
	}
	for _, provisioner := range []string{completing, running} {
		must(t, wantMarks(t.Context(), "node2", directory, provisioner, "stage", "unstage", "stage"))
	}
	u := &usage{namespace: namespace, clients: map[string]corev1.Pod{"node2": *before}}
	u.checkProgress(t)
	remove(t, before)
	for _, provisioner := range []string{completing, running} {
		eventually(t, "the volume is unstaged", func(ctx context.Context) error {
			return wantMarks(ctx, "node2", directory, provisioner, "stage", "unstage", "stage", "unstage")
		})
	}
	waitAgents(t, "")
}

// bootIDOf returns what a node's kernel says of its boot.
func bootIDOf(ctx context.Context, node string) (string, error) {
	return onNode(ctx, node, "cat", "/proc/sys/kernel/random/boot_id")
}

// runsAgain objects until a pod runs in another container than before.
func runsAgain(ctx context.Context, before *corev1.Pod) error {
	pod := &corev1.Pod{}
	if err := kube.Get(ctx, client.ObjectKeyFromObject(before), pod); err != nil {
		return err
	}
	status := pod.Status.ContainerStatuses
	if pod.UID != before.UID || len(status) != 1 {
		return fmt.Errorf("it is another pod, or has %d containers", len(status))
	}
	if status[0].State.Running == nil || status[0].ContainerID == before.Status.ContainerStatuses[0].ContainerID {
		return fmt.Errorf("its container is %+v", status[0].State)
	}
	return nil
}

func removeMarks(t *testing.T, node, directory string) {
	t.Helper()
	ctx, cancel := cleanupContext(t)
	defer cancel()
	if _, err := onNode(ctx, node, "rm", "-rf", "--one-file-system", directory); err != nil {
		t.Error(err)
	}
}

// A node is lost, apparently forever: its volumes are released. Then it comes back.
func TestNodeLost_VolumeCanBeDeleted_AndNodeReturns(t *testing.T) {
	namespace := start(t)
	apply(t, namespace, documents(
		provisioner(completing, stageCompleting, unstageBoth), storageClass(completing), claim(completing, completing, "ReadWriteOnce"),
		provisioner(running, stageRunning, unstageBoth), storageClass(running), claim(running, running, "ReadWriteMany"),
		localVolumes(t, "ReadWriteOnce")))
	apply(t, namespace, busyPod("lost", "node2", "Never", inUse...))
	waitRunning(t, namespace, "lost")
	lost := &corev1.Pod{ObjectMeta: objectMeta(namespace, "lost")}
	must(t, kube.Get(t.Context(), client.ObjectKeyFromObject(lost), lost))

	t.Cleanup(func() { onCluster(t, "node", "start", "node2") })
	onCluster(t, "node", "stop", "node2")
	must(t, kube.Delete(t.Context(), &corev1.Node{ObjectMeta: objectMeta("", "node2")}))
	eventually(t, "the PavStages are let go", func(ctx context.Context) error {
		stages := &pavv1.PavStageList{}
		if err := kube.List(ctx, stages); err != nil {
			return err
		}
		if len(stages.Items) > 0 {
			return fmt.Errorf("there are %d PavStages", len(stages.Items))
		}
		return nil
	})
	// Kubernetes deletes the pods of a node that does not exist only after a minute.
	must(t, client.IgnoreNotFound(kube.Delete(t.Context(), lost, client.GracePeriodSeconds(0))))
	for _, name := range inUse {
		remove(t, &corev1.PersistentVolumeClaim{ObjectMeta: objectMeta(namespace, name)})
		eventually(t, "the volume is deleted", func(ctx context.Context) error { return wantNoneOf(ctx, name) })
	}

	onCluster(t, "node", "start", "node2")
	eventually(t, "node2 is ready again", nodeReady)
	waitAgents(t, "")
	eventually(t, "nothing of the lost pod is left on its node", func(ctx context.Context) error {
		pods, err := onNode(ctx, "node2", "ls", kubeletDir+"/pods")
		if err == nil && strings.Contains(pods, string(lost.UID)) {
			err = fmt.Errorf("the directory of pod %s is left", lost.UID)
		}
		return err
	})

	// It serves volumes as before.
	apply(t, namespace, documents(claim("again", completing, "ReadWriteOnce"), busyPod("found", "node2", "Never", "again")))
	waitRunning(t, namespace, "found")
}

func nodeReady(ctx context.Context) error {
	node := &corev1.Node{}
	if err := kube.Get(ctx, client.ObjectKey{Name: "node2"}, node); err != nil {
		return err
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
			return nil
		}
	}
	return fmt.Errorf("node2 is not ready: %+v", node.Status.Conditions)
}

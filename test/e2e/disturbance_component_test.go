package e2e

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// onCluster runs the program that runs the cluster. It also serves to fix the cluster after a test.
func onCluster(t *testing.T, args ...string) {
	t.Helper()
	ctx, cancel := cleanupContext(t)
	defer cancel()
	if out, err := exec.CommandContext(ctx, cluster, args...).CombinedOutput(); err != nil {
		t.Fatalf("cluster %s: %v: %s", strings.Join(args, " "), err, out)
	}
}

// stopComponent stops a component of a node until the returned function is called, or the test ends.
func stopComponent(t *testing.T, component, node string) func() {
	t.Helper()
	onCluster(t, "node", component, "stop", node)
	begin := func() { onCluster(t, "node", component, "start", node) }
	t.Cleanup(begin)
	return begin
}

// A kubelet is stopped, then killed, then stopped again while a pod is deleted: it continues its work each time.
func TestKubeletStoppedAndKilled_ClientsContinue(t *testing.T) {
	namespace := start(t)
	volumes := useVolumes(t, namespace, "node2")
	apply(t, namespace, documents(provisioner(churning, stageCompleting, "umount /pav/volume"), storageClass(churning), claim("own", churning, "ReadWriteOnce")))

	begin := stopComponent(t, "kubelet", "node2")
	volumes.checkProgress(t)
	apply(t, namespace, busyPod("second", "node2", "Never", running, "own"))
	volumes.checkProgress(t)
	begin()
	waitRunning(t, namespace, "second")
	volumes.checkUndisturbed(t)

	apply(t, namespace, busyPod("third", "node2", "Never", completing))
	onCluster(t, "node", "kubelet", "kill", "node2") // It starts again by itself.
	waitRunning(t, namespace, "third")
	volumes.checkUndisturbed(t)

	begin = stopComponent(t, "kubelet", "node2")
	second := &corev1.Pod{ObjectMeta: objectMeta(namespace, "second")}
	must(t, kube.Delete(t.Context(), second))
	volumes.checkProgress(t)
	begin()
	remove(t, second)
	remove(t, &corev1.PersistentVolumeClaim{ObjectMeta: objectMeta(namespace, "own")})
	eventually(t, "the volume of the deleted pod is gone", func(ctx context.Context) error {
		return wantNoneOf(ctx, churning)
	})
	volumes.checkUndisturbed(t)
	waitRunning(t, namespace, "third")
}

// The API server is unavailable for ten seconds. Meanwhile a pod starts and waits for its volume, and another one ends. The
// agents must not disturb pods that use a volume.
func TestAPIServerDown_ClientsContinue(t *testing.T) {
	namespace := start(t)
	volumes := useVolumes(t, namespace, nodes...)
	apply(t, namespace, documents(provisioner(churning, stageCompleting, "umount /pav/volume"), storageClass(churning),
		claim("ending", churning, "ReadWriteOnce"), claim("beginning", churning, "ReadWriteOnce")))
	apply(t, namespace, busyPod("ending", "node2", "Never", completing, "ending"))
	waitRunning(t, namespace, "ending")

	apply(t, namespace, busyPod("beginning", "node1", "Never", running, "beginning"))
	ending := &corev1.Pod{ObjectMeta: objectMeta(namespace, "ending")}
	must(t, kube.Get(t.Context(), client.ObjectKeyFromObject(ending), ending))
	must(t, kube.Delete(t.Context(), ending))
	begin := stopComponent(t, "kube-apiserver", "node1")
	stopped := time.Now()
	volumes.checkProgress(t)
	pause(t.Context(), time.Until(stopped.Add(10*time.Second)))
	volumes.checkProgress(t)
	begin()
	t.Logf("the API server was away for %.0f s", time.Since(stopped).Seconds())

	apiServerBack(t)
	remove(t, ending)
	waitRunning(t, namespace, "beginning")
	remove(t, &corev1.PersistentVolumeClaim{ObjectMeta: objectMeta(namespace, "ending")})
	waitAgents(t, "")
	volumes.checkUndisturbed(t)
}

// wantNoneOf objects while a volume of the provisioner exists.
func wantNoneOf(ctx context.Context, provisioner string) error {
	volumes := &corev1.PersistentVolumeList{}
	if err := kube.List(ctx, volumes); err != nil {
		return err
	}
	for i := range volumes.Items {
		if source := volumes.Items[i].Spec.CSI; source != nil && source.Driver == provisioner {
			return fmt.Errorf("persistent volume %s still exists", volumes.Items[i].Name)
		}
	}
	return nil
}

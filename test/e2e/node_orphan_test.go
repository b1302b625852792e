package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// withAgentArguments runs the node agents with additional arguments until the test ends.
func withAgentArguments(t *testing.T, arguments string) {
	t.Helper()
	const path = "/spec/template/spec/containers/0/args"
	before, err := kubectl(t.Context(), "", "-n", "pav", "get", "daemonset", "node-agent", "-o", "jsonpath={.spec.template.spec.containers[0].args}")
	must(t, err)
	set := func(ctx context.Context, value string) {
		if _, err := kubectl(ctx, "", "-n", "pav", "patch", "daemonset", "node-agent", "--type=json", "-p",
			fmt.Sprintf(`[{"op":"replace","path":%q,"value":%s}]`, path, value)); err != nil {
			t.Error(err)
		}
		if _, err := kubectl(ctx, "", "-n", "pav", "rollout", "status", "daemonset/node-agent", "--timeout=10m"); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(func() {
		ctx, cancel := cleanupContext(t)
		defer cancel()
		set(ctx, before)
		waitAgents(t, "")
	})
	set(t.Context(), arguments)
	waitAgents(t, "")
}

// Kubelet is killed during NodeStageVolume, and forgets the pod: it will never call NodeUnstageVolume. When no pod has used
// the volume for some time, the agent unstages it.
func TestKubeletForgetsAStage_AgentUnstagesIt(t *testing.T) {
	start(t)
	withAgentArguments(t, `["node","--orphan-grace=5s"]`)
	media := []medium{fuse}
	if long() {
		media = append(media, directories, devices)
	}
	for _, m := range media {
		t.Run(m.name, func(t *testing.T) {
			l := newStorage(t, "forgotten-"+m.name, m)
			l.hold(t, "stage")
			claim := l.volume(t, "data", m, corev1.ReadWriteOnce)
			pod := clientPod("client", "data", "node2")
			if m.mode() == corev1.PersistentVolumeBlock {
				pod = blockPod("client", "node2")
			}
			// Without a token, the pod's directory has no mounts.
			l.pending(t, edited(pod, replacing("spec:\n  nodeSelector", "spec:\n  automountServiceAccountToken: false\n  nodeSelector")))
			t.Cleanup(func() { forgetVolume(t, "node2", l.name, volumeName(claim)) })
			l.runningPod(t, pavv1.WorkflowStaging, claim)
			forgotten := &corev1.Pod{ObjectMeta: objectMeta(l.namespace, "client")}
			must(t, kube.Get(t.Context(), keyOf(forgotten), forgotten))

			begin := stopComponent(t, "kubelet", "node2")
			must(t, kube.Delete(t.Context(), forgotten, client.GracePeriodSeconds(0)))
			_, err := onNode(t.Context(), "node2", "rm", "-rf", "--one-file-system", kubeletDir+"/pods/"+string(forgotten.UID))
			must(t, err)
			l.unhook(t, "stage")
			begin()
			eventually(t, "node2 is ready again", nodeReady)
			l.awaitEffects(t, claim, "stage", "unstage")
			l.awaitNoStage(t)
			wantClaimEvent(t, claim, "", l.name)

			// It can be used again.
			pod = clientPod("again", "data", "node1")
			if m.mode() == corev1.PersistentVolumeBlock {
				pod = blockPod("again", "node1")
			}
			l.run(t, pod)
			l.end(t, "again")
			l.awaitEffects(t, claim, "stage", "unstage", "stage", "unstage")
		})
	}
}

// forgetVolume removes what kubelet has of a volume that it forgot: it would keep that forever.
func forgetVolume(t *testing.T, node, driver, volume string) {
	t.Helper()
	ctx, cancel := cleanupContext(t)
	defer cancel()
	devices := kubeletCSI + "/volumeDevices/"
	if _, err := onNode(ctx, node, "rm", "-rf", "--one-file-system", kubeletCSI+"/"+driver,
		devices+volume, devices+"staging/"+volume, devices+"publish/"+volume); err != nil {
		t.Error(err)
	}
}

// A volume in use is not an orphan, however long kubelet makes no call, and also for a new agent.
func TestVolumeInUse_IsNoOrphan(t *testing.T) {
	namespace := start(t)
	volumes := useVolumes(t, namespace, "node2")
	withAgentArguments(t, `["node","--orphan-grace=1s"]`)
	pause(t.Context(), 10*time.Second)
	volumes.checkUndisturbed(t)
}

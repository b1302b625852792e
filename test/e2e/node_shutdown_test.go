package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// An administrator powers a node off, and kubelet ends its pods first. The staging pod of a FUSE volume ends after the client,
// which can still write. Kubelet starts no unstaging pod then: the volume is unstaged when the node is back.
func TestNodeShutdown_StagingPodOutlivesItsClient(t *testing.T) {
	start(t)
	l := newStorage(t, "powered", fuse)
	claim := l.volume(t, "data", fuse, corev1.ReadWriteOnce)
	delayShutdown(t, "node2")
	l.run(t, l.writingPod())
	l.awaitWrites(t)
	staging := runningStagingPod(t, l.name)

	t.Cleanup(func() { onCluster(t, "node", "start", "node2") }) // In case the test ends while the node is off.
	onCluster(t, "node", "shutdown", "node2")
	l.awaitReport(t, "ended well\n")
	client := endOf(t, &corev1.Pod{ObjectMeta: objectMeta(l.namespace, "writer")})
	daemon := endOf(t, staging)
	if daemon.FinishedAt.Before(&client.FinishedAt) {
		t.Errorf("the staging pod ended at %v, before its client at %v", daemon.FinishedAt, client.FinishedAt)
	}

	onCluster(t, "node", "start", "node2")
	l.end(t, "writer")
	l.awaitEffects(t, claim, "stage", "unstage")
	l.awaitNoStage(t)
	removeEndedAgents(t)
	waitAgents(t, "")
	removeKubeletsVolume(t, "node2", l.name)
}

// removeEndedAgents removes the pods of controller agents that kubelet has ended. They stay although their ReplicaSet has others.
func removeEndedAgents(t *testing.T) {
	t.Helper()
	all, err := agents(t.Context())
	must(t, err)
	for i := range all {
		if all[i].Status.Phase == corev1.PodSucceeded || all[i].Status.Phase == corev1.PodFailed {
			remove(t, &all[i])
		}
	}
}

// removeKubeletsVolume removes kubelet's directory of the only volume of a driver on a node. Kubelet has left it: it ended before it
// had unstaged the volume, and when it was back, the volume was unstaged and its client was gone.
func removeKubeletsVolume(t *testing.T, node, driver string) {
	t.Helper()
	const remove = `cd "/var/lib/kubelet/plugins/kubernetes.io/csi/$1" && rm ./*/vol_data.json && rmdir ./*/globalmount ./*`
	_, err := onNode(t.Context(), node, "bash", "-c", remove, "-", driver)
	must(t, err)
}

// delayShutdown lets the kubelet of a node end the pods before the node powers off: those of critical priority last.
func delayShutdown(t *testing.T, node string) {
	t.Helper()
	t.Cleanup(func() { onCluster(t, "node", "logind", "stop", node) })
	onCluster(t, "node", "logind", "start", node)
	inhibitors := func(ctx context.Context) (string, error) {
		return onNode(ctx, node, "busctl", "call", "org.freedesktop.login1", "/org/freedesktop/login1", "org.freedesktop.login1.Manager", "ListInhibitors")
	}
	eventually(t, "logind answers", func(ctx context.Context) error {
		_, err := inhibitors(ctx)
		return err
	})
	configureKubelet(t, node, map[string]any{"shutdownGracePeriod": "150s", "shutdownGracePeriodCriticalPods": "60s"})
	eventually(t, "kubelet delays a shutdown", func(ctx context.Context) error {
		got, err := inhibitors(ctx)
		if err == nil && !strings.Contains(got, "kubelet") {
			err = fmt.Errorf("there are the inhibitors %q", got)
		}
		return err
	})
}

// endOf returns how the only container of a pod ended.
func endOf(t *testing.T, pod *corev1.Pod) *corev1.ContainerStateTerminated {
	t.Helper()
	var ended *corev1.ContainerStateTerminated
	eventually(t, fmt.Sprintf("the container of pod %s has ended", pod.Name), func(ctx context.Context) error {
		found := &corev1.Pod{}
		if err := kube.Get(ctx, keyOf(pod), found); err != nil {
			return err
		}
		if status := found.Status.ContainerStatuses; len(status) == 1 {
			ended = status[0].State.Terminated
		}
		if ended == nil {
			return errors.New("it runs")
		}
		return nil
	})
	return ended
}

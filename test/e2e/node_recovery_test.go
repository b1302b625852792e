package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// following lets a client see later mounts.
var following = replacing("mountPath: /data}", "mountPath: /data, mountPropagation: HostToContainer}")

// disconnected are the words for a file system whose daemon has ended.
const disconnected = "not connected"

// killDaemon kills the process that serves the volume, within the staging pod, and returns when its container ended.
func (l *ledger) killDaemon(t *testing.T) (ended time.Time) {
	t.Helper()
	pod := runningStagingPod(t, l.name)
	_, err := inPod(t.Context(), pod.Namespace, pod.Name, "kill -KILL $(pidof bindfs)")
	// The container ends with its daemon, and may take the shell with it: what counts is that it ends.
	eventually(t, "the daemon's container has ended", func(ctx context.Context) error {
		now := &corev1.Pod{}
		ended = time.Now()
		if gone := kube.Get(ctx, keyOf(pod), now); gone != nil {
			return client.IgnoreNotFound(gone)
		}
		if s := now.Status.ContainerStatuses; len(s) == 1 && s[0].State.Terminated != nil {
			ended = s[0].State.Terminated.FinishedAt.Time
			return nil
		}
		return errors.Join(errors.New("it runs on"), err)
	})
	return ended
}

// runningStagingPod waits until a staging pod of a provisioner runs by the word of kubelet, and returns it:
// the volume is there as soon as the pod has made /pav/ready, which may be before.
func runningStagingPod(t *testing.T, provisioner string) *corev1.Pod {
	t.Helper()
	return awaitPod(t, pavv1.WorkflowStaging, func(ctx context.Context) ([]corev1.Pod, error) { return stagingPods(ctx, provisioner) })
}

// awaitCondition waits until a condition of the storage's PavStage has a status, and returns since when.
func (l *ledger) awaitCondition(t *testing.T, kind string, want bool) (since time.Time) {
	t.Helper()
	eventually(t, fmt.Sprintf("the PavStage's condition %s is %t", kind, want), func(ctx context.Context) error {
		stages, err := l.stages(ctx)
		if err != nil {
			return err
		}
		if len(stages) != 1 || meta.IsStatusConditionTrue(stages[0].Status.Conditions, kind) != want {
			return fmt.Errorf("the PavStages are %+v", stages)
		}
		if condition := meta.FindStatusCondition(stages[0].Status.Conditions, kind); condition != nil {
			since = condition.LastTransitionTime.Time
		}
		return nil
	})
	return since
}

// containers returns what shows whether pods of the test have been restarted.
func (l *ledger) containers(t *testing.T, pods ...string) map[string]map[string]string {
	t.Helper()
	found := map[string]map[string]string{}
	for _, name := range pods {
		pod := &corev1.Pod{ObjectMeta: objectMeta(l.namespace, name)}
		must(t, kube.Get(t.Context(), keyOf(pod), pod))
		found[name] = identity(pod)
	}
	return found
}

// A FUSE daemon is killed while clients use its volume: events report it, and writes fail. A client with HostToContainer
// propagation gets the volume again without a restart, and so do new clients.
func TestFUSEDaemonKilled_ClientsRecover(t *testing.T) {
	t.Parallel()
	l := newStorage(t, "daemon-killed", fuse)
	claim := l.volume(t, "data", fuse, corev1.ReadWriteMany)
	l.run(t, edited(clientPod("following", "data", "node1"), following), clientPod("staying", "data", "node1"))
	l.sh(t, "following", "echo hello > /data/file")
	before := l.containers(t, "following", "staying")

	l.hold(t, "stage") // The outage lasts until this is over.
	ended := l.killDaemon(t)
	wantClaimEventSoon(t, claim, ended, "", l.name, "staging pod")
	for _, pod := range []string{"following", "staying"} {
		eventually(t, "the pod "+pod+" has an event", func(ctx context.Context) error {
			event, err := findEvent(ctx, l.namespace, pod, "", "staging pod")
			if err == nil {
				wantSoon(t, "the pod "+pod+" has an event", ended, event.FirstTimestamp.Time)
			}
			return err
		})
	}
	wantSoon(t, "the condition Ready is false", ended, l.awaitCondition(t, pavv1.StageReady, false))
	l.runningPod(t, pavv1.WorkflowStaging, claim)
	for _, pod := range []string{"following", "staying"} {
		l.fails(t, pod, "dd if=/dev/zero of=/data/outage bs=1M count=8", disconnected)
	}
	for _, node := range nodes {
		found, err := onNode(t.Context(), node, "bash", "-c", "find "+kubeletDir+" -xdev -name outage 2>/dev/null || true") // It cannot look into the dead mount.
		must(t, err)
		if found != "" {
			t.Errorf("what was written during the outage is on the disk of %s: %s", node, found)
		}
	}

	l.unhook(t, "stage")
	eventually(t, "the client that follows mounts has its volume again", func(ctx context.Context) error {
		got, err := inPod(ctx, l.namespace, "following", "cat /data/file; echo again > /data/again; test ! -e /data/outage")
		if err == nil && got != "hello\n" {
			err = fmt.Errorf("it reads %q", got)
		}
		return err
	})
	l.awaitCondition(t, pavv1.StageReady, true)
	l.awaitCondition(t, pavv1.StageDegraded, false)
	l.fails(t, "staying", "cat /data/file", disconnected)
	l.run(t, clientPod("later", "data", "node1"))
	if got := l.sh(t, "later", "cat /data/file /data/again"); got != "hello\nagain\n" {
		t.Errorf("a later client reads %q", got)
	}
	if diff := cmp.Diff(before, l.containers(t, "following", "staying")); diff != "" {
		t.Errorf("clients were disturbed (-before +after):\n%s", diff)
	}
	l.end(t, "staying", "following", "later")
	l.awaitEffects(t, claim, "stage", "unstage", "stage", "unstage")
	l.awaitNoStage(t)
}

// The daemon is killed repeatedly: each time the volume is restaged.
func TestFUSEDaemonKilledRepeatedly(t *testing.T) {
	t.Parallel()
	l := newStorage(t, "killed-often", fuse)
	l.volume(t, "data", fuse, corev1.ReadWriteOnce)
	l.run(t, edited(clientPod("client", "data", ""), following))
	before := l.containers(t, "client")
	for i := range 3 {
		l.sh(t, "client", fmt.Sprintf("echo %d > /data/file", i))
		l.killDaemon(t)
		eventually(t, "the client has its volume again", func(ctx context.Context) error {
			got, err := inPod(ctx, l.namespace, "client", "cat /data/file")
			if err == nil && strings.TrimSpace(got) != fmt.Sprint(i) {
				err = fmt.Errorf("it reads %q", got)
			}
			return err
		})
	}
	if diff := cmp.Diff(before, l.containers(t, "client")); diff != "" {
		t.Errorf("the client was disturbed (-before +after):\n%s", diff)
	}
	l.end(t, "client")
	l.awaitNoStage(t)
}

// With recovery None, a dead volume is reported, and not restaged until its clients are gone.
func TestFUSEDaemonKilled_WithoutRecovery(t *testing.T) {
	t.Parallel()
	l := newStorage(t, "no-recovery", fuse, with("staging", "recovery: None"))
	claim := l.volume(t, "data", fuse, corev1.ReadWriteOnce)
	l.run(t, edited(clientPod("client", "data", "node1"), following))
	l.sh(t, "client", "echo hello > /data/file")
	l.killDaemon(t)
	wantClaimEvent(t, claim, "", l.name, "staging pod")
	l.awaitCondition(t, pavv1.StageDegraded, true)
	l.fails(t, "client", "cat /data/file", disconnected)
	must(t, l.wantEffects(claim, "stage"))
	l.end(t, "client")
	l.awaitNoStage(t)
	l.run(t, clientPod("client", "data", "node1"))
	if got := l.sh(t, "client", "cat /data/file"); got != "hello\n" {
		t.Errorf("it reads %q", got)
	}
	l.end(t, "client")
	l.awaitEffects(t, claim, "stage", "unstage", "stage", "unstage")
}

// A client is deleted while its volume, whose daemon was killed, is being restaged.
func TestFUSEDaemonKilled_ClientDeletedDuringRecovery(t *testing.T) {
	t.Parallel()
	l := newStorage(t, "recovery-ends", fuse)
	claim := l.volume(t, "data", fuse, corev1.ReadWriteOnce)
	l.run(t, clientPod("client", "data", ""))
	l.hold(t, "stage")
	l.killDaemon(t)
	eventually(t, "it is staged again", func(context.Context) error { return l.wantEffects(claim, "stage", "unstage", "stage") })
	l.end(t, "client")
	l.awaitEffects(t, claim, "stage", "unstage", "stage", "unstage")
	l.awaitNoStage(t)
	l.unhook(t, "stage")
}

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// ownUsers gives a pod a user namespace of its own, in which its root is another user of the node.
var ownUsers = replacing("\nspec:\n", "\nspec:\n  hostUsers: false\n")

// Directories and file systems of disks can be mounted with the users of a user namespace: what a client with one writes
// has the same owners in storage as if it had none, and for all other clients.
func TestUserNamespace_OfAClient_OwnersAreTheSameForAll(t *testing.T) {
	t.Parallel()
	for _, m := range []medium{directories, ext4} {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			l := newStorage(t, "users-"+m.name, m)
			claim := l.volume(t, "data", m, corev1.ReadWriteMany)
			l.run(t, edited(clientPod("mapped", "data", "node1"), ownUsers), clientPod("plain", "data", "node1"))
			if got := strings.Fields(l.sh(t, "mapped", "cat /proc/self/uid_map")); len(got) != 3 || got[0] != "0" || got[1] == "0" {
				t.Errorf("the users of the client are those of the node: %q", got)
			}
			if got := l.sh(t, "mapped", "grep -c ' /data .*idmapped.*nosuid\\| /data .*nosuid.*idmapped' /proc/self/mountinfo"); got != "1\n" {
				t.Errorf("the volume is not mounted for these users, without set-user-ID: %q", got)
			}
			l.sh(t, "mapped", "echo hello > /data/of-root; echo hello > /data/of-other; chown 1000:2000 /data/of-other; chmod 600 /data/of-root")
			l.sh(t, "plain", "echo hello > /data/of-plain; chmod 600 /data/of-plain")
			const want = "/data/of-other 1000:2000 hello\n/data/of-plain 0:0 hello\n/data/of-root 0:0 hello\n"
			for _, pod := range []string{"mapped", "plain"} {
				if got := l.sh(t, pod, `for f in /data/of-*; do echo "$f $(stat -c %u:%g $f) $(cat $f)"; done`); got != want {
					t.Errorf("pod %s sees %q, want %q", pod, got, want)
				}
			}
			l.end(t, "mapped", "plain")
			l.awaitEffects(t, claim, "stage", "unstage")
		})
	}
}

// A FUSE file system that cannot be mounted so is refused by the container runtime, with an event; its other clients are
// served, and it is unstaged.
func TestUserNamespace_OfAClientOfFUSE_IsRefusedWithAnEvent(t *testing.T) {
	t.Parallel()
	l := newStorage(t, "users-fuse", fuse)
	claim := l.volume(t, "data", fuse, corev1.ReadWriteMany)
	l.run(t, clientPod("plain", "data", "node1"))
	_, err := kubectl(t.Context(), edited(clientPod("mapped", "data", "node1"), ownUsers), "create", "-n", l.namespace, "-f", "-")
	must(t, err)
	eventually(t, "the pod's events say why it does not start", func(ctx context.Context) error {
		return wantEvent(ctx, l.namespace, "mapped", "Failed", "failed to set MOUNT_ATTR_IDMAP", "doesn't support idmap mounts")
	})
	if got := l.sh(t, "plain", "echo hello > /data/file; cat /data/file"); got != "hello\n" {
		t.Errorf("the other client reads %q", got)
	}
	l.end(t, "mapped", "plain")
	l.awaitEffects(t, claim, "stage", "unstage")
}

// Kubernetes has no pods with both.
func TestUserNamespace_OfAClientOfABlockVolume_IsRefusedByKubernetes(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	out, err := kubectl(t.Context(), edited(blockPod("mapped", "node1"), ownUsers), "create", "-n", namespace, "-f", "-")
	if err == nil || !hasAll(fmt.Sprint(err), []string{"spec.containers[0].volumeDevices: Forbidden", "when `hostUsers` is false"}) {
		t.Errorf("got %s, %v", out, err)
	}
}

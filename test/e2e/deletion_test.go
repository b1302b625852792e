package e2e

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

func wantReleasedPV(t *testing.T, pv *corev1.PersistentVolume) {
	t.Helper()
	eventually(t, "the PersistentVolume is released", func(ctx context.Context) error {
		now := &corev1.PersistentVolume{}
		if err := kube.Get(ctx, keyOf(pv), now); err != nil {
			return err
		}
		if now.Status.Phase != corev1.VolumeReleased {
			return fmt.Errorf("it is %s", now.Status.Phase)
		}
		return nil
	})
}

func TestDeletionPodFails_IsTriedUntilItSucceeds(t *testing.T) {
	t.Parallel()
	l := newLedger(t, "clinging")
	l.hook(t, "delete", "echo 'still needed' > /pav/error; exit 4")
	claim := l.claim(t, "data")
	pv := awaitBound(t, claim)
	remove(t, claim)
	volume := awaitVolume(t, claim, "has failed three times, and says so", func(v *pavv1.PavVolume) bool {
		status, message := conditionOf(v, pavv1.VolumeDeleted)
		return v.Status.DeletionAttempt >= 3 && status == "False" && hasAll(message, []string{"still needed"}) &&
			failedAs(v.Status.DeletionFailure, pavv1.WorkflowDeletion, 4, "still needed", "kubectl logs -n pav-pods delete-")
	})
	wantReleasedPV(t, pv)
	for kind, object := range map[string]client.Object{"PersistentVolume": pv, "PavVolume": volume} {
		wantClusterEvent(t, object, kind, "VolumeFailedDelete", "still needed", "exit code 4", "kubectl logs -n pav-pods delete-")
	}
	must(t, l.wantEffects(claim, "create"))
	l.unhook(t, "delete")
	awaitNoVolume(t, claim)
	must(t, l.wantEffects(claim, "create", "delete"))
}

func TestDeletionPodDeletedByForce_IsTriedAgain(t *testing.T) {
	t.Parallel()
	l := newLedger(t, "clinging-by-force")
	claim := l.claim(t, "data")
	awaitBound(t, claim)
	l.hold(t, "delete")
	remove(t, claim)
	pod := l.runningPod(t, pavv1.WorkflowDeletion, claim)
	_, err := kubectl(t.Context(), "", "delete", "pod", "-n", pod.Namespace, pod.Name, "--force", "--grace-period=0", "--wait=false")
	must(t, err)
	awaitVolume(t, claim, "has failed", func(v *pavv1.PavVolume) bool { return v.Status.DeletionFailure != nil })
	l.unhook(t, "delete")
	awaitNoVolume(t, claim)
	must(t, l.wantEffects(claim, "create", "delete"))
}

// Client pod and claim can be gone before the volume is unstaged: its storage is not deleted before that.
func TestDeletion_WaitsForTheLastStage(t *testing.T) {
	t.Parallel()
	l := newLedger(t, "still-staged")
	l.hook(t, "unstage", "echo 'cannot let go' >&2; exit 1")
	claim := l.claim(t, "data")
	pv := awaitBound(t, claim)
	apply(t, l.namespace, clientPod("client", "data", "node2"))
	waitRunning(t, l.namespace, "client")
	remove(t, &corev1.Pod{ObjectMeta: objectMeta(l.namespace, "client")})
	remove(t, claim)
	wantClusterEvent(t, pv, "PersistentVolume", "VolumeDeletionWaiting", "node2")
	awaitVolume(t, claim, "waits", func(v *pavv1.PavVolume) bool {
		status, message := conditionOf(v, pavv1.VolumeDeleted)
		return v.Status.Phase == pavv1.VolumeDeleting && status == "False" && hasAll(message, []string{"node2"})
	})
	wantReleasedPV(t, pv)
	must(t, l.wantEffects(claim, "create"))
	l.unhook(t, "unstage")
	eventually(t, "the volume is unstaged", func(context.Context) error {
		return l.wantEffects(claim, "create", "delete")
	})
	awaitNoVolume(t, claim)
}

// Deletion uses only the recorded parts of the StorageClass.
func TestDeletion_NeedsNoStorageClass(t *testing.T) {
	t.Parallel()
	l := newLedger(t, "classless", with("class", "parameters: {colour: green}"),
		replacing("hook delete", `test {{ sc.parameters.colour | tobash }} = green && test {{ params.colour | tobash }} = green`))
	claim := l.claim(t, "data")
	awaitBound(t, claim)
	unapply(t, "default", storageClass(l.name))
	removeClaim(t, claim)
	must(t, l.wantEffects(claim, "create", "delete"))
}

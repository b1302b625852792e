package e2e

import (
	"context"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// readyAndOn makes creation pods create /pav/ready, go on until unhook is called, and fail.
const readyAndOn = `printf %s "$handle" > /pav/handle
printf %s "$capacity" > /pav/capacity
touch /pav/ready
while test -e /storage/hooks/create; do sleep 0.1; done
echo created >> /storage/order
exit 7`

// goesOn waits until a claim is bound while its creation pod still runs, and returns the name of that pod.
func (l *ledger) goesOn(t *testing.T, claim *corev1.PersistentVolumeClaim) string {
	t.Helper()
	awaitBound(t, claim)
	volume := awaitVolume(t, claim, "ready, with a creation pod that goes on", func(v *pavv1.PavVolume) bool {
		return v.Status.Phase == pavv1.VolumeReady && v.Status.CreationPod != nil
	})
	return volume.Status.CreationPod.Name
}

func TestCreationPodIsReady_AndFailsAfterThat(t *testing.T) {
	t.Parallel()
	l := newLedger(t, "ready-fails")
	l.hook(t, "create", readyAndOn)
	l.hook(t, "stage", "echo staged >> /storage/order")
	claim := l.claim(t, "data")
	pod := l.goesOn(t, claim)

	apply(t, l.namespace, clientPod("client", "data", "node1"))
	l.unhook(t, "create")
	waitRunning(t, l.namespace, "client")
	if order, err := readFile(filepath.Join(l.directory, "order")); err != nil || order != "created\nstaged\n" {
		t.Errorf("the order of pods is %q, %v", order, err)
	}
	wantClaimEvent(t, claim, "Provisioning", l.name, "/pav/ready", pod, "exit code 7")
	awaitVolume(t, claim, "without a creation pod", func(v *pavv1.PavVolume) bool { return v.Status.CreationPod == nil })
	must(t, l.wantEffects(claim, "create"))
	remove(t, &corev1.Pod{ObjectMeta: objectMeta(l.namespace, "client")})
	removeClaim(t, claim)
	must(t, l.wantEffects(claim, "create", "delete"))
}

func TestCreationPodIsReady_AndItsClaimIsDeleted(t *testing.T) {
	t.Parallel()
	l := newLedger(t, "ready-deleted")
	l.hook(t, "create", readyAndOn)
	claim := l.claim(t, "data")
	l.goesOn(t, claim)
	removeClaim(t, claim)
	must(t, l.wantEffects(claim, "create", "delete"))
	eventually(t, "the pods have gone", func(ctx context.Context) error { return wantNoWorkflowPods(ctx, l.name) })
}

// Only the phase tells about a container that is restarted, and a sidecar ends after the other containers.
func TestStagingPodWhoseContainerIsRestarted_BesideASidecar(t *testing.T) {
	t.Parallel()
	const sidecar = "initContainers: [{name: sidecar, image: busybox:1.37.0, restartPolicy: Always, command: [sleep, infinity]}]"
	l := newLedger(t, "restarted", with("stage spec", "restartPolicy: OnFailure\n"+sidecar))
	l.hook(t, "stage", "if ! test -e /storage/failed; then touch /storage/failed; exit 1; fi")
	claim := l.claim(t, "data")
	awaitBound(t, claim)
	apply(t, l.namespace, clientPod("client", "data", "node1"))
	waitRunning(t, l.namespace, "client")
	pods, err := stagingPods(t.Context(), l.name)
	must(t, err)
	if len(pods) != 1 || restarts(&pods[0]) != 1 {
		t.Errorf("the staging pods are %s", describePods(pods))
	}
	remove(t, &corev1.Pod{ObjectMeta: objectMeta(l.namespace, "client")})
	removeClaim(t, claim)
}

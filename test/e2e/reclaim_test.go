package e2e

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

func awaitRetained(t *testing.T, claim *corev1.PersistentVolumeClaim) *pavv1.PavVolume {
	t.Helper()
	return awaitVolume(t, claim, "is retained, and holds nothing", func(v *pavv1.PavVolume) bool {
		return v.Status.Phase == pavv1.VolumeRetained && len(v.Finalizers) == 0
	})
}

func TestRetainedVolume_IsDeletedWhenTheAdministratorSaysSo(t *testing.T) {
	t.Parallel()
	l := newLedger(t, "retained", with("class", "reclaimPolicy: Retain"))
	claim := l.claim(t, "data")
	pv := awaitBound(t, claim)
	remove(t, claim)
	volume := awaitRetained(t, claim)
	wantReleasedPV(t, pv)
	remove(t, pv)
	awaitRetained(t, claim)
	must(t, l.wantEffects(claim, "create"))

	// The administrator has changed the policy again.
	_, err := kubectl(t.Context(), "", "patch", "pavvolume", volume.Name, "--type=merge", "-p", `{"spec":{"reclaimPolicy":"Delete"}}`)
	must(t, err)
	awaitVolume(t, claim, "has its finalizer again", func(v *pavv1.PavVolume) bool { return len(v.Finalizers) == 1 })
	must(t, l.wantEffects(claim, "create"))
	l.hook(t, "delete", "exit 1") // Deleting the record is no way around the deletion pod.
	must(t, kube.Delete(t.Context(), volume))
	awaitVolume(t, claim, "has failed", func(v *pavv1.PavVolume) bool { return v.Status.DeletionFailure != nil })
	l.unhook(t, "delete")
	awaitNoVolume(t, claim)
	must(t, l.wantEffects(claim, "create", "delete"))
}

func TestReclaimPolicy_IsThatOfThePersistentVolume(t *testing.T) {
	t.Parallel()
	l := newLedger(t, "becomes-retained")
	claim := l.claim(t, "data")
	pv := awaitBound(t, claim)
	policy := func(policy string) {
		_, err := kubectl(t.Context(), "", "patch", "pv", pv.Name, "-p", `{"spec":{"persistentVolumeReclaimPolicy":"`+policy+`"}}`)
		must(t, err)
	}
	policy("Retain")
	awaitVolume(t, claim, "follows", func(v *pavv1.PavVolume) bool { return v.Spec.ReclaimPolicy == corev1.PersistentVolumeReclaimRetain })
	remove(t, claim)
	awaitRetained(t, claim)
	must(t, l.wantEffects(claim, "create"))
	policy("Delete")
	awaitNoVolume(t, claim)
	must(t, l.wantEffects(claim, "create", "delete"))
}

// A creation ends with the definition that it began with; a deletion uses the current definition.
func TestDefinitionChangesDuringCreation(t *testing.T) {
	t.Parallel()
	l := newLedger(t, "changing", with("creation", "handle: old {{ defaultHandle }}"),
		replacing("hook create\n", "hook create\n                echo old > /storage/creator\n"),
		replacing("hook delete\n", "hook delete\n                echo old > /storage/deleter\n"))
	l.hold(t, "validate")
	claim := l.claim(t, "data")
	l.runningPod(t, pavv1.WorkflowValidation, claim)
	before := awaitStep(t, claim, pavv1.StepValidating).Status.ProvisionerGeneration
	l.reapply(t, replacing("old", "new"))
	l.unhook(t, "validate")
	pv := awaitBound(t, claim)
	if want := "old " + pv.Name; pv.Spec.CSI.VolumeHandle != want {
		t.Errorf("the handle is %q, want %q", pv.Spec.CSI.VolumeHandle, want)
	}
	if got, err := readFile(l.directory, "creator"); err != nil || got != "old\n" {
		t.Errorf("the definition of the creation pod was %q (%v)", got, err)
	}
	if got := awaitVolume(t, claim, "ready", func(v *pavv1.PavVolume) bool { return v.Status.Phase == pavv1.VolumeReady }).Status.ProvisionerGeneration; got != before {
		t.Errorf("after creation, the generation is %d, want %d", got, before)
	}
	l.hold(t, "delete")
	remove(t, claim)
	l.runningPod(t, pavv1.WorkflowDeletion, claim)
	provisioner := &pavv1.PavProvisioner{ObjectMeta: objectMeta("", l.name)}
	must(t, kube.Get(t.Context(), keyOf(provisioner), provisioner))
	if got := awaitStep(t, claim, pavv1.StepDeleting).Status.ProvisionerGeneration; got != provisioner.Generation || got == before {
		t.Errorf("during deletion, the generation is %d, want %d", got, provisioner.Generation)
	}
	l.unhook(t, "delete")
	awaitNoVolume(t, claim)
	if got, err := readFile(l.directory, "deleter"); err != nil || got != "new\n" {
		t.Errorf("the definition of the deletion pod was %q (%v)", got, err)
	}
}

// A provisioner that is being deleted creates no more volumes, and is gone with the last one.
func TestProvisionerDeletedWhileItHasVolumes(t *testing.T) {
	t.Parallel()
	l := newLedger(t, "going")
	existing := l.claim(t, "existing")
	awaitBound(t, existing)
	l.hold(t, "create")
	making := l.claim(t, "making")
	l.runningPod(t, pavv1.WorkflowCreation, making)
	l.awaitEffects(t, making, "create")

	provisioner := &pavv1.PavProvisioner{ObjectMeta: objectMeta("", l.name)}
	must(t, kube.Get(t.Context(), keyOf(provisioner), provisioner))
	must(t, kube.Delete(t.Context(), provisioner))
	awaitNoVolume(t, making)
	l.unhook(t, "create")
	l.wantReverted(t, making)
	late := l.claim(t, "late")
	for _, claim := range []*corev1.PersistentVolumeClaim{making, late} {
		wantClaimEvent(t, claim, "ProvisioningFailed", l.name, "being deleted")
		must(t, kube.Delete(t.Context(), claim))
	}

	eventually(t, "the provisioner names the volume that it waits for", func(ctx context.Context) error {
		return wantDeleting(ctx, l.name, volumeName(existing))
	})
	apply(t, l.namespace, clientPod("client", "existing", ""))
	waitRunning(t, l.namespace, "client")
	remove(t, &corev1.Pod{ObjectMeta: objectMeta(l.namespace, "client")})
	removeClaim(t, existing)
	must(t, l.wantEffects(existing, "create", "delete"))
	eventually(t, "the provisioner is gone", func(ctx context.Context) error { return gone(ctx, provisioner) })
	effects, err := l.effects(false)
	if err != nil || len(effects) > 2 || effects[volumeName(late)] != nil {
		t.Errorf("the effects are %v (%v)", fmt.Sprint(effects), err)
	}
}

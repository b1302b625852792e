package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// A pod cannot start: an event of the claim says why within seconds. PaV continues to wait, and provisioning continues as
// soon as the cause is fixed.

// waits checks that for a pod that exists and does not start: the first attempt waits for it.
func waits(t *testing.T, l *ledger, fix func(), words ...string) {
	t.Helper()
	claim := l.claim(t, "data")
	first := awaitStep(t, claim, pavv1.StepCreating).Status.Pod
	l.awaitCause(t, pavv1.WorkflowCreation, claim)
	wantClaimEventSoon(t, claim, time.Now(), "", words...)
	volume := awaitStep(t, claim, pavv1.StepCreating)
	if s := volume.Status; s.Attempt != 1 || s.Pod == nil || s.Pod.Name != first.Name {
		t.Fatalf("it does not go on waiting for %+v: %+v", first, s)
	}
	if status, message := conditionOf(volume, pavv1.VolumeProvisioned); status != "False" || !hasAll(message, words) {
		t.Errorf("the condition %s is %q: %q", pavv1.VolumeProvisioned, status, message)
	}
	fix()
	awaitBound(t, claim)
	must(t, l.wantEffects(claim, "create"))
	removeClaim(t, claim)
}

// isRefused checks that for a pod that the API server refuses: it is tried again and again.
func isRefused(t *testing.T, l *ledger, reason pavv1.FailureReason, fix func(), words ...string) {
	t.Helper()
	claim := l.claim(t, "data")
	awaitVolume(t, claim, "is being created", func(v *pavv1.PavVolume) bool {
		return v.Status.Step == pavv1.StepCreating || v.Status.Failure != nil
	})
	wantClaimEventSoon(t, claim, time.Now(), "", words...)
	// While the next attempt runs, the condition reports that one.
	awaitVolume(t, claim, "its condition says why", func(v *pavv1.PavVolume) bool {
		status, message := conditionOf(v, pavv1.VolumeProvisioned)
		return v.Status.Failure != nil && v.Status.Failure.Reason == reason && status == "False" && hasAll(message, words)
	})
	fix()
	awaitBound(t, claim)
	must(t, l.wantEffects(claim, "create"))
	removeClaim(t, claim)
}

func TestCreationPodWithoutImage_EventOnClaim_AndRecovery(t *testing.T) {
	t.Parallel()
	const image, missing = "docker.io/library/busybox:1.37.0", "docker.io/library/not-there:1.0"
	l := newLedger(t, "no-image", with("create spec", "nodeSelector: {kubernetes.io/hostname: node2}"),
		replacing("# create container\n            image: busybox:1.37.0", "image: "+missing))
	ctr := []string{"ctr", "-n", "k8s.io", "images"}
	t.Cleanup(func() {
		ctx, cancel := cleanupContext(t)
		defer cancel()
		if _, err := onNode(ctx, "node2", append(ctr, "rm", missing)...); err != nil {
			t.Error(err)
		}
	})
	waits(t, l, func() {
		_, err := onNode(t.Context(), "node2", append(ctr, "tag", image, missing)...)
		must(t, err)
	}, "create-", "not-there:1.0")
}

func TestCreationPodFitsNoNode_EventOnClaim_AndRecovery(t *testing.T) {
	t.Parallel()
	l := newLedger(t, "no-node", with("create spec", "nodeSelector: {e2e-no-node: 'yes'}"))
	waits(t, l, func() { label(t, "node", "node1", "e2e-no-node", "yes") }, "create-", "not scheduled", "didn't match")
}

// label labels an object of the cluster until the test ends.
func label(t *testing.T, kind, name, key, value string) {
	t.Helper()
	_, err := kubectl(t.Context(), "", "label", "--overwrite", kind, name, key+"="+value)
	must(t, err)
	t.Cleanup(func() {
		ctx, cancel := cleanupContext(t)
		defer cancel()
		if _, err := kubectl(ctx, "", "label", kind, name, key+"-"); err != nil {
			t.Error(err)
		}
	})
}

// elsewhere makes the creation pods of a ledger run in a namespace of its own, with these labels.
func elsewhere(t *testing.T, name string, labels map[string]string) (*ledger, *corev1.Namespace) {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: objectMeta("", "e2e-"+name)}
	namespace.Labels = labels
	must(t, kube.Create(t.Context(), namespace))
	t.Cleanup(func() { removeLater(t, namespace) })
	return newLedger(t, name, with("create template", "metadata: {namespace: "+namespace.Name+"}")), namespace
}

func TestCreationPodOverQuota_EventOnClaim_AndRecovery(t *testing.T) {
	t.Parallel()
	l, namespace := elsewhere(t, "quota", map[string]string{pavv1.AllowPodsLabel: "true"})
	quota := &corev1.ResourceQuota{ObjectMeta: objectMeta(namespace.Name, "none")}
	quota.Spec.Hard = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}
	must(t, kube.Create(t.Context(), quota))
	eventually(t, "the quota is in force", func(ctx context.Context) error {
		now := &corev1.ResourceQuota{}
		if err := kube.Get(ctx, keyOf(quota), now); err != nil || now.Status.Hard != nil {
			return err
		}
		return fmt.Errorf("it has the status %+v", now.Status)
	})
	isRefused(t, l, pavv1.FailureQuotaExceeded, func() { remove(t, quota) }, "create-", "exceeded quota")
}

func TestCreationPodInANamespaceThatIsNotOpen_EventOnClaim_AndRecovery(t *testing.T) {
	t.Parallel()
	l, namespace := elsewhere(t, "not-open", nil)
	isRefused(t, l, pavv1.FailureNamespaceNotOpen, func() { label(t, "namespace", namespace.Name, pavv1.AllowPodsLabel, "true") },
		"kubectl label namespace "+namespace.Name+" "+pavv1.AllowPodsLabel+"=true")
}

func TestCreationPodAgainstPodSecurity_EventOnClaim_AndRecovery(t *testing.T) {
	t.Parallel()
	const enforce = "pod-security.kubernetes.io/enforce"
	l, namespace := elsewhere(t, "secure", map[string]string{pavv1.AllowPodsLabel: "true", enforce: "restricted"})
	isRefused(t, l, pavv1.FailurePodSecurity, func() { label(t, "namespace", namespace.Name, enforce, "privileged") }, "create-", "violates PodSecurity")
}

func TestDeletionPodFitsNoNode_EventOnVolume_AndRecovery(t *testing.T) {
	t.Parallel()
	l := newLedger(t, "no-node-to-delete", with("delete spec", "nodeSelector: {e2e-no-node-to-delete: 'yes'}"))
	claim := l.claim(t, "data")
	pv := awaitBound(t, claim)
	remove(t, claim)
	wantClusterEvent(t, pv, "PersistentVolume", "VolumeFailedDelete", "delete-", "not scheduled", "didn't match")
	label(t, "node", "node1", "e2e-no-node-to-delete", "yes")
	awaitNoVolume(t, claim)
	must(t, l.wantEffects(claim, "create", "delete"))
}

// A template without a valid pod is reported, and provisioning continues when the definition is corrected.
func TestCreationTemplateThatDoesNotRender_EventOnClaim_AndRecovery(t *testing.T) {
	t.Parallel()
	l := newLedger(t, "no-pod", with("create spec", `nodeName: "{{ params.no_such_parameter.at_all }}"`))
	claim := l.claim(t, "data")
	wantClaimEvent(t, claim, "ProvisioningFailed", l.name, "spec.volumeCreation.podTemplate.spec.nodeName", "no_such_parameter")
	l.reapply(t, replacing(`nodeName: "{{ params.no_such_parameter.at_all }}"`, ""))
	awaitBound(t, claim)
	must(t, l.wantEffects(claim, "create"))
	removeClaim(t, claim)
}

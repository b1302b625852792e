package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

func TestDynamicVolume_AllFivePodsRun(t *testing.T) {
	t.Parallel()
	l := newLedger(t, "five", with("class", "mountOptions: [noatime]\nparameters: {colour: green, csi.storage.k8s.io/fstype: ext4}"))
	// More than was requested.
	l.hook(t, "create", "capacity=3Mi")
	claim := l.claim(t, "data")
	pv := awaitBound(t, claim)
	volume := awaitVolume(t, claim, "ready", func(v *pavv1.PavVolume) bool { return v.Status.Phase == pavv1.VolumeReady })
	if diff := cmp.Diff(wantedPV(claim, l.name), gotPV(pv)); diff != "" {
		t.Errorf("the PersistentVolume: -want +got:\n%s", diff)
	}
	if status, _ := conditionOf(volume, pavv1.VolumeProvisioned); status != "True" {
		t.Errorf("the PavVolume's conditions are %+v", volume.Status.Conditions)
	}
	if s := volume.Status; s.Attempt != 1 || s.Failure != nil || s.Step != "" || s.Handle != pv.Spec.CSI.VolumeHandle || s.Capacity.String() != "3Mi" {
		t.Errorf("the PavVolume's status is %+v", s)
	}
	wantColumns(t, volume, l.name, l.namespace, "data", "Ready", volume.Status.Handle, "3Mi")
	wantClaimEvent(t, claim, "Provisioning", l.name)
	wantClaimEventSoon(t, claim, pv.CreationTimestamp.Time, "ProvisioningSucceeded", pv.Name)

	apply(t, l.namespace, documents(clientPod("writer", "data", "node1"), clientPod("reader", "data", "node2")))
	waitRunning(t, l.namespace, "writer", "reader")
	_, err := inPod(t.Context(), l.namespace, "writer", "echo hello > /data/file")
	must(t, err)
	if got, err := inPod(t.Context(), l.namespace, "reader", "cat /data/file"); err != nil || got != "hello\n" {
		t.Errorf("the other node reads %q (%v)", got, err)
	}
	for _, pod := range []string{"writer", "reader"} {
		remove(t, &corev1.Pod{ObjectMeta: objectMeta(l.namespace, pod)})
	}
	removeClaim(t, claim)
	must(t, l.wantEffects(claim, "create", "delete"))
	eventually(t, "the pods have gone", func(ctx context.Context) error { return wantNoWorkflowPods(ctx, l.name) })
}

// gotPV returns the parts of a PersistentVolume that the protocol specifies.
func gotPV(pv *corev1.PersistentVolume) map[string]any {
	csi := *pv.Spec.CSI
	csi.VolumeAttributes = nil
	return map[string]any{
		"provisioned-by": pv.Annotations["pv.kubernetes.io/provisioned-by"],
		"finalizer":      slices.Contains(pv.Finalizers, pavv1.PVFinalizer),
		"capacity":       pv.Spec.Capacity.Storage().String(),
		"claim":          [3]string{pv.Spec.ClaimRef.Namespace, pv.Spec.ClaimRef.Name, string(pv.Spec.ClaimRef.UID)},
		"class":          pv.Spec.StorageClassName,
		"policy":         pv.Spec.PersistentVolumeReclaimPolicy,
		"modes":          pv.Spec.AccessModes,
		"mount options":  pv.Spec.MountOptions,
		"csi":            csi,
		"parameters":     pv.Spec.CSI.VolumeAttributes,
	}
}

func wantedPV(claim *corev1.PersistentVolumeClaim, provisioner string) map[string]any {
	return map[string]any{
		"provisioned-by": provisioner,
		"finalizer":      true,
		"capacity":       "3Mi",
		"claim":          [3]string{claim.Namespace, claim.Name, string(claim.UID)},
		"class":          provisioner,
		"policy":         corev1.PersistentVolumeReclaimDelete,
		"modes":          []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
		"mount options":  []string{"noatime"},
		"csi":            corev1.CSIPersistentVolumeSource{Driver: provisioner, VolumeHandle: "ledger:" + volumeName(claim), FSType: "ext4"},
		"parameters":     map[string]string{"colour": "green"},
	}
}

// wantColumns fails the test unless kubectl prints the words of a PavVolume's columns in this order.
func wantColumns(t *testing.T, volume *pavv1.PavVolume, want ...string) {
	t.Helper()
	out, err := kubectl(t.Context(), "", "get", "pavvolume", volume.Name, "--no-headers")
	must(t, err)
	got := strings.Fields(out)
	if len(got) < 2 {
		t.Fatalf("kubectl prints %q", out)
	}
	if diff := cmp.Diff(want, got[1:len(got)-1]); diff != "" { // between the name and the age
		t.Errorf("the columns: -want +got:\n%s", diff)
	}
}

func wantNoWorkflowPods(ctx context.Context, provisioner string) error {
	pods := &corev1.PodList{}
	if err := kube.List(ctx, pods, client.MatchingLabels{pavv1.ProvisionerLabel: provisioner}); err != nil {
		return err
	}
	if len(pods.Items) > 0 {
		return fmt.Errorf("pod %s/%s exists", pods.Items[0].Namespace, pods.Items[0].Name)
	}
	return nil
}

func TestDynamicVolume_DefinitionHasPrecedenceOverThePod(t *testing.T) {
	t.Parallel()
	l := newLedger(t, "precedence", with("creation", `handle: "{{ pvc.metadata.name }} of {{ defaultHandle }}"`+"\ncapacity: 2Mi"))
	claim := l.claim(t, "data")
	pv := awaitBound(t, claim)
	if want := "data of " + pv.Name; pv.Spec.CSI.VolumeHandle != want || pv.Spec.Capacity.Storage().String() != "2Mi" {
		t.Errorf("the volume has the handle %q and the capacity %s", pv.Spec.CSI.VolumeHandle, pv.Spec.Capacity.Storage())
	}
	removeClaim(t, claim)
}

func TestDynamicVolume_DefaultHandle(t *testing.T) {
	t.Parallel()
	l := newLedger(t, "default-handle", with("creation", "capacity: 1Mi"))
	l.hook(t, "create", "exit 0")
	claim := l.claim(t, "data")
	if pv := awaitBound(t, claim); pv.Spec.CSI.VolumeHandle != pv.Name {
		t.Errorf("the volume has the handle %q", pv.Spec.CSI.VolumeHandle)
	}
	removeClaim(t, claim)
}

func TestDynamicVolume_OnAnother(t *testing.T) {
	t.Parallel()
	testStack(t, "lower", "upper")
}

// The creation pod of the upper volume is the first consumer of the lower one.
func TestDynamicVolume_OnOneThatWaitsForItsConsumer(t *testing.T) {
	t.Parallel()
	testStack(t, "lower-waits", "upper-waits", with("class", "volumeBindingMode: WaitForFirstConsumer"))
}

func testStack(t *testing.T, lowerName, upperName string, lowerEdits ...edit) {
	t.Helper()
	lower := newLedger(t, lowerName, lowerEdits...)

	// Its pods are where the claims are, and have the lower volume as their storage.
	edits := []edit{replacing(`"/storage/volumes/$volume"`, `"/below/$volume"`)}
	for _, kind := range []string{"create", "delete", "stage"} {
		edits = append(edits,
			with(kind+" template", "metadata: {namespace: '{{ pvc.metadata.namespace }}'}"),
			with(kind+" mounts", "- {name: below, mountPath: /below}"),
			with(kind+" volumes", "- {name: below, persistentVolumeClaim: {claimName: \"{{ pvc.metadata.annotations['below'] }}\"}}"))
	}
	upper := newLedger(t, upperName, edits...)
	_, err := kubectl(t.Context(), "", "label", "namespace", upper.namespace, pavv1.AllowPodsLabel+"=true")
	must(t, err)
	there := *lower
	there.namespace = upper.namespace
	below := there.claim(t, "below")
	annotated := strings.Replace(claim("above", upper.name, "ReadWriteMany"), "  name: above\n", "  name: above\n  annotations: {below: below}\n", 1)
	apply(t, upper.namespace, documents(annotated, clientPod("client", "above", "")))
	above := &corev1.PersistentVolumeClaim{}
	must(t, kube.Get(t.Context(), types.NamespacedName{Namespace: upper.namespace, Name: "above"}, above))
	awaitBound(t, above) // by five pods, before the four that the client waits for
	waitRunning(t, upper.namespace, "client")

	_, err = inPod(t.Context(), upper.namespace, "client", "echo hello > /data/file")
	must(t, err)
	if got, err := readFile(lower.directory, "volumes", volumeName(below), volumeName(above), "file"); err != nil || got != "hello\n" {
		t.Errorf("the lower volume has %q (%v)", got, err)
	}
	remove(t, &corev1.Pod{ObjectMeta: objectMeta(upper.namespace, "client")})
	removeClaim(t, above)
	must(t, upper.wantEffects(above, "create", "delete"))
	removeClaim(t, below)
	must(t, lower.wantEffects(below, "create", "delete"))
}

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// static makes a statically provisioned volume of the storage, named after the claim, and the claim
// that is bound to it.
func (l *ledger) static(t *testing.T, name string, m medium, edits ...edit) {
	t.Helper()
	pv := l.name + "-" + name
	yaml := edited(staticVolume(pv, l.name, l.namespace, ""), append([]edit{
		replacing("name: data", "name: "+name),
		replacing("spec:\n", "spec:\n  volumeMode: "+string(m.mode())+"\n"),
	}, edits...)...)
	_, err := kubectl(t.Context(), yaml, "create", "-n", l.namespace, "-f", "-")
	must(t, err)
	t.Cleanup(func() {
		ctx, cancel := cleanupContext(t)
		defer cancel()
		// The claim is deleted after its pods, and the volume after the claim.
		if err := kube.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(l.namespace), client.GracePeriodSeconds(1)); err != nil {
			t.Error(err)
		}
		unapply(t, l.namespace, yaml)
	})
}

// pending makes a pod that is not expected to run soon.
func (l *ledger) pending(t *testing.T, pod string) {
	t.Helper()
	_, err := kubectl(t.Context(), pod, "create", "-n", l.namespace, "-f", "-")
	must(t, err)
}

// bothTold waits until events of the claim and the pod say why the pod does not start.
func (l *ledger) bothTold(t *testing.T, claim, pod string, words ...string) {
	t.Helper()
	eventually(t, fmt.Sprintf("claim %s has an event with %q", claim, words), func(ctx context.Context) error {
		return wantEvent(ctx, l.namespace, claim, "", words...)
	})
	eventually(t, fmt.Sprintf("pod %s has an event with %q", pod, words), func(ctx context.Context) error {
		return wantEvent(ctx, l.namespace, pod, "", words...)
	})
}

func TestStaticVolume_OfBothModes(t *testing.T) {
	t.Parallel()
	l := newStorage(t, "static-fuse", fuse)
	l.static(t, "data", fuse)
	d := newStorage(t, "static-device", devices)
	d.static(t, "data", devices)
	l.run(t, clientPod("client", "data", ""))
	d.run(t, blockPod("client", ""))
	l.sh(t, "client", "echo hello > /data/file")
	d.sh(t, "client", writeDevice)
	l.end(t, "client")
	d.end(t, "client")
	for _, storage := range []*ledger{l, d} {
		storage.awaitNoStage(t)
	}
	if got, err := readFile(l.directory, "data", "static-fuse-data", "file"); err != nil || got != "hello\n" {
		t.Errorf("the storage has %q (%v)", got, err)
	}
}

// A volume that a provisioner does not support is refused before any pod runs, with an event.
func TestStaticVolume_IsValidated(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		medium medium
		edits  []edit
		words  []string
	}{
		"mode":     {directories, []edit{replacing("volumeMode: Filesystem", "volumeMode: Block")}, []string{"Block"}},
		"access":   {directories, []edit{replacing("ReadWriteMany", "ReadWriteOnce")}, []string{"ReadWriteOnce"}},
		"capacity": {directories, []edit{replacing("capacity: {storage: 1Mi}", "capacity: {storage: 1Gi}")}, []string{"1Gi", "4Mi"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newStorage(t, "invalid-"+name, test.medium, with("validation", "accessModes: [ReadWriteMany]\nmaxCapacity: 4Mi"))
			l.static(t, "data", test.medium, test.edits...)
			pod := clientPod("client", "data", "")
			if name == "mode" {
				pod = blockPod("client", "")
			}
			l.pending(t, pod)
			l.bothTold(t, "data", "client", append(test.words, l.name)...)
			if effects, err := l.effects(false); err != nil || len(effects) > 0 {
				t.Errorf("for an invalid volume, %v was done (%v)", effects, err)
			}
		})
	}
}

// A validation pod reports what is wrong with a volume before any staging pod runs, and is run again.
func TestStaticVolume_ValidationPodFails_IsReported_AndRecovers(t *testing.T) {
	t.Parallel()
	l := &ledger{}
	validation := func(text string) string {
		return strings.Replace(text, "    # validation", strings.TrimPrefix(l.pod("validate", "{{ handle }}", `echo "validate $volume $NODE" >> /storage/journal
hook validate`), "\n")+"\n    # validation", 1)
	}
	// There is no claim in the context of validation.
	l = newLedgerOf(t, "validated", func(made *ledger) string {
		l.directory = made.directory
		return edited(made.storageYAML(directories), validation)
	}, func(text string) string {
		return strings.Replace(text, "volume={{ handle }} claim={{ pvc.metadata.name | tobash }}", "volume={{ handle }}", 1)
	})
	l.hook(t, "validate", "echo 'no such share' > /pav/error; exit 5")
	l.static(t, "data", directories)
	l.pending(t, clientPod("client", "data", ""))
	l.bothTold(t, "data", "client", l.name, "no such share", "exit code 5", "kubectl logs -n pav-pods validate-")
	if got, err := readFile(l.directory, "journal"); err != nil || strings.Contains(got, "stage ") {
		t.Errorf("an invalid volume was staged, or unstaged: %q (%v)", got, err)
	}
	l.unhook(t, "validate")
	l.awaitRunning(t, "client")
	l.end(t, "client")
	l.awaitNoStage(t)
	eventually(t, "it was validated once more, staged and unstaged", func(context.Context) error {
		got, err := readFile(l.directory, "journal")
		if err == nil && strings.Count(got, "unstage validated-data ") != 1 {
			err = fmt.Errorf("what was done is %q", got)
		}
		return err
	})
}

func TestStaticVolume_OfAProvisionerOfDynamicOnes_IsRefused(t *testing.T) {
	t.Parallel()
	l := newStorage(t, "not-static", directories, replacing("[Dynamic, Static]", "[Dynamic]"))
	l.static(t, "data", directories)
	l.pending(t, clientPod("client", "data", ""))
	l.bothTold(t, "data", "client", l.name, "Static", "provisioningModes")
	if effects, err := l.effects(false); err != nil || len(effects) > 0 {
		t.Errorf("%v was done (%v)", effects, err)
	}
	_, err := kubectl(t.Context(), "", "patch", "pavprovisioner", l.name, "--type=merge", "-p", `{"spec":{"provisioningModes":["Dynamic","Static"]}}`)
	must(t, err)
	l.awaitRunning(t, "client")
}

// Two PersistentVolumes of the same volume cannot both be used: one could break a guarantee of the other, such as
// ReadWriteOncePod. The first to use the volume keeps it.
func TestStaticVolume_TwoWithOneHandle_AreRefused(t *testing.T) {
	t.Parallel()
	l := newStorage(t, "duplicates", directories)
	same := func(text string) string {
		for _, name := range []string{"first", "second"} {
			text = strings.ReplaceAll(text, "volumeHandle: duplicates-"+name+"-handle", "volumeHandle: shared-handle")
		}
		return text
	}
	l.static(t, "first", directories, same)
	l.run(t, clientPod("one", "first", "node1"))
	l.static(t, "second", directories, same)
	l.pending(t, clientPod("two", "second", "node1"))
	for _, claim := range []string{"first", "second"} {
		eventually(t, "claim "+claim+" has an event about both volumes", func(ctx context.Context) error {
			return wantEvent(ctx, l.namespace, claim, "", "duplicates-first", "duplicates-second")
		})
	}
	l.sh(t, "one", "echo hello > /data/file")
	pod := &corev1.Pod{}
	must(t, kube.Get(t.Context(), client.ObjectKey{Namespace: l.namespace, Name: "two"}, pod))
	if pod.Status.Phase != corev1.PodPending {
		t.Errorf("the pod of the second volume is %s", pod.Status.Phase)
	}

	// Without the second PersistentVolume, the volume can be used again.
	l.end(t, "two")
	remove(t, &corev1.PersistentVolumeClaim{ObjectMeta: objectMeta(l.namespace, "second")})
	remove(t, &corev1.PersistentVolume{ObjectMeta: objectMeta("", "duplicates-second")})
	l.end(t, "one")
	l.run(t, clientPod("three", "first", "node1"))
	if got := l.sh(t, "three", "cat /data/file"); got != "hello\n" {
		t.Errorf("it reads %q", got)
	}
}

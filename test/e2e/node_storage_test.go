package e2e

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// toolsImage is the image of every node that has losetup, mkfs.ext4, bindfs and fio.
const toolsImage = "localhost/storage-tools:4"

// medium is a way to make a volume of what a storage directory has: what the staging and the unstaging
// container do in the middle of their work. All can be repeated, and can follow a loss of all mounts.
type medium struct {
	name, stage, unstage string
}

var (
	// directories are bound by a staging pod that completes.
	directories = medium{"directory", `
mkdir -p "/storage/data/$volume" /pav/volume
mount --bind "/storage/data/$volume" /pav/volume`,
		unmount}

	// fuse is served by a staging pod that runs on.
	fuse = medium{"fuse", `
mkdir -p "/storage/data/$volume" /pav/volume
bindfs -f "/storage/data/$volume" /pav/volume & daemon=$!
until grep -q ' /pav/volume fuse' /proc/mounts; do kill -0 $daemon; sleep 0.05; done
trap 'umount /pav/volume; exit 0' TERM
touch /pav/ready
wait $daemon`,
		unmount}

	// devices are loop devices, for volumes of mode Block.
	devices = medium{"device", `
image=/storage/data/$volume.img
test -e $image || truncate -s $capacity $image
device=$(losetup --find --show $read_only $image)
mknod /pav/volume b 7 ${device#/dev/loop}`,
		detach}

	// ext4 is a file system on a loop device.
	ext4 = medium{"ext4", `
image=/storage/data/$volume.img
if ! test -e $image; then truncate -s 16M $image; mkfs.ext4 -q $image; fi
device=$(losetup --find --show $read_only $image)
mkdir -p /pav/volume
mount $device /pav/volume`,
		unmount + "\n" + detach}
)

const (
	unmount = `if grep -q ' /pav/volume ' /proc/mounts; then umount /pav/volume; fi`
	detach  = `for device in $(losetup --noheadings --output NAME --associated /storage/data/$volume.img); do losetup --detach $device; done`
)

// newStorage makes a provisioner of volumes of a medium, and its class, whose staging and unstaging
// pods note in the journal what they do: "stage" before it is done, "unstage" after. The markers of
// edits are those of ledger.pod, and "spec", "staging" and "class". When the test ends nothing may be
// left, also no loop device.
func newStorage(t *testing.T, name string, m medium, edits ...edit) *ledger {
	t.Helper()
	return newLedgerOf(t, name, func(l *ledger) string {
		t.Cleanup(func() { l.checkDetached(t) })
		return l.storageYAML(m)
	}, edits...)
}

func (l *ledger) storageYAML(m medium) string {
	const variables = "mkdir -p /storage/data; capacity={{ capacity }} read_only={{ '--read-only' if readOnly else '' }}\n"
	yaml := documents(fmt.Sprintf(`apiVersion: pav.albertofaria.github.io/v1alpha1
kind: PavProvisioner
metadata:
  name: %s
spec:
  provisioningModes: [Dynamic, Static]
  volumeValidation:
    volumeModes: [%s]
    # validation
  volumeCreation:
    capacity: "{{ requestedMinCapacity }}"
  volumeStaging:
    # staging%s
  volumeUnstaging:%s`, l.name, m.mode(),
		l.pod("stage", "{{ pv.metadata.name }}", variables+`echo "stage $volume $NODE" >> /storage/journal`+"\nhook stage"+m.stage),
		l.pod("unstage", "{{ pv.metadata.name }}", variables+"hook unstage\n"+m.unstage+"\n"+`echo "unstage $volume $NODE" >> /storage/journal`)),
		storageClass(l.name)+"# class\n")
	for _, change := range []edit{
		replacing("busybox:1.37.0", toolsImage),
		with("stage mounts", devMount), with("stage volumes", devVolume),
		with("unstage mounts", devMount), with("unstage volumes", devVolume),
	} {
		yaml = change(yaml)
	}
	return yaml
}

// The devices that come while a container runs are not in its own directory of devices.
const (
	devMount  = "- {name: dev, mountPath: /dev}"
	devVolume = "- {name: dev, hostPath: {path: /dev}}"
)

func (m medium) mode() corev1.PersistentVolumeMode {
	if m.name == devices.name {
		return corev1.PersistentVolumeBlock
	}
	return corev1.PersistentVolumeFilesystem
}

// checkDetached fails the test if a loop device of the storage is left, and detaches it.
func (l *ledger) checkDetached(t *testing.T) {
	t.Helper()
	ctx, cancel := cleanupContext(t)
	defer cancel()
	images, err := filepath.Glob(filepath.Join(l.directory, "data", "*.img"))
	must(t, err)
	for _, image := range images {
		out, err := exec.CommandContext(ctx, "losetup", "--noheadings", "--output", "NAME", "--associated", image).CombinedOutput()
		if err != nil {
			t.Errorf("asking for the loop devices of %s: %v: %s", image, err, out)
			continue
		}
		for device := range strings.FieldsSeq(string(out)) {
			t.Errorf("loop device %s of %s is left", device, image)
			if out, err := exec.CommandContext(ctx, "losetup", "--detach", device).CombinedOutput(); err != nil {
				t.Errorf("detaching %s: %v: %s", device, err, out)
			}
		}
	}
}

// volume makes a claim of the storage with an access mode, and waits until it is bound.
func (l *ledger) volume(t *testing.T, name string, m medium, access corev1.PersistentVolumeAccessMode) *corev1.PersistentVolumeClaim {
	t.Helper()
	yaml := strings.Replace(claim(name, l.name, string(access)), "spec:\n", "spec:\n  volumeMode: "+string(m.mode())+"\n", 1)
	_, err := kubectl(t.Context(), yaml, "create", "-n", l.namespace, "-f", "-")
	must(t, err)
	made := &corev1.PersistentVolumeClaim{}
	must(t, kube.Get(t.Context(), client.ObjectKey{Namespace: l.namespace, Name: name}, made))
	awaitBound(t, made)
	return made
}

// run makes pods, which go with the test, and waits until they run.
func (l *ledger) run(t *testing.T, pods ...string) {
	t.Helper()
	for _, yaml := range pods {
		_, err := kubectl(t.Context(), yaml, "create", "-n", l.namespace, "-f", "-")
		must(t, err)
	}
	for _, yaml := range pods {
		l.awaitRunning(t, podName(yaml))
	}
}

// awaitRunning waits until a pod of the test runs. Many others may start at the same time.
func (l *ledger) awaitRunning(t *testing.T, name string) {
	t.Helper()
	eventually(t, "pod "+name+" runs", func(ctx context.Context) error { return l.runs(ctx, name) })
}

// runs objects unless a pod of the test runs.
func (l *ledger) runs(ctx context.Context, name string) error {
	pod := &corev1.Pod{}
	if err := kube.Get(ctx, client.ObjectKey{Namespace: l.namespace, Name: name}, pod); err != nil {
		return err
	}
	if pod.Status.Phase != corev1.PodRunning {
		return fmt.Errorf("it is %s", pod.Status.Phase)
	}
	return nil
}

// end deletes pods of the test, and waits until they are gone.
func (l *ledger) end(t *testing.T, pods ...string) {
	t.Helper()
	for _, name := range pods {
		remove(t, &corev1.Pod{ObjectMeta: objectMeta(l.namespace, name)})
	}
}

// sh runs a shell command in a pod of the test and returns what it printed.
func (l *ledger) sh(t *testing.T, pod, command string) string {
	t.Helper()
	out, err := inPod(t.Context(), l.namespace, pod, command)
	must(t, err)
	return out
}

// fails fails the test unless a shell command fails in a pod with one of the words.
func (l *ledger) fails(t *testing.T, pod, command string, words ...string) {
	t.Helper()
	out, err := inPod(t.Context(), l.namespace, pod, command)
	if err == nil {
		t.Errorf("in pod %s, %q succeeded: %s", pod, command, out)
		return
	}
	for _, word := range words {
		if strings.Contains(err.Error(), word) {
			return
		}
	}
	if len(words) > 0 {
		t.Errorf("in pod %s, %q failed, but with none of %q: %v", pod, command, words, err)
	}
}

// awaitEffects waits until these, in this order, are what pods did to a claim's volume, and no stage is left.
func (l *ledger) awaitEffects(t *testing.T, claim *corev1.PersistentVolumeClaim, want ...string) {
	t.Helper()
	eventually(t, fmt.Sprintf("the effects on %s are %q", claim.Name, want), func(context.Context) error {
		return l.wantEffects(claim, want...)
	})
}

// stages returns the PavStages of the provisioner.
func (l *ledger) stages(ctx context.Context) ([]pavv1.PavStage, error) {
	list := &pavv1.PavStageList{}
	if err := kube.List(ctx, list); err != nil {
		return nil, err
	}
	var found []pavv1.PavStage
	for i := range list.Items {
		if list.Items[i].Spec.Provisioner == l.name {
			found = append(found, list.Items[i])
		}
	}
	return found, nil
}

// awaitNoStage waits until no PavStage of the provisioner is left that holds anything.
func (l *ledger) awaitNoStage(t *testing.T) {
	t.Helper()
	eventually(t, "no stage is left", func(ctx context.Context) error {
		stages, err := l.stages(ctx)
		for i := range stages {
			if s := &stages[i]; s.Status.Phase != pavv1.StageFailed {
				return fmt.Errorf("PavStage %s is on %s: %+v", s.Name, s.Spec.NodeName, s.Status)
			}
		}
		return err
	})
}

// edited returns a text after the edits.
func edited(text string, edits ...edit) string {
	for _, change := range edits {
		text = change(text)
	}
	return text
}

// podName returns the name of the first object of a YAML text.
func podName(yaml string) string {
	_, rest, _ := strings.Cut(yaml, "\n  name: ")
	name, _, _ := strings.Cut(rest, "\n")
	return name
}

// reader lets a client's claims be read-only.
var reader = replacing("{claimName: data}", "{claimName: data, readOnly: true}")

// blockPod returns a pod that runs forever with the claim data, of mode Block, at /dev/data; on a node,
// unless that is empty.
func blockPod(name, node string) string {
	return edited(clientPod(name, "data", node),
		replacing("      volumeMounts:\n        - {name: data, mountPath: /data}", "      volumeDevices:\n        - {name: data, devicePath: /dev/data}"))
}

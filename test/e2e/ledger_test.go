package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/workflow"
)

// ledger is a provisioner with pods of all five kinds, its class, and the storage that its volumes
// are directories of. Every node reaches the storage, as it would a file server, and so does the test:
// it tells the pods what to do, and reads what they did.
type ledger struct {
	// name is that of the provisioner and of its class.
	name string

	// namespace is the test's own, for claims and their pods.
	namespace string

	// directory is where the storage is: volumes, hooks and the journal.
	directory string

	// yaml is the provisioner.
	yaml string
}

// edit changes the text of something before it is applied.
type edit func(text string) string

// with returns an edit that puts more lines in the place of a marker of ledgerYAML: a workflow's
// "template" or "spec", or "creation", or "class".
func with(marker, lines string) edit {
	return func(text string) string {
		for line := range strings.Lines(text) {
			if strings.TrimSpace(line) == "# "+marker {
				by := strings.Index(line, "#")
				return strings.Replace(text, line, indent(lines, by)+"\n"+line, 1)
			}
		}
		return text
	}
}

// replacing returns an edit that replaces all of some text.
func replacing(old, by string) edit {
	return func(text string) string { return strings.ReplaceAll(text, old, by) }
}

// newLedger makes a provisioner and its class. When the test ends both go, with all volumes, and the
// journal must be balanced.
func newLedger(t *testing.T, name string, edits ...edit) *ledger {
	t.Helper()
	return newLedgerOf(t, name, (*ledger).ledgerYAML, edits...)
}

// newLedgerOf is newLedger for another definition of the provisioner and its class.
func newLedgerOf(t *testing.T, name string, definition func(*ledger) string, edits ...edit) *ledger {
	t.Helper()
	// The nodes share this directory, and little else.
	directory, err := os.MkdirTemp(filepath.Dir(os.Getenv("KUBECONFIG")), "storage-") //nolint:usetesting // No node sees the usual place.
	must(t, err)
	l := &ledger{name: name, directory: directory}
	for _, sub := range []string{"hooks", "volumes"} {
		must(t, os.Mkdir(filepath.Join(directory, sub), 0o777)) //nolint:gosec // Pods of any user write to it.
	}
	t.Cleanup(func() {
		l.checkBalanced(t)
		if err := os.RemoveAll(directory); err != nil {
			t.Error(err)
		}
	})
	yaml := definition(l)
	for _, change := range edits {
		yaml = change(yaml)
	}
	apply(t, "default", yaml)
	l.yaml, _, _ = strings.Cut(yaml, "\n---\n")

	namespace := &corev1.Namespace{ObjectMeta: objectMeta("", "")}
	namespace.GenerateName = "e2e-" + name + "-"
	must(t, kube.Create(t.Context(), namespace))
	l.namespace = namespace.Name
	t.Cleanup(func() {
		if t.Failed() {
			explain(t, l.namespace)
		}
		l.unhook(t, "validate", "create", "delete", "stage", "unstage")
		l.removeClaims(t)
		removeLater(t, namespace)
	})
	return l
}

// ledgerYAML returns the provisioner and its class. Each pod does what its hook says in the middle
// of its work. A volume's directory has the name of its PersistentVolume.
func (l *ledger) ledgerYAML() string {
	validate := "hook validate"
	create := `
echo "create $volume $NODE" >> /storage/journal
mkdir "/storage/volumes/$volume"
handle="ledger:$volume" capacity={{ requestedMinCapacity }}
hook create
printf %s "$handle" > /pav/handle
printf %s "$capacity" > /pav/capacity`
	deletion := `
hook delete
rm -rf "/storage/volumes/$volume"
echo "delete $volume $NODE" >> /storage/journal`
	stage := `
hook stage
mkdir /pav/volume
mount --bind "/storage/volumes/$volume" /pav/volume`
	unstage := `
hook unstage
if grep ' /pav/volume ' /proc/mounts; then umount /pav/volume; fi`
	return documents(fmt.Sprintf(`apiVersion: pav.albertofaria.github.io/v1alpha1
kind: PavProvisioner
metadata:
  name: %s
spec:
  provisioningModes: [Dynamic]
  volumeValidation:
    # validation%s
  volumeCreation:
    # creation%s
  volumeDeletion:
    # deletion%s
  volumeStaging:%s
  volumeUnstaging:%s`, l.name,
		l.pod("validate", "{{ 'pvc-' ~ pvc.metadata.uid }}", validate),
		l.pod("create", "{{ defaultHandle }}", create),
		l.pod("delete", "{{ defaultHandle }}", deletion),
		l.pod("stage", "{{ pv.metadata.name }}", stage),
		l.pod("unstage", "{{ pv.metadata.name }}", unstage)),
		storageClass(l.name)+"# class\n")
}

// pod returns a field podTemplate of a workflow of volumes, whose container runs the script with /storage.
func (l *ledger) pod(kind, volume, script string) string {
	return l.hookedPod(kind, "volume="+volume+" claim={{ pvc.metadata.name | tobash }}\n"+strings.TrimSpace(script))
}

// hookedPod returns a field podTemplate whose container runs the script with /storage, and with the function hook.
func (l *ledger) hookedPod(kind, script string) string {
	script = "hook() { if test -e /storage/hooks/$1; then . /storage/hooks/$1; fi; }\n" + strings.TrimSpace(script)
	return fmt.Sprintf(`
    podTemplate:
      # %[1]s template
      spec:
        # %[1]s spec
        terminationGracePeriodSeconds: 1
        containers:
          - name: main
            # %[1]s container
            image: busybox:1.37.0
            securityContext: {privileged: %[2]t}
            env: [{name: NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}]
            volumeMounts:
              # %[1]s mounts
              - {name: storage, mountPath: /storage}
            command: [bash, -euc]
            args:
              - |
%[3]s
        volumes:
          # %[1]s volumes
          - {name: storage, hostPath: {path: %[4]q}}`, kind, strings.HasSuffix(kind, "stage"), indent(script, 16), l.directory)
}

// hook makes all pods of a kind that start from now on run the script in the middle of their work.
func (l *ledger) hook(t *testing.T, kind, script string) {
	t.Helper()
	path := filepath.Join(l.directory, "hooks", kind)
	must(t, os.WriteFile(path+".new", []byte(script+"\n"), 0o644)) //nolint:gosec // Pods of any user read it.
	must(t, os.Rename(path+".new", path))
}

// hold makes all pods of a kind wait in the middle of their work until unhook is called.
func (l *ledger) hold(t *testing.T, kind string) {
	t.Helper()
	l.hook(t, kind, "while test -e /storage/hooks/"+kind+"; do sleep 0.1; done")
}

// unhook lets pods of these kinds continue their work.
func (l *ledger) unhook(t *testing.T, kinds ...string) {
	t.Helper()
	for _, kind := range kinds {
		if err := os.Remove(filepath.Join(l.directory, "hooks", kind)); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Error(err)
		}
	}
}

// effects returns what pods did to each volume, in order: create, expand and delete, with a node each if
// nodes are wanted.
func (l *ledger) effects(withNodes bool) (map[string][]string, error) {
	text, err := os.ReadFile(filepath.Join(l.directory, "journal"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	effects := map[string][]string{}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) != 3 {
			return nil, fmt.Errorf("the journal has the line %q", line)
		}
		effect := fields[0]
		if withNodes {
			effect += " on " + fields[2]
		}
		effects[fields[1]] = append(effects[fields[1]], effect)
	}
	return effects, nil
}

// wantEffects returns an error unless pods did this to a claim's volume, in this order.
func (l *ledger) wantEffects(claim *corev1.PersistentVolumeClaim, want ...string) error {
	effects, err := l.effects(false)
	if err != nil {
		return err
	}
	if got := effects[volumeName(claim)]; strings.Join(got, ", ") != strings.Join(want, ", ") {
		return fmt.Errorf("what was done to the volume is %q, want %q", got, want)
	}
	return nil
}

// checkBalanced fails the test unless every volume was deleted after it was created, and before it
// was created again, and nothing is left.
func (l *ledger) checkBalanced(t *testing.T) {
	t.Helper()
	effects, err := l.effects(false)
	if err != nil {
		t.Error(err)
	}
	for volume, done := range effects {
		exists := false
		for _, effect := range done {
			if effect == "create" && exists {
				t.Errorf("volume %s was created twice: %q", volume, done)
			}
			exists = exists && effect != "delete" || effect == "create"
		}
		if exists {
			t.Errorf("volume %s was never deleted: %q", volume, done)
		}
	}
	left, err := os.ReadDir(filepath.Join(l.directory, "volumes"))
	if err != nil {
		t.Error(err)
	}
	for _, volume := range left {
		t.Errorf("the storage of volume %s is left", volume.Name())
	}
}

// claim makes a claim of the ledger's class.
func (l *ledger) claim(t *testing.T, name string) *corev1.PersistentVolumeClaim {
	t.Helper()
	_, err := kubectl(t.Context(), claim(name, l.name, "ReadWriteMany"), "create", "-n", l.namespace, "-f", "-")
	must(t, err)
	made := &corev1.PersistentVolumeClaim{}
	must(t, kube.Get(t.Context(), client.ObjectKey{Namespace: l.namespace, Name: name}, made))
	return made
}

// removeClaims deletes the test's pods and the provisioner's claims, and waits until its volumes have
// gone: a namespace under deletion takes no more pods, also none that would delete a volume.
func (l *ledger) removeClaims(t *testing.T) {
	t.Helper()
	ctx, cancel := cleanupContext(t)
	defer cancel()
	claims := &corev1.PersistentVolumeClaimList{}
	err := errors.Join(
		kube.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(l.namespace), client.MatchingLabelsSelector{Selector: notWorkflow}, client.GracePeriodSeconds(1)),
		kube.List(ctx, claims))
	for i := range claims.Items {
		if c := &claims.Items[i]; ptr.Deref(c.Spec.StorageClassName, "") == l.name {
			err = errors.Join(err, client.IgnoreNotFound(kube.Delete(ctx, c)))
		}
	}
	if err := errors.Join(err, poll(ctx, l.wantNoVolumes)); err != nil {
		t.Error(err)
	}
}

// wantNoVolumes objects while volumes of the provisioner are to be deleted.
func (l *ledger) wantNoVolumes(ctx context.Context) error {
	volumes := &pavv1.PavVolumeList{}
	if err := kube.List(ctx, volumes, client.MatchingLabels{pavv1.ProvisionerLabel: l.name}); err != nil {
		return err
	}
	for i := range volumes.Items {
		if v := &volumes.Items[i]; v.Status.Phase != pavv1.VolumeRetained {
			return fmt.Errorf("PavVolume %s still exists, phase %s, step %s, %+v", v.Name, v.Status.Phase, v.Status.Step, v.Status.Conditions)
		}
	}
	return nil
}

// reapply changes the provisioner.
func (l *ledger) reapply(t *testing.T, edits ...edit) {
	t.Helper()
	for _, change := range edits {
		l.yaml = change(l.yaml)
	}
	// The controller may write the status between kubectl's read and its write.
	eventually(t, "the definition is replaced", func(ctx context.Context) error {
		_, err := kubectl(ctx, l.yaml, "replace", "-f", "-")
		return err
	})
}

// pods returns the pods of a workflow that exist for a claim's volume.
func (l *ledger) pods(ctx context.Context, kind string, claim *corev1.PersistentVolumeClaim) ([]corev1.Pod, error) {
	list := &corev1.PodList{}
	err := kube.List(ctx, list, client.MatchingLabels{
		pavv1.ProvisionerLabel: l.name, pavv1.WorkflowLabel: kind, pavv1.VolumeLabel: workflow.Hash(volumeName(claim)),
	})
	return list.Items, err
}

// runningPod waits until a pod of a workflow runs for a claim's volume, and returns it.
func (l *ledger) runningPod(t *testing.T, kind string, claim *corev1.PersistentVolumeClaim) *corev1.Pod {
	t.Helper()
	return awaitPod(t, kind, func(ctx context.Context) ([]corev1.Pod, error) { return l.pods(ctx, kind, claim) })
}

// awaitPod waits until one of the pods of a kind that are listed runs, and returns it.
func awaitPod(t *testing.T, kind string, list func(context.Context) ([]corev1.Pod, error)) *corev1.Pod {
	t.Helper()
	var found *corev1.Pod
	eventually(t, "a pod "+kind+" runs", func(ctx context.Context) error {
		pods, err := list(ctx)
		if err != nil {
			return err
		}
		for i := range pods {
			if found = &pods[i]; found.Status.Phase == corev1.PodRunning && found.DeletionTimestamp == nil {
				return nil
			}
		}
		return fmt.Errorf("none of %d pods does", len(pods))
	})
	return found
}

// awaitCause waits until Kubernetes reports why a pod does not start: PaV cannot report it earlier.
func (l *ledger) awaitCause(t *testing.T, kind string, claim *corev1.PersistentVolumeClaim) {
	t.Helper()
	eventually(t, "Kubernetes says why the pod "+kind+" does not start", func(ctx context.Context) error {
		pods, err := l.pods(ctx, kind, claim)
		if err != nil {
			return err
		}
		for i := range pods {
			if workflow.Waiting(&pods[i]) != "" {
				return nil
			}
		}
		return fmt.Errorf("nothing keeps any of %d pods from starting, as far as is known", len(pods))
	})
}

// readFile returns the text of a file that the storage has.
func readFile(path ...string) (string, error) {
	text, err := os.ReadFile(filepath.Join(path...))
	return string(text), err
}

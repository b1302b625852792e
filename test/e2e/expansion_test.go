package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
	"github.com/albertofaria/pav/internal/workflow"
)

// growableYAML is ledgerYAML with volumes that can grow.
func (l *ledger) growableYAML() string { return l.growable(l.ledgerYAML()) }

// growable lets the volumes of a definition grow. The size of a volume is in a file in it.
func (l *ledger) growable(yaml string) string {
	expand := `
hook expand
echo {{ newCapacity }} > "/storage/volumes/$volume/.size"
echo {{ newCapacity }} > /pav/capacity
echo "expand $volume $NODE" >> /storage/journal`
	yaml = strings.Replace(yaml, "  volumeDeletion:", "  volumeExpansion:"+l.pod("expand", "{{ pv.metadata.name }}", expand)+"\n  volumeDeletion:", 1)
	return with("class", "allowVolumeExpansion: true")(yaml)
}

// request changes what a claim requests.
func request(t *testing.T, claim *corev1.PersistentVolumeClaim, size string) {
	t.Helper()
	_, err := kubectl(t.Context(), "", "patch", "pvc", claim.Name, "-n", claim.Namespace, "--type=merge",
		"-p", fmt.Sprintf(`{"spec": {"resources": {"requests": {"storage": %q}}}}`, size))
	must(t, err)
}

// awaitCapacity waits until a claim and its PersistentVolume have a capacity, and nothing says that the volume grows.
func awaitCapacity(t *testing.T, claim *corev1.PersistentVolumeClaim, size string) {
	t.Helper()
	want := resource.MustParse(size)
	eventually(t, "claim "+claim.Name+" has "+size, func(ctx context.Context) error {
		pv := &corev1.PersistentVolume{}
		if err := kube.Get(ctx, client.ObjectKeyFromObject(claim), claim); err != nil {
			return err
		}
		if err := kube.Get(ctx, client.ObjectKey{Name: claim.Spec.VolumeName}, pv); err != nil {
			return err
		}
		if status := &claim.Status; status.Capacity.Storage().Cmp(want) != 0 || pv.Spec.Capacity.Storage().Cmp(want) != 0 ||
			len(status.Conditions) > 0 || len(status.AllocatedResourceStatuses) > 0 {
			return fmt.Errorf("the claim has the status %+v, and the PersistentVolume %s", status, pv.Spec.Capacity.Storage())
		}
		return nil
	})
}

// A volume grows while a pod uses it. What fails on the way is told where people look.
func TestVolumeGrows_WhileAPodUsesIt(t *testing.T) {
	t.Parallel()
	l := newLedgerOf(t, "growing", (*ledger).growableYAML)
	claim := l.claim(t, "data")
	awaitBound(t, claim)
	apply(t, l.namespace, clientPod("user", "data", "node1"))
	waitRunning(t, l.namespace, "user")

	l.hook(t, "expand", "echo 'the array is busy' > /pav/error; exit 3")
	request(t, claim, "3Gi")
	wantClaimEvent(t, claim, "Resizing", "is expanding the volume to 3Gi")
	wantClaimEvent(t, claim, "VolumeResizeFailed", l.name, "expansion to 3Gi: attempt 1 failed", "exit code 3")
	wantClaimEvent(t, claim, "VolumeResizeFailed", l.name, "expansion", "exit code 3: the array is busy") // another event, if the node reports late
	l.hook(t, "expand", "echo 'at most 2Gi' > /pav/infeasible; exit 3")
	wantClaimEvent(t, claim, "VolumeResizeFailed", l.name, "at most 2Gi", "follows in 10m0s, or when the claim or the definition changes")
	eventually(t, "kubectl describe pvc says why the volume does not grow", func(ctx context.Context) error {
		text, err := kubectl(ctx, "", "describe", "pvc", "data", "-n", l.namespace)
		if err == nil && (!strings.Contains(text, "ControllerResizeError") || !strings.Contains(text, "at most 2Gi")) {
			err = fmt.Errorf("it says %s", text)
		}
		return err
	})
	pavSays(t, []string{"describe", "pvc/data", "-n", l.namespace}, 1, "FAILING", "the expansion pod says that this is infeasible", "at most 2Gi", "request less, but more than the volume has")
	pavSays(t, []string{"logs", "pvc/data", "-n", l.namespace, "--phase", "expansion"}, 0)

	l.unhook(t, "expand")
	request(t, claim, "2Gi")
	awaitCapacity(t, claim, "2Gi")
	wantClaimEvent(t, claim, "VolumeResizeSuccessful", "to 2Gi")
	if got, err := inPod(t.Context(), l.namespace, "user", "cat /data/.size"); err != nil || got != "2147483648\n" {
		t.Errorf("the pod sees %q (%v)", got, err)
	}
	must(t, l.wantEffects(claim, "create", "expand"))
	awaitVolume(t, claim, "has no expansion", func(v *pavv1.PavVolume) bool { return v.Status.Expansion == nil && v.Status.Step == "" })
	remove(t, &corev1.Pod{ObjectMeta: objectMeta(l.namespace, "user")})
	removeClaim(t, claim)
	must(t, l.wantEffects(claim, "create", "expand", "delete"))
}

// A claim is grown twice while its expansion pod runs, and then deleted while the next one runs.
func TestVolumeGrows_AndItsClaimChangesItsMind(t *testing.T) {
	t.Parallel()
	l := newLedgerOf(t, "growing-again", (*ledger).growableYAML)
	claim := l.claim(t, "data")
	awaitBound(t, claim)
	l.hold(t, "expand")
	request(t, claim, "2Gi")
	l.runningPod(t, pavv1.WorkflowExpansion, claim)
	request(t, claim, "3Gi")
	l.unhook(t, "expand")
	awaitCapacity(t, claim, "3Gi")
	must(t, l.wantEffects(claim, "create", "expand", "expand"))

	l.hold(t, "expand")
	request(t, claim, "4Gi")
	var next string
	awaitVolume(t, claim, "grows to 4Gi", func(v *pavv1.PavVolume) bool {
		if v.Status.Expansion == nil || v.Status.Expansion.Target.String() != "4Gi" || v.Status.Pod == nil {
			return false
		}
		next = v.Status.Pod.Name
		return true
	})
	// One that has not started would be stopped. The one before may still look as if it ran.
	awaitPod(t, pavv1.WorkflowExpansion, func(ctx context.Context) ([]corev1.Pod, error) {
		pods, err := l.pods(ctx, pavv1.WorkflowExpansion, claim)
		return slices.DeleteFunc(pods, func(pod corev1.Pod) bool { return pod.Name != next || !workflow.Started(&pod) }), err
	})
	remove(t, claim)
	l.unhook(t, "expand")
	awaitNoVolume(t, claim)
	must(t, l.wantEffects(claim, "create", "expand", "expand", "expand", "delete"))
}

// growableOnNodesYAML is growableYAML with a pod that makes the new capacity available on a node: it writes that into the volume.
func (l *ledger) growableOnNodesYAML() string {
	grow := `
hook grow
grep -q ' /pav/volume ' /proc/mounts
echo {{ newCapacity }} > /pav/volume/.grown
echo "grow $volume $NODE" >> /storage/journal`
	pod := strings.Replace(l.pod("grow on the stage", "{{ pv.metadata.name }}", grow), "podTemplate:", "nodePodTemplate:", 1)
	return strings.Replace(l.growableYAML(), "\n  volumeDeletion:", pod+"\n  volumeDeletion:", 1)
}

// growInUse makes a volume of growableOnNodesYAML grow while the pod "user" uses it, wants that all of its workflow pods have had these
// effects, and removes the pod and the claim.
func (l *ledger) growInUse(t *testing.T, claim *corev1.PersistentVolumeClaim, size string, effects ...string) {
	t.Helper()
	request(t, claim, size)
	awaitCapacity(t, claim, size)
	capacity := resource.MustParse(size)
	want := fmt.Sprintf("%[1]d\n%[1]d\n", capacity.Value())
	if got, err := inPod(t.Context(), l.namespace, "user", "cat /data/.size /data/.grown"); err != nil || got != want {
		t.Errorf("the pod sees %q (%v), want %q", got, err, want)
	}
	must(t, l.wantEffects(claim, effects...))
	remove(t, &corev1.Pod{ObjectMeta: objectMeta(l.namespace, "user")})
	removeClaim(t, claim)
	must(t, l.wantEffects(claim, append(effects, "delete")...))
}

// A volume grows on its node while a pod uses it.
func TestVolumeGrows_OnTheNodeThatUsesIt(t *testing.T) {
	t.Parallel()
	l := newLedgerOf(t, "growing-in-use", (*ledger).growableOnNodesYAML)
	claim := l.claim(t, "data")
	apply(t, l.namespace, clientPod("user", "data", "node1"))
	waitRunning(t, l.namespace, "user")
	l.growInUse(t, claim, "2Gi", "create", "expand", "grow")
}

// A volume grows on the node that gets it for a pod, and again while the pod uses it. If the expansion pod on the node fails, the reason is
// shown by kubectl describe, by kubectl pav describe, and in an event of the claim.
func TestVolumeGrows_OnItsNode(t *testing.T) {
	t.Parallel()
	l := newLedgerOf(t, "growing-on-nodes", (*ledger).growableOnNodesYAML)
	claim := l.claim(t, "data")
	awaitBound(t, claim)
	request(t, claim, "2Gi")
	wantClaimEvent(t, claim, "FileSystemResizeRequired", "has grown to 2Gi")
	pavSays(t, []string{"describe", "pvc/data", "-n", l.namespace}, 0, "WAITING", "the next one that gets the volume for a pod")

	l.hook(t, "grow", "echo 'the file system is damaged' > /pav/error; exit 3")
	apply(t, l.namespace, clientPod("user", "data", "node1"))
	wantClaimEvent(t, claim, "VolumeResizeFailed", "expanding on node node1 failed", l.name, "exit code 3: the file system is damaged")
	pavSays(t, []string{"describe", "pvc/data", "-n", l.namespace}, 1, "FAILING", "the expansion to 2Gi on node node1 failed", "the file system is damaged", "kubectl edit pavprovisioner "+l.name)
	pavSays(t, []string{"logs", "pvc/data", "-n", l.namespace, "--phase", "node-expansion"}, 0)
	eventually(t, "kubectl describe pod says why it does not start", func(ctx context.Context) error {
		text, err := kubectl(ctx, "", "describe", "pod", "user", "-n", l.namespace)
		if err == nil && !strings.Contains(text, "the file system is damaged") {
			err = fmt.Errorf("it says %s", text)
		}
		return err
	})
	l.unhook(t, "grow")
	waitRunning(t, l.namespace, "user")
	awaitCapacity(t, claim, "2Gi")
	l.growInUse(t, claim, "3Gi", "create", "expand", "grow", "expand", "grow")
}

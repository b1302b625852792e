package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// snapshottableYAML is ledgerYAML with snapshots, which are copies of the directories of volumes.
func (l *ledger) snapshottableYAML() string {
	create := `
hook snapshot
mkdir -p /storage/snapshots
cp -a "/storage/volumes/$volume" /storage/snapshots/{{ defaultSnapshotHandle | tobash }}
echo 1Mi > /pav/snapshotSize
echo "snapshot $volume $NODE" >> /storage/journal`
	deletion := `
rm -rf /storage/snapshots/{{ (snapshotHandle or defaultSnapshotHandle) | tobash }}
echo "unsnapshot $volume $NODE" >> /storage/journal`
	sections := "  snapshotCreation:\n    whileStaged: Sync" + l.pod("snapshot", "{{ pv.metadata.name }}", create) +
		"\n  snapshotDeletion:" + l.pod("unsnapshot", "{{ pv.metadata.name }}", deletion)
	return documents(strings.Replace(l.ledgerYAML(), "  volumeDeletion:", sections+"\n  volumeDeletion:", 1), snapshotClass(l.name))
}

// snapshotClass returns a VolumeSnapshotClass of a provisioner, of the same name.
func snapshotClass(provisioner string) string {
	return fmt.Sprintf(`apiVersion: snapshot.storage.k8s.io/v1
kind: VolumeSnapshotClass
metadata:
  name: %s
driver: %[1]s
deletionPolicy: Delete
`, provisioner)
}

// snapshot creates a VolumeSnapshot of a claim.
func (l *ledger) snapshot(t *testing.T, name, claim string) *snapshotv1.VolumeSnapshot {
	t.Helper()
	made := &snapshotv1.VolumeSnapshot{ObjectMeta: objectMeta(l.namespace, name)}
	made.Spec.VolumeSnapshotClassName, made.Spec.Source.PersistentVolumeClaimName = &l.name, &claim
	must(t, kube.Create(t.Context(), made))
	return made
}

// awaitSnapshot waits until the status of a VolumeSnapshot is as wanted.
func awaitSnapshot(t *testing.T, snapshot *snapshotv1.VolumeSnapshot, what string, wanted func(*snapshotv1.VolumeSnapshotStatus) bool) {
	t.Helper()
	eventually(t, "VolumeSnapshot "+snapshot.Name+" "+what, func(ctx context.Context) error {
		if err := kube.Get(ctx, client.ObjectKeyFromObject(snapshot), snapshot); err != nil {
			return err
		}
		if snapshot.Status == nil || !wanted(snapshot.Status) {
			return fmt.Errorf("it has the status %+v", snapshot.Status)
		}
		return nil
	})
}

func isUsable(status *snapshotv1.VolumeSnapshotStatus) bool {
	return status.ReadyToUse != nil && *status.ReadyToUse
}

// awaitNoSnapshot waits until a VolumeSnapshot and everything that was made for it is gone.
func awaitNoSnapshot(t *testing.T, snapshot *snapshotv1.VolumeSnapshot) {
	t.Helper()
	eventually(t, "nothing of VolumeSnapshot "+snapshot.Name+" is left", func(ctx context.Context) error {
		for name, object := range map[string]client.Object{
			"snapshot-" + string(snapshot.UID): &pavv1.PavSnapshot{}, "snapcontent-" + string(snapshot.UID): &snapshotv1.VolumeSnapshotContent{},
		} {
			if err := kube.Get(ctx, client.ObjectKey{Name: name}, object); !apierrors.IsNotFound(err) {
				return fmt.Errorf("%T %s: %w, %+v", object, name, err, object)
			}
		}
		if err := kube.Get(ctx, client.ObjectKeyFromObject(snapshot), &snapshotv1.VolumeSnapshot{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("VolumeSnapshot %s: %w", snapshot.Name, err)
		}
		return nil
	})
}

// A snapshot of a volume in use has what was written before it was requested, and nothing else is left when it is deleted.
func TestSnapshot_HasWhatWasWritten_AndIsDeleted(t *testing.T) {
	t.Parallel()
	l := newLedgerOf(t, "snapshotting", (*ledger).snapshottableYAML)
	claim := l.claim(t, "data")
	awaitBound(t, claim)
	apply(t, l.namespace, clientPod("user", "data", "node1"))
	waitRunning(t, l.namespace, "user")
	_, err := inPod(t.Context(), l.namespace, "user", "echo before > /data/file")
	must(t, err)

	snapshot := l.snapshot(t, "first", "data")
	awaitSnapshot(t, snapshot, "is ready", isUsable)
	_, err = inPod(t.Context(), l.namespace, "user", "echo after > /data/file")
	must(t, err)
	path := filepath.Join(l.directory, "snapshots", "snapshot-"+string(snapshot.UID))
	if got, err := os.ReadFile(filepath.Join(path, "file")); err != nil || string(got) != "before\n" {
		t.Errorf("the snapshot has %q (%v)", got, err)
	}
	if size := snapshot.Status.RestoreSize; size == nil || size.String() != "1Mi" || snapshot.Status.CreationTime == nil || snapshot.Status.Error != nil {
		t.Errorf("the VolumeSnapshot has the status %+v", snapshot.Status)
	}
	awaitVolume(t, claim, "has no readers", func(v *pavv1.PavVolume) bool { return len(v.Status.Readers) == 0 })
	pavSays(t, []string{"describe", "volumesnapshot/first", "-n", l.namespace}, 0, "first", "can be used")

	remove(t, snapshot)
	awaitNoSnapshot(t, snapshot)
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("the storage of the snapshot: %v", err)
	}
	remove(t, &corev1.Pod{ObjectMeta: objectMeta(l.namespace, "user")})
	removeClaim(t, claim)
	must(t, l.wantEffects(claim, "create", "snapshot", "unsnapshot", "delete"))
}

// What fails is told where people look, is reverted, and is tried again. A VolumeSnapshot may be deleted while its pod runs.
func TestSnapshot_FailsAndIsDeletedInTheMaking(t *testing.T) {
	t.Parallel()
	l := newLedgerOf(t, "snapshots-failing", (*ledger).snapshottableYAML)
	claim := l.claim(t, "data")
	awaitBound(t, claim)
	l.hook(t, "snapshot", "echo 'the array is busy' > /pav/error; exit 3")
	snapshot := l.snapshot(t, "first", "data")
	awaitSnapshot(t, snapshot, "says what failed", func(s *snapshotv1.VolumeSnapshotStatus) bool {
		return s.Error != nil && s.Error.Message != nil && strings.Contains(*s.Error.Message, "exit code 3: the array is busy")
	})
	eventually(t, "kubectl describe says why there is no snapshot", func(ctx context.Context) error {
		text, err := kubectl(ctx, "", "describe", "volumesnapshot", "first", "-n", l.namespace)
		if err == nil && (!strings.Contains(text, "SnapshotCreationFailed") || !strings.Contains(text, "exit code 3: the array is busy")) {
			err = fmt.Errorf("it says %s", text)
		}
		return err
	})
	pavSays(t, []string{"describe", "volumesnapshot/first", "-n", l.namespace}, 1, "FAILING", "the array is busy")
	l.hold(t, "snapshot")
	eventually(t, "the next attempt runs", func(ctx context.Context) error {
		pods, err := l.pods(ctx, pavv1.WorkflowSnapshotCreation, claim)
		for i := range pods {
			if pods[i].Status.Phase == "Running" {
				return nil
			}
		}
		return fmt.Errorf("the pods are %d (%w)", len(pods), err)
	})
	remove(t, snapshot)
	awaitNoSnapshot(t, snapshot)
	l.unhook(t, "snapshot")
	removeClaim(t, claim)
}

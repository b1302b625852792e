package e2e

import (
	"slices"
	"testing"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"

	pavv1 "github.com/albertofaria/pav/internal/api/v1alpha1"
)

// unknown is what the former version knows nothing of: volumes that grow, and that have snapshots. It waits while that
// version runs.
type unknown struct {
	*ledger

	grows, isCopied *corev1.PersistentVolumeClaim // each has a pod that runs in the present version
	waits           *corev1.PersistentVolumeClaim // it is to grow, and to have a snapshot, in the former version
	begun, asked    *snapshotv1.VolumeSnapshot
	pods            map[string]string // the UIDs of the pods that run, by workflow
}

// catchUnknown makes two volumes, of which one is in the middle of an expansion, and the other in that of a snapshot.
func catchUnknown(t *testing.T) *unknown {
	t.Helper()
	l := newLedgerOf(t, "versions-unknown", func(l *ledger) string { return l.growable(l.snapshottableYAML()) }, withSecret()...)
	t.Cleanup(func() { l.unhook(t, "expand", "snapshot") })
	u := &unknown{ledger: l, grows: l.claim(t, "grows"), isCopied: l.claim(t, "copied"), waits: l.claim(t, "waits"), pods: map[string]string{}}
	for _, claim := range []*corev1.PersistentVolumeClaim{u.grows, u.isCopied, u.waits} {
		awaitBound(t, claim)
	}
	l.pending(t, clientPod("client", "grows", nodes[0]))
	l.awaitRunning(t, "client")
	l.hold(t, "expand")
	l.hold(t, "snapshot")
	request(t, u.grows, "2Gi")
	u.begun = l.snapshot(t, "begun", "copied")
	for workflow, claim := range u.claims() {
		u.pods[workflow] = string(l.runningPod(t, workflow, claim).UID)
	}
	return u
}

// claims returns the claims whose pods run, by workflow.
func (u *unknown) claims() map[string]*corev1.PersistentVolumeClaim {
	return map[string]*corev1.PersistentVolumeClaim{pavv1.WorkflowExpansion: u.grows, pavv1.WorkflowSnapshotCreation: u.isCopied}
}

// wait asks for more while the former version runs. Nothing of what it does not know is done, and nothing is undone.
func (u *unknown) wait(t *testing.T) {
	t.Helper()
	request(t, u.waits, "2Gi")
	u.asked = u.snapshot(t, "asked", "waits")
	u.pending(t, clientPod("waiting", "waits", nodes[1]))
	u.awaitRunning(t, "waiting")
	u.sh(t, "waiting", "echo hello > /data/file")
	u.wantSamePods(t, u.claims(), u.pods)
	for _, claim := range []*corev1.PersistentVolumeClaim{u.grows, u.isCopied, u.waits} {
		u.did(t, claim, "create")
	}
}

// end lets the pods that have waited go on in the present version, which also does what was asked for meanwhile.
func (u *unknown) end(t *testing.T) {
	t.Helper()
	u.unhook(t, "expand", "snapshot")
	awaitCapacity(t, u.grows, "2Gi")
	awaitCapacity(t, u.waits, "2Gi")
	for _, snapshot := range []*snapshotv1.VolumeSnapshot{u.begun, u.asked} {
		awaitSnapshot(t, snapshot, "is ready", isUsable)
	}
	if got := u.sh(t, "client", "cat /data/.size") + u.sh(t, "waiting", "cat /data/.size /data/file"); got != "2147483648\n2147483648\nhello\n" {
		t.Errorf("the pods see %q", got)
	}
	u.awaitRunning(t, "client")
	u.did(t, u.grows, "create", "expand")
	u.did(t, u.isCopied, "create", "snapshot")
	u.did(t, u.waits, "create", "expand", "snapshot")
	u.ledger.end(t, "client", "waiting")
	for _, snapshot := range []*snapshotv1.VolumeSnapshot{u.begun, u.asked} {
		remove(t, snapshot)
		awaitNoSnapshot(t, snapshot)
	}
	u.removeClaims(t)
	u.did(t, u.grows, "create", "delete", "expand")
}

// did fails the test unless pods did this to a claim's volume, in whatever order.
func (u *unknown) did(t *testing.T, claim *corev1.PersistentVolumeClaim, want ...string) {
	t.Helper()
	effects, err := u.effects(false)
	must(t, err)
	if got := slices.Sorted(slices.Values(effects[volumeName(claim)])); !slices.Equal(got, want) {
		t.Errorf("what was done to the volume of claim %s is %q, want %q", claim.Name, got, want)
	}
}
